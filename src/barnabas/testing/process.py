"""Runs a broker in its own process, with the command that users type.

The broker is ready when it has printed a line with its address. Its standard error goes to a file
next to its data, and into the exception if it does not become ready.

A `WorkerRunner` runs one as a supervisor runs its workers: on a tree that this process serves.
"""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from barnabas.config.properties import write_properties
from barnabas.model.errors import BarnabasError
from barnabas.workers.channel import Orders, Ready, decode_report, encode_orders

_DEADLINE_S = 60.0
_ADDRESS = re.compile(rb"([\w.\-]+):(\d+)")


class NotReadyError(BarnabasError):
    """The process exited, or timed out, before the broker was ready."""


class ProcessRunner:
    """One broker in one process."""

    def __init__(self, prefix: Sequence[str] = ()) -> None:
        """Prepare; `prefix` comes before the command, to run it in a namespace for instance."""
        self._prefix = prefix
        self._process: subprocess.Popen[bytes] | None = None
        self._drainer: threading.Thread | None = None

    @property
    def is_running(self) -> bool:
        """Return whether the process is running."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """Return the number of the process, which must have been started."""
        assert self._process is not None
        return self._process.pid

    def start(self, options: Mapping[str, str]) -> tuple[str, int]:
        """Start the process and wait for its ready line."""
        data_dir = Path(options["log.dirs"])
        data_dir.mkdir(parents=True, exist_ok=True)
        errors = data_dir.with_name(f"{data_dir.name}.err")
        # In a file: everyone on this machine sees the words of a command.
        settings = data_dir.with_name(f"{data_dir.name}.properties")
        settings.touch(0o600)
        settings.write_text(write_properties(options))
        command = [*self._prefix, sys.executable, "-m", "barnabas.cli", "start"]
        command += ["--config", str(settings)]
        with errors.open("ab") as stderr:
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr)
        return self._await_ready(self._process, errors)

    def stop(self) -> None:
        """Ask for a controlled shutdown, and wait."""
        assert self._process is not None
        self._process.terminate()
        self._wait(self._process)

    def kill(self) -> None:
        """Kill the process."""
        assert self._process is not None
        self._process.kill()  # ends a frozen process, too
        self._wait(self._process)

    def pause(self) -> None:
        """Freeze the process."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Resume the process."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def _await_ready(self, process: subprocess.Popen[bytes], errors: Path) -> tuple[str, int]:
        assert process.stdout is not None
        # If nothing is printed in time, a timer kills the process, which ends its output.
        deadline = threading.Timer(_DEADLINE_S, process.kill)
        deadline.start()
        try:
            for line in process.stdout:
                found = _ADDRESS.search(line)
                if found is not None:
                    self._drain(process)
                    return found[1].decode(), int(found[2])
        finally:
            deadline.cancel()
        raise self._not_ready(process, errors)

    def _not_ready(self, process: subprocess.Popen[bytes], errors: Path) -> NotReadyError:
        code = self._wait(process)
        said = " ".join(errors.read_text(errors="replace").split()[-60:])
        return NotReadyError(f"the broker exited with code {code} before it was ready: {said}")

    def _drain(self, process: subprocess.Popen[bytes]) -> None:
        """Keep reading the broker's output, so that a full pipe never blocks it."""
        assert process.stdout is not None
        self._drainer = threading.Thread(
            target=lambda stream: [None for _ in stream], args=(process.stdout,), daemon=True
        )
        self._drainer.start()

    def _wait(self, process: subprocess.Popen[bytes]) -> int:
        try:
            return process.wait(_DEADLINE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()
        finally:
            if self._drainer is not None:
                self._drainer.join()  # the output has ended with the process
                self._drainer = None
            if process.stdout is not None:
                process.stdout.close()


class WorkerRunner(ProcessRunner):
    """One broker in one process, on the tree at a socket; it ends with this process."""

    def __init__(self, tree: Path) -> None:
        super().__init__()
        self._tree = tree
        self._channel: socket.socket | None = None

    def start(self, options: Mapping[str, str]) -> tuple[str, int]:
        """Start the process and wait for its report."""
        data_dir = Path(options["log.dirs"])
        data_dir.mkdir(parents=True, exist_ok=True)
        errors = data_dir.with_name(f"{data_dir.name}.err")
        self._channel, theirs = socket.socketpair()
        with theirs, errors.open("ab") as stderr:
            number = str(theirs.fileno())
            self._process = subprocess.Popen(
                [sys.executable, "-m", "barnabas.cli", "start", "--worker", number],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stderr=stderr,
            )
        self._channel.settimeout(_DEADLINE_S)
        try:
            self._channel.sendall(encode_orders(Orders(1, options, str(self._tree))))
            with self._channel.makefile("rb") as reports:
                ready = decode_report(reports.readline())
        except (OSError, ValueError):
            self._process.kill()
            raise self._not_ready(self._process, errors) from None
        assert isinstance(ready, Ready)
        found = _ADDRESS.search(ready.endpoints[0].encode())
        assert found is not None
        return found[1].decode(), int(found[2])

    def _wait(self, process: subprocess.Popen[bytes]) -> int:
        if self._channel is not None:
            self._channel.close()
        return super()._wait(process)

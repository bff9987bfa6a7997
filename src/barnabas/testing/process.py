"""Runs a broker in its own process, with the command that users type.

The broker is ready when it has printed a line with its address. Its standard error goes to a file
next to its data, and into the exception if it does not become ready.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from barnabas.config.properties import write_properties
from barnabas.model.errors import BarnabasError

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
        data_dir = Path(options["log.dirs"].split(",")[0])
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
        code = self._wait(process)
        said = " ".join(errors.read_text(errors="replace").split()[-60:])
        raise NotReadyError(f"the broker exited with code {code} before it was ready: {said}")

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

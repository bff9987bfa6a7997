"""Brokers as child processes: started, waited for by what they print, stopped, and measured.

Tests and benchmarks hold a `RunningBroker` and need not know which broker it is. Whoever starts one
stops it; `stop` ends exactly that process and waits for it.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from barnabas.testing.zookeeper import free_port as free_port


class NotReady(Exception):
    """The process ended, or the deadline passed, before the broker said that it was ready."""


@dataclass(frozen=True)
class RunningBroker:
    """A broker process: where to reach it, where its logs are, and what it has used so far."""

    name: str
    process: subprocess.Popen[bytes]
    bootstrap: str
    log_dir: Path

    def stop(self, timeout_s: float = 30) -> int:
        """Ask for a controlled shutdown, kill after the deadline, and return the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                self.process.kill()
        return self.process.wait()

    def cpu_seconds(self) -> float:
        """User plus system time of all threads, ended ones too, since the process started.

        It is the sum that /proc/PID/stat rounds to ticks of 10 ms, read from the process's CPU
        clock instead (clock_getcpuclockid of Linux), which counts nanoseconds.
        """
        clock_id = (~self.process.pid << 3) | 2
        return time.clock_gettime(clock_id)

    def memory_mb(self) -> dict[str, float]:
        """Resident and proportional set size in MB (10^6 bytes)."""
        rollup = Path(f"/proc/{self.process.pid}/smaps_rollup").read_text()
        sizes = {line.split(":")[0]: line.split()[1] for line in rollup.splitlines()[1:]}
        return {name: int(sizes[name]) * 1024 / 1e6 for name in ("Rss", "Pss")}


def start_barnabas(
    data_dir: Path,
    *,
    port: int = 0,
    options: Mapping[str, str] | None = None,
    timeout_s: float = 60,
    wait: bool = True,
    checkout: Path | None = None,
) -> RunningBroker:
    """Start our broker by its command, as users do, and wait for its ready line.

    Callers that do not wait for that must give the port; else the system chooses it. The package is
    taken from another `checkout` if one is given, whose kernels must be compiled.
    """
    assert port or wait
    data_dir.mkdir(parents=True, exist_ok=True)
    settings = [f"--set={name}={value}" for name, value in (options or {}).items()]
    command = Path(sys.executable).parent / "barnabas"
    listen = f"127.0.0.1:{port}"
    argv: Sequence[str] = [str(command), "start", "--data-dir", str(data_dir), "--listen", listen]
    log = data_dir.with_name(data_dir.name + ".out")
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*argv, *settings], stdout=output, stderr=output, env=environment_of(checkout)
        )
    if wait:
        # The whole phrase: a refusal to bind names the address too, and another broker may hold it.
        wait_for_line(process, log, f"is ready on PLAINTEXT://127.0.0.1:{port or ''}", timeout_s)
        (listen,) = re.findall(r"is ready on PLAINTEXT://(127\.0\.0\.1:\d+) ", log.read_text())
    name = "Barnabas" if checkout is None else checkout.name
    return RunningBroker(name, process, listen, data_dir)


def environment_of(checkout: Path | None) -> dict[str, str]:
    """Return the environment of a child that takes the package from another checkout."""
    if checkout is None:
        return dict(os.environ)
    return dict(os.environ, PYTHONPATH=str(checkout / "src"))


def wait_for_line(process: subprocess.Popen[bytes], log: Path, text: str, timeout_s: float) -> None:
    """Wait until the process's output file holds `text`; end the process if it never does."""
    deadline = time.monotonic() + timeout_s
    while text.encode() not in log.read_bytes():
        if process.poll() is not None:
            raise NotReady(f"{process.args!r} ended with {process.returncode}:\n{_tail(log)}")
        if time.monotonic() > deadline:
            process.kill()
            process.wait()
            raise NotReady(f"no {text!r} within {timeout_s} s:\n{_tail(log)}")
        time.sleep(0.01)


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-15:])

"""A broker as a service: what its manager gets, signals, exit codes, and the unit of systemd."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytestmark = pytest.mark.system

ROOT = Path(__file__).resolve().parents[2]
UNIT = ROOT / "packaging" / "barnabas.service"
DEADLINE_S = 60


class Service:
    """A broker and the socket of its manager."""

    def __init__(self, process: subprocess.Popen[str], server: socket.socket) -> None:
        self.process = process
        self._server = server

    def state(self) -> dict[str, str]:
        """Return the next state that is not a sign of life."""
        while True:
            text = self._server.recv(4096).decode()
            found = dict(line.split("=", 1) for line in text.splitlines())
            if "WATCHDOG" not in found:
                return found

    def signs_of_life(self, count: int) -> None:
        """Wait for some."""
        while count:
            count -= self._server.recv(4096) == b"WATCHDOG=1"


@contextmanager
def service(directory: Path, *words: str, watchdog_us: int = 100_000) -> Iterator[Service]:
    """Start a broker as a manager does."""
    address = str(directory / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as server:
        server.bind(address)
        server.settimeout(DEADLINE_S)
        environment = dict(os.environ, NOTIFY_SOCKET=address, WATCHDOG_USEC=str(watchdog_us))
        command = [sys.executable, "-m", "barnabas.cli", "start", "--listen", "127.0.0.1:0"]
        with subprocess.Popen(
            [*command, "--data-dir", str(directory / "data"), *words],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                yield Service(process, server)
            finally:
                process.kill()


def test_a_manager_follows_workers(tmp_path: Path) -> None:
    """A reload is a rolling restart, and over when that is."""
    with service(tmp_path, "--workers", "2") as running:
        ready = running.state()
        assert ready["READY"] == "1"
        address = r"PLAINTEXT://127\.0\.0\.1:\d+"
        assert re.fullmatch(f"ready on {address}, {address}", ready["STATUS"])
        running.signs_of_life(3)
        running.process.send_signal(signal.SIGHUP)
        assert running.state().keys() == {"RELOADING", "MONOTONIC_USEC"}
        assert running.state() == ready
        running.process.send_signal(signal.SIGTERM)
        assert running.state()["STOPPING"] == "1"
        out, err = running.process.communicate(timeout=DEADLINE_S)
    assert running.process.returncode == 0
    assert out.splitlines()[-1] == "Barnabas stopped cleanly"
    assert "rolling restart completed" in err


def test_a_manager_follows_the_life_of_a_broker(tmp_path: Path) -> None:
    with service(tmp_path) as running:
        ready = running.state()
        assert ready["READY"] == "1"
        assert re.fullmatch(r"ready on PLAINTEXT://127\.0\.0\.1:\d+", ready["STATUS"])
        running.signs_of_life(3)
        running.process.send_signal(signal.SIGHUP)
        assert running.state().keys() == {"RELOADING", "MONOTONIC_USEC"}
        assert running.state() == ready
        running.process.send_signal(signal.SIGTERM)
        assert running.state()["STOPPING"] == "1"
        out, _ = running.process.communicate(timeout=DEADLINE_S)
    assert running.process.returncode == 0
    assert out.splitlines()[-1] == "Barnabas stopped cleanly"


def test_a_start_that_fails_is_never_ready(tmp_path: Path) -> None:
    """The manager learns of it by the exit code, and restarts the service."""
    with service(tmp_path, "--set", "num.partitions=many") as failing:
        _, err = failing.process.communicate(timeout=DEADLINE_S)
        failing._server.setblocking(False)
        with pytest.raises(BlockingIOError):
            failing._server.recv(4096)
    assert failing.process.returncode == 1
    assert "num.partitions=many" in err


def test_the_unit_is_one_that_systemd_accepts(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd-analyze is not installed")
    # It looks at the programs of a unit, too.
    unit = tmp_path / "barnabas.service"
    command = f"{sys.executable} -m barnabas.cli start"
    text = UNIT.read_text().replace("/usr/local/bin/barnabas start", command)
    unit.write_text(re.sub(r"^(User|Group)=.*$", r"\1=root", text, flags=re.M))
    done = subprocess.run(
        [analyze, "verify", "--man=no", str(unit)], capture_output=True, text=True, check=False
    )
    complaints = [line for line in done.stderr.splitlines() if "barnabas.service" in line]
    assert (done.returncode, complaints) == (0, []), done.stderr

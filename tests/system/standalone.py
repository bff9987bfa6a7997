"""A standalone Spark on this machine, from what the pip package has: a master and two workers.

Everything that is started belongs to a session (in the sense of POSIX) of its own, and is ended
with it: executors and their Python processes, too, whatever they are doing.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from tests.system.spark_session import QUICK_JAVA

ROOT = Path(__file__).parents[2]
DEADLINE_S = 300.0
WORKERS = 2
MASTER = re.compile(r"Starting Spark master at (spark://[\w.\-]+:\d+)")
REGISTERED = re.compile(r"Successfully registered with master")

CONF = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.driver.memory": "512m",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.extraJavaOptions": QUICK_JAVA,
    "spark.executorEnv.PYTHONPATH": str(ROOT),
}
"""Options of applications: small, on this machine, with the modules of the tests."""


def hear_interrupts() -> None:
    """Let a child hear Ctrl-C, which programs in the background of a shell are deaf to."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Process:
    """A process that is the first of a session, and what it has said."""

    def __init__(
        self, words: Sequence[str], said: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self._said = said
        with said.open("ab") as output:
            self._process = subprocess.Popen(
                words,
                env={**os.environ, **(environment or {})},
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=hear_interrupts,
            )

    @property
    def number(self) -> int:
        """The id of the process, of its group and of its session."""
        return self._process.pid

    @property
    def code(self) -> int | None:
        """The exit status; None while it runs."""
        return self._process.poll()

    def text(self) -> str:
        """Return what it has said."""
        return self._said.read_text(errors="replace")

    def wait_for(self, pattern: re.Pattern[str]) -> re.Match[str]:
        """Wait until it has said something."""
        deadline_s = time.monotonic() + DEADLINE_S
        while (found := pattern.search(self.text())) is None:
            assert self.code is None, self.text()[-3000:]
            assert time.monotonic() < deadline_s, self.text()[-3000:]
            time.sleep(0.05)
        return found

    def wait(self, timeout_s: float = DEADLINE_S) -> int:
        """Wait for its end, and return the exit status."""
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired as failure:
            failure.add_note(self.text()[-5000:])
            raise

    def end(self) -> None:
        """Kill it and all that it has started."""
        for number in members(self._process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        self._process.wait()


def members(session: int) -> list[int]:
    """Return the processes of a session; zombies are none any more."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            # After the name, which may have spaces: state, parent, group, session.
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(int(entry.name))
    return found


def until_gone(process: Process) -> None:
    """Wait until nothing is left of a program that has ended: neither Java nor Python."""
    deadline_s = time.monotonic() + DEADLINE_S
    while left := members(process.number):
        assert time.monotonic() < deadline_s, left
        time.sleep(0.05)


class Standalone:
    """A running standalone Spark."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._processes: list[Process] = []
        self._workers: list[Process] = []
        self.master = ""

    def start(self) -> None:
        """Start the master, then the workers, and wait until they know each other."""
        master = self._run(
            "master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0"
        )
        self.master = master.wait_for(MASTER).group(1)
        self._workers = [
            self._run(
                "worker.Worker",
                *("--host", "127.0.0.1", "--port", "0", "--webui-port", "0"),
                *("--cores", "1", "--memory", "600M"),
                *("--work-dir", str(self._directory / f"work-{number}"), self.master),
            )
            for number in range(WORKERS)
        ]
        for worker in self._workers:
            worker.wait_for(REGISTERED)

    def until_idle(self) -> None:
        """Wait until the executors of all applications are gone, and what they were doing ends."""
        deadline_s = time.monotonic() + DEADLINE_S
        while busy := [each for worker in self._workers for each in members(worker.number)[1:]]:
            assert time.monotonic() < deadline_s, busy
            time.sleep(0.05)

    def end(self) -> None:
        """End everything."""
        for process in reversed(self._processes):
            process.end()

    def _run(self, name: str, *words: str) -> Process:
        process = Process(
            [str(home() / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *words],
            self._directory / f"{len(self._processes)}.log",
            {
                "SPARK_HOME": str(home()),
                "SPARK_DAEMON_MEMORY": "128m",
                "SPARK_LOCAL_IP": "127.0.0.1",
                "SPARK_LOCAL_DIRS": str(self._directory),
                "PYSPARK_PYTHON": sys.executable,
            },
        )
        self._processes.append(process)
        return process


def home() -> Path:
    """Return where the pip package has put Spark."""
    found = importlib.util.find_spec("pyspark")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent


def driver(program: str, words: Sequence[str], said: Path) -> Process:
    """Start a Python program that runs a Spark application."""
    environment = {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(ROOT)}
    return Process([sys.executable, "-c", program, *words], said, environment)


@pytest.fixture(scope="session")
def standalone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    """One for all tests that want it: it takes seconds to come up."""
    running = Standalone(tmp_path_factory.mktemp("spark"))
    try:
        running.start()
        yield running
    finally:
        running.end()

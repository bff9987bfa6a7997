"""A secured cluster whose brokers have consoles: real processes, with the data in memory.

Ten thousand partitions are thirty thousand files, so the data is on a tmpfs where there is one.
"""

from __future__ import annotations

import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tools.processes import free_port

from barnabas.testing.process import ProcessRunner
from barnabas.testing.security import ClusterSecurity
from barnabas.testing.zookeeper import ZooKeeperServer

MEMORY = Path("/dev/shm")
ADMIN, ALICE = "admin", "alice"
PASSWORDS = {ADMIN: "password-of-admin", ALICE: "password-of-alice"}
"""The super user, and one who may do nothing."""
OPTIONS = {
    "default.replication.factor": "3",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
    "auto.leader.rebalance.enable": "false",  # it would elect before a test does
    "connection.failed.authentication.delay.ms": "0",
    "log.cleaner.enable": "false",  # its buffers would be the largest thing here
}


class ConsoleCluster:
    """Three brokers, each with a console and two data directories."""

    _folder: Path
    _security: ClusterSecurity

    def __init__(self, classpath: str, racks: tuple[str, ...] = ("a", "b", "c")) -> None:
        """Describe it; `with` starts it, and ends it."""
        self._classpath = classpath
        self._racks = racks
        self._stack = ExitStack()
        self._addresses: list[tuple[str, int]] = []
        self._ports: list[int] = []

    def __enter__(self) -> Self:
        with self._stack:
            folder = Path(tempfile.mkdtemp(prefix="barnabas-", dir=_memory()))
            self._stack.callback(shutil.rmtree, folder)
            self._folder = folder
            self._security = ClusterSecurity("SASL_PLAINTEXT", folder / "security")
            for name, password in PASSWORDS.items():
                self._security.prepare_user(name, password)
            server = self._stack.enter_context(ZooKeeperServer(self._classpath))
            for number in range(len(self._racks)):
                self._start(number, folder, server.address)
            self._stack = self._stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.close()

    def _start(self, number: int, folder: Path, tree: str) -> None:
        port = free_port()
        runner = ProcessRunner()
        home = folder / f"broker-{number}"
        home.mkdir()
        self._stack.callback(lambda: runner.is_running and runner.kill())
        address = runner.start(
            OPTIONS
            | self._security.broker_options()
            | {
                "broker.id": str(number),
                "broker.rack": self._racks[number],
                "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
                "log.dirs": ",".join(str(home / name) for name in ("one", "two")),
                "zookeeper.connect": tree,
                "barnabas.console.listener": f"127.0.0.1:{port}",
            }
        )
        self._addresses.append(address)
        self._ports.append(port)

    def url(self, number: int = 0) -> str:
        """Return the address of a broker's console."""
        return f"http://127.0.0.1:{self._ports[number]}"

    def directory_of(self, number: int, topic: str, partition: int = 0) -> Path:
        """Return the data directory in which a broker has a replica."""
        [found] = (self._folder / f"broker-{number}").glob(f"*/{topic}-{partition}")
        return found.parent

    def client_options(self, user: str = ADMIN, style: str = "librdkafka") -> dict[str, Any]:
        """Return the options with which a user's clients connect."""
        bootstrap = ",".join(f"{host}:{port}" for host, port in self._addresses)
        return self._security.client_options(bootstrap, user, style)


def _memory() -> Path | None:
    """Return a directory in memory with room for the data; None if there is none."""
    if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > 4 << 30:
        return MEMORY
    return None

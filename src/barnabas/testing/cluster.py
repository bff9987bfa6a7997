"""`Cluster`: real brokers for a test, on free ports of this machine, in a temporary directory.

    with Cluster(options={"auto.create.topics.enable": "false"}) as cluster:
        producer = Producer({"bootstrap.servers": cluster.bootstrap})

By default the broker runs in a thread of this process, which starts fastest and is easy to debug;
`process=True` runs the `barnabas start` command instead. `stop` shuts down in order. `kill` ends
a process by SIGKILL, and a broker in a thread as a power failure would: what was not flushed is
gone. After either, `start` brings them back on the same port. Leaving the `with` block (or `close`)
stops them and removes the data.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from barnabas.model.errors import InvalidValueError

if TYPE_CHECKING:
    from types import TracebackType


class Runner(Protocol):
    """A way to run one broker."""

    def start(self, options: Mapping[str, str]) -> tuple[str, int]:
        """Start a broker and return the address at which it is ready."""

    def stop(self) -> None:
        """Shut the broker down in order."""

    def kill(self) -> None:
        """End the broker at once, without a flush."""


class Cluster:
    """Some brokers and their data; see the module's text."""

    def __init__(
        self,
        brokers: int = 1,
        options: Mapping[str, object] | None = None,
        *,
        process: bool = False,
        runner: Runner | None = None,
    ) -> None:
        """Describe a cluster; nothing starts yet.

        `options` are the broker's own, by their Kafka names. `runner` replaces the way to run a
        broker.
        """
        if brokers != 1:
            raise InvalidValueError(f"brokers={brokers}: a cluster for tests has one broker")
        self._options = {name: str(value) for name, value in (options or {}).items()}
        self._runner = runner or _runner(process)
        self._directory: Path | None = None
        self._address: tuple[str, int] | None = None
        self._running = False

    @property
    def bootstrap(self) -> str:
        """Return the address to give to clients; the cluster must have been started."""
        if self._address is None:
            raise InvalidValueError("the cluster was not started: call start() or use `with`")
        host, port = self._address
        return f"{host}:{port}"

    @property
    def data_dir(self) -> Path:
        """Return the directory that holds everything of this cluster until it is closed."""
        if self._directory is None:
            self._directory = Path(tempfile.mkdtemp(prefix="barnabas-"))
        return self._directory

    def start(self) -> Cluster:
        """Start the brokers and return when they are ready."""
        assert not self._running, "the cluster is running already"
        port = self._address[1] if self._address is not None else 0
        options = {
            "broker.id": "0",
            "listeners": f"PLAINTEXT://127.0.0.1:{port}",
            "log.dirs": str(self.data_dir / "broker-0"),
            **self._options,
        }
        self._address = self._runner.start(options)
        self._running = True
        return self

    def stop(self) -> None:
        """Shut down in order; the data stays for another `start`."""
        if self._running:
            self._running = False
            self._runner.stop()

    def kill(self) -> None:
        """End the brokers as a crash would; the data stays for another `start`."""
        if self._running:
            self._running = False
            self._runner.kill()

    def close(self) -> None:
        """Stop the brokers and remove their data."""
        try:
            self.stop()
        finally:
            if self._directory is not None:
                shutil.rmtree(self._directory)
                self._directory = None

    def __enter__(self) -> Cluster:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _runner(process: bool) -> Runner:
    if process:
        from barnabas.testing.process import ProcessRunner

        return ProcessRunner()
    from barnabas.testing.thread import ThreadRunner

    return ThreadRunner()

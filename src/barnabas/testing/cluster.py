"""`Cluster`: real brokers for a test, on free ports of this machine, in a temporary directory.

    with Cluster(options={"auto.create.topics.enable": "false"}) as cluster:
        producer = Producer({"bootstrap.servers": cluster.bootstrap})

    with Cluster(brokers=3) as cluster:
        cluster.kill(1)          # as a power failure: what was not flushed is gone
        cluster.restart(1)

    with Cluster(brokers=3, wired=True) as cluster:
        cluster.partition(0, 1)  # nothing passes between the two; both are alive for the others
        cluster.heal()

By default the brokers run in a thread of this process, which starts fastest and is easy to debug;
`process=True` runs the `barnabas start` command instead, several of them on a real ZooKeeper
server (given, or started for the cluster; it needs Java). `stop` shuts down in order. `kill` ends
a process by SIGKILL, and a broker in a thread as a power failure would: what was not flushed is
gone. After either, `start` brings them back on the same ports. Leaving the `with` block (or
`close`) stops them and removes the data.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from barnabas.model.errors import InvalidValueError

if TYPE_CHECKING:
    from types import TracebackType

    from barnabas.testing.process import ProcessRunner
    from barnabas.testing.shared_loop import SharedLoop
    from barnabas.testing.wires import Wires
    from barnabas.testing.zookeeper import ZooKeeperServer


class Runner(Protocol):
    """A way to run one broker."""

    def start(self, options: Mapping[str, str]) -> tuple[str, int]:
        """Start a broker and return the address at which it is ready."""

    def stop(self) -> None:
        """Shut the broker down in order."""

    def kill(self) -> None:
        """End the broker at once, without a flush."""


class Member:
    """One broker of a cluster: how it runs, and where."""

    def __init__(self, number: int, runner: Runner) -> None:
        self.number = number
        self.runner = runner
        self.address: tuple[str, int] | None = None
        self.running = False
        self.peers: tuple[int, int] | None = None
        """Where it listens for other brokers, and the front of its wires that they dial."""


class Cluster:
    """Some brokers and their data; see the module's text."""

    def __init__(
        self,
        brokers: int = 1,
        options: Mapping[str, object] | None = None,
        *,
        process: bool = False,
        racks: Sequence[str] = (),
        wired: bool = False,
        zookeeper: str | None = None,
        runner: Runner | None = None,
    ) -> None:
        """Describe a cluster; nothing starts yet.

        `options` are the broker's own, by their Kafka names; groups do not wait for more members
        unless `group.initial.rebalance.delay.ms` says so. `racks` gives each broker its
        `broker.rack`, in their order. `wired` brokers talk to each other over wires that
        `partition` cuts. `zookeeper` is the address of a
        server that runs already, for brokers in processes. `runner` replaces the way to run a
        single broker.
        """
        if brokers < 1 or (runner is not None and brokers != 1):
            raise InvalidValueError(f"brokers={brokers}: a cluster has at least one broker")
        if racks and len(racks) != brokers:
            raise InvalidValueError(f"{len(racks)} racks for {brokers} brokers: name one for each")
        if wired and brokers == 1:
            raise InvalidValueError("wired=True: one broker alone has no wires; want brokers=2")
        self._racks = tuple(racks)
        self._wired = wired
        self._wires: Wires | None = None
        self._options = {name: str(value) for name, value in (options or {}).items()}
        self._count = brokers
        self._process = process
        self._zookeeper = zookeeper
        self._server: ZooKeeperServer | None = None
        self._home: SharedLoop | None = None
        self._directory: Path | None = None
        self._members: list[Member] = [] if runner is None else [Member(0, runner)]

    @property
    def bootstrap(self) -> str:
        """Return the addresses to give to clients; the cluster must have been started."""
        addresses = [member.address for member in self._members if member.address is not None]
        if not addresses:
            raise InvalidValueError("the cluster was not started: call start() or use `with`")
        return ",".join(f"{host}:{port}" for host, port in addresses)

    @property
    def data_dir(self) -> Path:
        """Return the directory that holds everything of this cluster until it is closed."""
        if self._directory is None:
            self._directory = Path(tempfile.mkdtemp(prefix="barnabas-"))
        return self._directory

    def start(self, number: int | None = None) -> Cluster:
        """Start the brokers (or one of them) and return when they are ready."""
        if not self._members:
            self._members = self._make_members()
            if self._wired:
                self._lay_wires()
        for member in self._chosen(number):
            assert not member.running, f"broker {member.number} is running already"
            member.address = member.runner.start(self._options_of(member))
            member.running = True
        return self

    def _options_of(self, member: Member) -> dict[str, str]:
        port = member.address[1] if member.address is not None else 0
        options = {
            "broker.id": str(member.number),
            "listeners": f"PLAINTEXT://127.0.0.1:{port}",
            "log.dirs": str(self.data_dir / f"broker-{member.number}"),
            "group.initial.rebalance.delay.ms": "0",  # a test waits for nobody else to join
        }
        if member.peers is not None:
            own, front = member.peers
            clients = options["listeners"]
            options |= {
                "listeners": f"{clients},PEERS://127.0.0.1:{own}",
                "advertised.listeners": f"{clients},PEERS://127.0.0.1:{front}",
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,PEERS:PLAINTEXT",
                "inter.broker.listener.name": "PEERS",
            }
        if self._racks:
            options["broker.rack"] = self._racks[member.number]
        address = self._server.address if self._server is not None else self._zookeeper
        if address is not None:
            options["zookeeper.connect"] = address
        return {**options, **self._options}

    def stop(self, number: int | None = None) -> None:
        """Shut down in order, all or one; the data stays for another `start`."""
        with ExitStack() as ends:  # one that fails to stop leaves no other running
            for member in reversed(self._chosen(number)):
                if member.running:
                    member.running = False
                    ends.callback(member.runner.stop)

    def kill(self, number: int | None = None) -> None:
        """End brokers, all or one, as a crash would; the data stays for another `start`."""
        with ExitStack() as ends:
            for member in reversed(self._chosen(number)):
                if member.running:
                    member.running = False
                    ends.callback(member.runner.kill)

    def restart(self, number: int) -> None:
        """Start a broker again, after shutting it down if it runs."""
        self.stop(number)
        self.start(number)

    def pause(self, number: int) -> None:
        """Freeze a broker's process, as an overloaded machine would."""
        self._process_of(number).pause()

    def resume(self, number: int) -> None:
        """Let a frozen broker go on, as if nothing had happened."""
        self._process_of(number).resume()

    def partition(self, one: int, other: int, *, one_way: bool = False) -> None:
        """Let nothing pass between two brokers, or only nothing from the one to the other.

        Nobody is told, as on a real wire; ZooKeeper and clients still reach both.
        """
        wires = self._wires_of(one, other)
        wires.cut(one, other)
        if not one_way:
            wires.cut(other, one)

    def heal(self) -> None:
        """Let everything pass again between all brokers."""
        self._wires_of().heal()

    def _wires_of(self, *numbers: int) -> Wires:
        if self._wires is None:
            raise InvalidValueError("only brokers with wires can be cut apart: use wired=True")
        if len(set(numbers)) != len(numbers) or any(n not in range(self._count) for n in numbers):
            raise InvalidValueError(
                f"brokers {numbers}: want two of those from 0 to {self._count - 1}"
            )
        return self._wires

    def _process_of(self, number: int) -> ProcessRunner:
        from barnabas.testing.process import ProcessRunner

        runner = self._members[number].runner
        if not isinstance(runner, ProcessRunner):
            raise InvalidValueError("only a broker in a process can be paused: use process=True")
        return runner

    def close(self) -> None:
        """Stop the brokers and remove their data."""
        try:
            # Their data goes in a moment: handing partitions over to each other would only take
            # time. Brokers of somebody else's ZooKeeper server should leave it in order, though.
            if self._count > 1 and self._zookeeper is None:
                self.kill()
            self.stop()
        finally:
            if self._home is not None:
                self._home.close()
                self._home = None
            if self._wires is not None:
                self._wires.close()
                self._wires = None
            if self._server is not None:
                self._server.close()
                self._server = None
            if self._directory is not None:
                shutil.rmtree(self._directory)
                self._directory = None

    def _lay_wires(self) -> None:
        from barnabas.testing.wires import Wires
        from barnabas.testing.zookeeper import free_port

        self._wires = Wires().start()
        for member in self._members:
            own = free_port()
            member.peers = own, self._wires.front(member.number, own)

    def _chosen(self, number: int | None) -> list[Member]:
        return self._members if number is None else [self._members[number]]

    def _make_members(self) -> list[Member]:
        if self._process:
            from barnabas.testing.process import ProcessRunner

            if self._count > 1 and self._zookeeper is None:
                self._server = _zookeeper()
            return [Member(number, ProcessRunner()) for number in range(self._count)]
        if self._count == 1:
            from barnabas.testing.thread import ThreadRunner

            return [Member(0, ThreadRunner())]
        from barnabas.testing.shared_loop import SharedLoop, SharedRunner

        home = self._home = SharedLoop()
        return [Member(n, SharedRunner(home, self.data_dir)) for n in range(self._count)]

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


def _zookeeper() -> ZooKeeperServer:
    from barnabas.testing.zookeeper import ZooKeeperServer, find_classpath

    classpath = find_classpath()
    if classpath is None:
        raise InvalidValueError(
            "several brokers in processes need a ZooKeeper server: install Java and ZooKeeper "
            "(Debian's package is called zookeeper), or give the address of one"
        )
    return ZooKeeperServer(classpath).start()

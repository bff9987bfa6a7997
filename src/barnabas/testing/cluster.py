"""`Cluster`: real brokers for tests, on free local ports, in a temporary directory.

    with Cluster(options={"auto.create.topics.enable": "false"}) as cluster:
        producer = Producer({"bootstrap.servers": cluster.bootstrap})

    with Cluster(brokers=3) as cluster:
        cluster.kill(1)          # like a power failure: unflushed data is lost
        cluster.restart(1)

    with Cluster(brokers=3, wired=True) as cluster:
        cluster.partition(0, 1)  # no traffic between the two; both still reach the others
        cluster.isolate(2)       # no traffic with any broker or client
        cluster.slow(50)         # everything takes 50 ms longer
        cluster.heal()

    with Cluster(security="sasl_ssl") as cluster:
        cluster.add_user("alice")
        cluster.allow("alice", "read", "write", topic="orders")
        producer = Producer(cluster.client_options("alice", style="librdkafka"))

By default, the brokers run in a thread of this process, which starts fastest and is easy to debug.
`process=True` runs the `barnabas start` command instead; several brokers then need a real ZooKeeper
server (given, or started for the cluster, which needs Java). `processes=True` runs each broker in a
process of its own, too, on a tree that this process serves: no ZooKeeper, and a session ends with
its process, as with `barnabas start --workers`. `stop` is a controlled shutdown.
`kill` kills a process with SIGKILL, and a broker in a thread like a power failure: unflushed data
is lost. After either, `start` brings brokers back on the same ports. Leaving the `with` block (or
`close`) stops the brokers and removes their data.

With `metrics=True` each broker serves its metrics, at `metrics_url(number)`.

`security` is one of Kafka's protocols: `sasl_ssl` and `sasl_plaintext` (users have passwords, by
SCRAM), or `ssl` (users have certificates). ACLs are on, and `admin` is a super user.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakSet

from barnabas.model.errors import InvalidValueError

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future
    from types import TracebackType

    from barnabas.coordination.socket.server import TreeServer
    from barnabas.testing.process import ProcessRunner
    from barnabas.testing.security import ClusterSecurity
    from barnabas.testing.shared_loop import SharedLoop
    from barnabas.testing.wires import Wires
    from barnabas.testing.zookeeper import ZooKeeperServer


class Runner(Protocol):
    """A way to run one broker."""

    def start(self, options: Mapping[str, str]) -> tuple[str, int]:
        """Start a broker and return its address when it is ready."""

    def stop(self) -> None:
        """Shut the broker down cleanly."""

    def kill(self) -> None:
        """Kill the broker, without a flush."""


class Member:
    """One broker of a cluster: how it runs, and where."""

    def __init__(self, number: int, runner: Runner) -> None:
        self.number = number
        self.runner = runner
        self.address: tuple[str, int] | None = None
        self.running = False
        self.metrics_port: int | None = None
        self.peers: tuple[int, int] | None = None
        """Port on which it listens for other brokers, and port of the proxy that they dial."""
        self.front: int | None = None
        """Port of the proxy that clients dial."""

    @property
    def dialled(self) -> tuple[str, int] | None:
        """The address that clients dial, if it was ever started."""
        if self.address is None or self.front is None:
            return self.address
        return self.address[0], self.front


NEVER_MS = 10**11
"""A time that no test lasts."""

RUNNING: WeakSet[Cluster] = WeakSet()
"""Clusters of this process that were started and not closed."""


class Cluster:
    """Brokers and their data; see the module's docstring."""

    def __init__(
        self,
        brokers: int = 1,
        options: Mapping[str, object] | None = None,
        *,
        process: bool = False,
        processes: bool = False,
        racks: Sequence[str] = (),
        wired: bool = False,
        security: str | None = None,
        zookeeper: str | None = None,
        metrics: bool = False,
        runner: Runner | None = None,
    ) -> None:
        """Describe a cluster; nothing starts yet.

        `options` are broker options by their Kafka names; groups do not wait for more members
        unless `group.initial.rebalance.delay.ms` is set, the diary is kept in no topic unless
        `barnabas.diary.enable` is, and records do not expire unless
        `log.retention.check.interval.ms` is set. `racks` has the `broker.rack` of each broker, in
        order. `wired` brokers talk to each other and to clients through proxies, which `partition`,
        `isolate` and `slow` act on.
        `security` is the security protocol of all connections, those between brokers included.
        `zookeeper` is the address of a running server, for brokers in processes. With
        `metrics`, each broker serves its metrics over HTTP. `runner` replaces the way to run a
        single broker.
        """
        if brokers < 1 or (runner is not None and brokers != 1):
            raise InvalidValueError(f"brokers={brokers}: must be at least 1, and 1 with a runner")
        if racks and len(racks) != brokers:
            raise InvalidValueError(f"{len(racks)} racks for {brokers} brokers: must be one each")
        if processes and (process or zookeeper is not None or runner is not None):
            raise InvalidValueError(
                "processes=True: must be without process, zookeeper and runner, because the "
                "brokers run on a tree of this process"
            )
        if wired and security is not None:
            raise InvalidValueError(
                "wired=True: must be without security, because proxies read who sends a request"
            )
        self._protocol = "PLAINTEXT"
        if security is not None:
            from barnabas.testing.security import protocol_named

            self._protocol = protocol_named(security)
        self._security: ClusterSecurity | None = None
        self._racks = tuple(racks)
        self._wired = wired
        self._wires: Wires | None = None
        self._metrics = metrics
        self._options = {name: str(value) for name, value in (options or {}).items()}
        self._count = brokers
        self._process = process
        self._processes = processes
        self._tree: TreeServer | None = None
        self._zookeeper = zookeeper
        self._server: ZooKeeperServer | None = None
        self._home: SharedLoop | None = None
        self._directory: Path | None = None
        self._members: list[Member] = [] if runner is None else [Member(0, runner)]

    @property
    def bootstrap(self) -> str:
        """Return the bootstrap.servers for clients; the cluster must have been started."""
        addresses = [member.dialled for member in self._members if member.dialled is not None]
        if not addresses:
            raise InvalidValueError("the cluster was not started: call start() or use `with`")
        return ",".join(f"{host}:{port}" for host, port in addresses)

    def client_options(self, user: str = "admin", *, style: str = "kafka") -> dict[str, Any]:
        """Return the options with which a user connects; without security, the address alone.

        `style` is how a library names them: `kafka` (Java's properties, and our clients),
        `librdkafka` (confluent-kafka), `kafka-python` or `aiokafka` (arguments).
        """
        if self._protocol != "PLAINTEXT":
            return self._secured().client_options(self.bootstrap, user, style)
        dotted = style in ("kafka", "librdkafka")
        return {"bootstrap.servers" if dotted else "bootstrap_servers": self.bootstrap}

    def add_user(self, name: str, password: str | None = None) -> None:
        """Add a user, by default with a random password; also before the cluster is started.

        Users may do nothing until `allow` says so. With the protocol `ssl` they get a certificate.
        A second call changes the password.
        """
        security, running = self._secured(), self._running()
        if running:
            security.add_user(name, password, running)
        elif any(member.address is not None for member in self._members):
            raise InvalidValueError(f"user {name!r}: no broker is running that could add it")
        else:
            security.prepare_user(name, password)

    def allow(
        self,
        user: str,
        *operations: str,
        topic: str | None = None,
        group: str | None = None,
        transactional_id: str | None = None,
        cluster: bool = False,
        prefixed: bool = False,
    ) -> None:
        """Let a user (`*`: all) do operations on these resources, from any host.

        Operations have Kafka's names: `read`, `write`, `create`, `describe`, `all` and so on. A
        name may be `*`; with `prefixed`, it is the beginning of names.
        """
        self._secured().allow(
            f"User:{user}",
            operations,
            {"topic": topic, "group": group, "transactional_id": transactional_id},
            cluster=cluster,
            prefixed=prefixed,
            addresses=self._running(),
        )

    def _secured(self) -> ClusterSecurity:
        if self._protocol == "PLAINTEXT":
            raise InvalidValueError('the cluster has no users: use security="sasl_ssl"')
        if self._security is None:
            from barnabas.testing.security import ClusterSecurity

            self._security = ClusterSecurity(self._protocol, self.data_dir / "security")
        return self._security

    def _running(self) -> list[str]:
        """Return the addresses of the brokers that run."""
        return [
            f"{member.address[0]}:{member.address[1]}"
            for member in self._members
            if member.running and member.address is not None
        ]

    def metrics_url(self, number: int = 0) -> str:
        """Return where a broker serves its metrics; the cluster must have been started."""
        port = self._members[number].metrics_port if number < len(self._members) else None
        if port is None:
            raise InvalidValueError("no metrics are served: start a Cluster(metrics=True)")
        return f"http://127.0.0.1:{port}/metrics"

    @property
    def data_dir(self) -> Path:
        """Return the directory of all data of this cluster, until it is closed."""
        if self._directory is None:
            self._directory = Path(tempfile.mkdtemp(prefix="barnabas-"))
        return self._directory

    def start(self, number: int | None = None) -> Cluster:
        """Start the brokers (or one of them) and return when they are ready."""
        if not self._members:
            self._members = self._make_members()
            if self._wired:
                self._lay_wires()
            if self._metrics:
                self._choose_metrics_ports()
        chosen = self._chosen(number)
        if self._processes:  # each waits for nobody but its own process
            from concurrent.futures import ThreadPoolExecutor

            with ThreadPoolExecutor(len(chosen)) as pool:
                list(pool.map(self._start, chosen))
        else:
            for member in chosen:
                self._start(member)
        RUNNING.add(self)
        return self

    def _start(self, member: Member) -> None:
        assert not member.running, f"broker {member.number} is already running"
        member.address = member.runner.start(self._options_of(member))
        member.running = True
        if self._wires is not None and member.front is not None:
            self._wires.aim(member.front, member.address[1])

    def _options_of(self, member: Member) -> dict[str, str]:
        port = member.address[1] if member.address is not None else 0
        options = {
            "broker.id": str(member.number),
            "listeners": f"{self._protocol}://127.0.0.1:{port}",
            "log.dirs": str(self.data_dir / f"broker-{member.number}"),
            "group.initial.rebalance.delay.ms": "0",  # tests need not wait for more members
            "barnabas.diary.enable": "false",  # a test has the topics that it makes
            # And the records, with whatever timestamps it gives them.
            "log.retention.check.interval.ms": str(NEVER_MS),
        }
        if member.metrics_port is not None:
            options["barnabas.metrics.listener"] = f"127.0.0.1:{member.metrics_port}"
        if self._protocol != "PLAINTEXT":
            options |= self._secured().broker_options()
        if member.peers is not None and member.front is not None:
            own, front = member.peers
            clients = f"PLAINTEXT://127.0.0.1:{member.front}"
            options |= {
                "listeners": f"{options['listeners']},PEERS://127.0.0.1:{own}",
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
        """Shut down all brokers, or one, cleanly; the data stays for another `start`."""
        with ExitStack() as ends:  # a broker that fails to stop must not keep others running
            for member in reversed(self._chosen(number)):
                if member.running:
                    member.running = False
                    ends.callback(member.runner.stop)

    def kill(self, number: int | None = None) -> None:
        """Kill all brokers, or one, like a crash; the data stays for another `start`."""
        with ExitStack() as ends:
            for member in reversed(self._chosen(number)):
                if member.running:
                    member.running = False
                    ends.callback(member.runner.kill)

    def restart(self, number: int) -> None:
        """Restart a broker, after a clean shutdown if it runs."""
        self.stop(number)
        self.start(number)

    @property
    def running(self) -> list[int]:
        """The numbers of the brokers that were started, and neither stopped nor killed since."""
        return [member.number for member in self._members if member.running]

    def pause(self, number: int) -> None:
        """Freeze a broker's process, like an overloaded machine."""
        self._process_of(number).pause()

    def resume(self, number: int) -> None:
        """Resume a frozen broker."""
        self._process_of(number).resume()

    def partition(self, one: int, other: int, *, one_way: bool = False) -> None:
        """Drop all traffic between two brokers, or only from `one` to `other`.

        Neither is notified, as in a real network; ZooKeeper and clients still reach both.
        """
        wires = self._wires_of(one, other)
        wires.cut(one, other)
        if not one_way:
            wires.cut(other, one)

    def isolate(self, number: int, *, clients_only: bool = False) -> None:
        """Drop all traffic of a broker with clients and, unless `clients_only`, other brokers.

        It still reaches ZooKeeper, which keeps it in the cluster.
        """
        self._wires_of(number).part([number], self._others_of(number, clients_only=clients_only))

    def slow(self, latency_ms: float, number: int | None = None) -> None:
        """Have all traffic of one broker, or of all, take so much longer in each direction."""
        if latency_ms < 0:
            raise InvalidValueError(f"latency_ms={latency_ms}: must be at least 0")
        for one in [number] if number is not None else range(self._count):
            wires = self._wires_of(one)
            for other in self._others_of(one):
                wires.delay(one, other, latency_ms / 1000)
                wires.delay(other, one, latency_ms / 1000)

    def heal(self, number: int | None = None) -> None:
        """Restore all traffic; with a number, end what cuts off this broker, slow or not."""
        if number is None:
            self._wires_of().heal()
            return
        wires = self._wires_of(number)
        for other in self._others_of(number):
            wires.join(number, other)
            wires.join(other, number)

    @property
    def records_sent(self) -> int:
        """How many records clients have sent to wired brokers, those sent again included."""
        return self._wires_of().sent

    def after_records(self, count: int, action: Callable[[], None]) -> Future[None]:
        """Run an action, such as a `kill`, once clients have sent `count` more records.

        The request with the last of them reaches its broker; until the action returns, no further
        request does, and no response leaves: clients learn of neither. The result is the action's.
        """
        if count < 1:
            raise InvalidValueError(f"count={count}: must be at least 1")
        return self._wires_of().after_records(count, action)

    def _others_of(self, number: int, *, clients_only: bool = False) -> list[int]:
        from barnabas.testing.wires import CLIENTS

        others = [] if clients_only else [n for n in range(self._count) if n != number]
        return [CLIENTS, *others]

    def _wires_of(self, *numbers: int) -> Wires:
        if self._wires is None:
            raise InvalidValueError("only traffic of wired brokers can be cut: use wired=True")
        if len(set(numbers)) != len(numbers) or any(n not in range(self._count) for n in numbers):
            wanted = "two different ones" if len(numbers) == 2 else "one"
            raise InvalidValueError(
                f"brokers {numbers}: must be {wanted} from 0 to {self._count - 1}"
            )
        return self._wires

    def _process_of(self, number: int) -> ProcessRunner:
        from barnabas.testing.process import ProcessRunner

        runner = self._members[number].runner
        if not isinstance(runner, ProcessRunner):
            raise InvalidValueError("only a broker in a process can be paused: use processes=True")
        return runner

    def close(self) -> None:
        """Stop the brokers and remove their data."""
        RUNNING.discard(self)
        try:
            # Their data is about to be deleted: a controlled shutdown would only take time. On a
            # ZooKeeper server that is not ours, though, brokers should deregister.
            if self._count > 1 and self._zookeeper is None:
                self.kill()
            self.stop()
        finally:
            if self._home is not None:
                if self._tree is not None:
                    self._home.run(self._tree.stop())
                    self._tree = None
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
                self._security = None

    def _lay_wires(self) -> None:
        from barnabas.testing.wires import CLIENTS, Wires
        from barnabas.testing.zookeeper import free_port

        self._wires = Wires().start()
        for member in self._members:
            own = free_port()
            member.peers = own, self._wires.front(member.number, own)
            member.front = self._wires.front(member.number, None, CLIENTS)

    def _choose_metrics_ports(self) -> None:
        from barnabas.testing.zookeeper import free_port

        for member in self._members:
            member.metrics_port = free_port()

    def _chosen(self, number: int | None) -> list[Member]:
        return self._members if number is None else [self._members[number]]

    def _make_members(self) -> list[Member]:
        if self._process:
            from barnabas.testing.process import ProcessRunner

            if self._count > 1 and self._zookeeper is None:
                self._server = _zookeeper()
            return [Member(number, ProcessRunner()) for number in range(self._count)]
        if self._processes:
            from barnabas.coordination.socket.server import TreeServer
            from barnabas.testing.process import WorkerRunner
            from barnabas.testing.shared_loop import SharedLoop

            home = self._home = SharedLoop()
            self._tree = TreeServer(home.store(self.data_dir), self.data_dir / "coordination.sock")
            home.run(self._tree.start())
            return [Member(number, WorkerRunner(self._tree.path)) for number in range(self._count)]
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
            "(Debian's package is called zookeeper), or pass zookeeper=HOST:PORT"
        )
    return ZooKeeperServer(classpath).start()

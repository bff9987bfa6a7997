"""Brokers as real processes on a real ZooKeeper, with switches in all wires between them."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from types import TracebackType

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ClusterMetadata, NewTopic
from kazoo.client import KazooClient
from tests.system.cluster_security import ADMIN, ClusterKeys
from tools.processes import free_port

from barnabas.testing.process import ProcessRunner
from barnabas.testing.wires import ZOOKEEPER, Wires
from barnabas.testing.zookeeper import ZooKeeperServer

DEADLINE_S = 120.0
SESSION_MS = 3000
OPTIONS = {
    "zookeeper.session.timeout.ms": SESSION_MS,
    "zookeeper.connection.timeout.ms": 20000,
    "min.insync.replicas": 2,
    "default.replication.factor": 3,
    "offsets.topic.num.partitions": 3,
    "transaction.state.log.num.partitions": 3,
    "replica.lag.time.max.ms": 2000,
    "replica.socket.timeout.ms": 3000,
    "replica.fetch.wait.max.ms": 300,
    "controller.socket.timeout.ms": 3000,
    "controlled.shutdown.retry.backoff.ms": 200,
    "group.initial.rebalance.delay.ms": 0,
    "auto.create.topics.enable": "false",
    # Each replica compacts when it likes to: bytes are compared.
    "log.cleaner.enable": "false",
}


def wait_for(
    condition: Callable[[], object], what: str | Callable[[], str], deadline_s: float = DEADLINE_S
) -> None:
    """Wait until something holds, and fail with its name if it never does."""
    deadline = time.monotonic() + deadline_s
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail(f"in vain: {what if isinstance(what, str) else what()}")
        time.sleep(0.05)


def metadata(admin: AdminClient, topic: str | None = None) -> ClusterMetadata:
    """Ask for the metadata, again and again: the broker that is asked first may be frozen."""
    deadline = time.monotonic() + DEADLINE_S
    while True:
        try:
            return admin.list_topics(topic, timeout=1) if topic else admin.list_topics(timeout=1)
        except KafkaException as failure:
            code = failure.args[0].code()
            if code not in (KafkaError._TIMED_OUT, KafkaError._TRANSPORT):
                raise
            if time.monotonic() > deadline:
                raise


class Node:
    """One broker of the cluster: its process, its ports, its place on the disk."""

    def __init__(self, number: int, folder: Path) -> None:
        self.number = number
        self.folder = folder
        self.runner = ProcessRunner()
        self.client_port = free_port()
        self.peer_port = free_port()
        self.running = False
        self.paused = False


class WiredCluster:
    """Some brokers that are started, killed, frozen and cut off; their data goes with the test."""

    def __init__(
        self,
        classpath: str,
        folder: Path,
        brokers: int = 3,
        options: Mapping[str, object] | None = None,
        keys: ClusterKeys | None = None,
    ) -> None:
        """Describe a cluster; with `keys` all connections to brokers are secured."""
        self.keys = keys
        self.zookeeper = ZooKeeperServer(classpath)
        self.wires = Wires()
        self.nodes = [Node(number, folder / f"broker-{number}") for number in range(brokers)]
        self._options = {name: str(value) for name, value in {**OPTIONS, **(options or {})}.items()}
        self._own: dict[int, dict[str, str]] = {}
        self._stack = ExitStack()

    @property
    def bootstrap(self) -> str:
        """All brokers, for clients."""
        return ",".join(f"127.0.0.1:{node.client_port}" for node in self.nodes)

    @property
    def login(self) -> dict[str, str]:
        """The options with which clients log in, besides the address; none without security."""
        return {} if self.keys is None else self.keys.client_options()

    @cached_property
    def admin(self) -> AdminClient:
        """A client that knows all brokers."""
        return self._admin(self.bootstrap)

    def admin_of(self, node: Node) -> AdminClient:
        """Return a client that asks one broker first."""
        return self._admin(f"127.0.0.1:{node.client_port}")

    def _admin(self, bootstrap: str) -> AdminClient:
        login = {} if self.keys is None else self.keys.client_options(ADMIN)
        quick = {"socket.timeout.ms": 5000}  # the broker that it asks may be frozen
        return AdminClient({"bootstrap.servers": bootstrap, "log_level": 0, **quick, **login})

    def tree(self) -> KazooClient:
        """Return a started client of the ZooKeeper server; the cluster ends it."""
        client = KazooClient(self.zookeeper.address)
        client.start(DEADLINE_S)
        self._stack.callback(client.close)
        self._stack.callback(client.stop)
        return client

    def __enter__(self) -> WiredCluster:
        try:
            self._stack.enter_context(self.zookeeper)
            self._stack.enter_context(self.wires)
            self._stack.callback(self._kill_all)
            for node in self.nodes:
                self._own[node.number] = self._options_of(node)
                self.start(node.number)
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.close()

    def _kill_all(self) -> None:
        for node in self.nodes:
            self.kill(node.number)

    def _options_of(self, node: Node) -> dict[str, str]:
        dialler = None if self.keys is None else self._dialler
        peers = self.wires.front(node.number, node.peer_port, dialler)
        tree = self.wires.front(ZOOKEEPER, self.zookeeper.port, node.number)
        clients = f"CLIENTS://127.0.0.1:{node.client_port}"
        protocol = "PLAINTEXT" if self.keys is None else "SASL_SSL"
        return {
            **self._options,
            **({} if self.keys is None else self.keys.broker_options(node.number)),
            "broker.id": str(node.number),
            "log.dirs": str(node.folder),
            "listeners": f"{clients},PEERS://127.0.0.1:{node.peer_port}",
            "advertised.listeners": f"{clients},PEERS://127.0.0.1:{peers}",
            "listener.security.protocol.map": f"CLIENTS:{protocol},PEERS:{protocol}",
            "inter.broker.listener.name": "PEERS",
            "zookeeper.connect": f"127.0.0.1:{tree}",
        }

    def _dialler(self, port: int, front: int) -> int:
        """Return the broker that has a connection from a port; what it says is encrypted."""
        for node in self.nodes:
            with contextlib.suppress(FileNotFoundError):  # its process was just killed
                if node.running and _has_connection(node.runner.pid, port, front):
                    return node.number
        raise ConnectionError(f"no broker has a connection from port {port}")

    # -- deeds --------------------------------------------------------------------------------

    def start(self, number: int) -> None:
        """Start a broker and return when it is ready."""
        node = self.nodes[number]
        if not node.running:
            node.runner.start(self._own[number])
            node.running = True

    def stop(self, number: int) -> None:
        """Shut a broker down in order."""
        node = self.nodes[number]
        if node.running:
            node.running = False
            node.runner.stop()

    def kill(self, number: int) -> None:
        """End a broker with SIGKILL."""
        node = self.nodes[number]
        if node.running:
            node.running = node.paused = False
            node.runner.kill()

    def pause(self, number: int) -> None:
        """Freeze a broker with SIGSTOP."""
        node = self.nodes[number]
        if node.running:
            node.paused = True
            node.runner.pause()

    def resume(self, number: int) -> None:
        """Let a frozen broker go on."""
        node = self.nodes[number]
        if node.paused:
            node.paused = False
            node.runner.resume()

    def heal(self) -> None:
        """Undo every fault: all wires pass, ZooKeeper and all brokers run."""
        self.wires.heal()
        if not self.zookeeper.running:
            self.zookeeper.start()
        for node in self.nodes:
            self.resume(node.number)
            self.start(node.number)

    # -- what can be asked --------------------------------------------------------------------

    def create(self, topic: str, partitions: int = 3, replicas: int = 3) -> None:
        """Create a topic, and wait until all brokers know its leaders."""
        wait_for(lambda: self._created(NewTopic(topic, partitions, replicas)), f"{topic} is there")
        for node in self.nodes:
            if node.running:
                wait_for(
                    lambda node=node: self._has_leaders(node, topic),  # type: ignore[misc]
                    f"broker {node.number} knows {topic}",
                )

    def _created(self, topic: NewTopic) -> bool:
        # The client waits for the controller that it heard of last, and, where there was none, for
        # nothing until its time is up: it does not look again by itself.
        if metadata(self.admin).controller_id < 0:
            return False
        try:
            self.admin.create_topics([topic])[topic.topic].result(DEADLINE_S)
        except KafkaException as failure:
            if failure.args[0].code() != KafkaError.NOT_CONTROLLER:
                raise
            return False
        return True

    def _has_leaders(self, node: Node, topic: str) -> bool:
        admin = self.admin_of(node)
        found = metadata(admin, topic).topics[topic].partitions
        return bool(found) and all(each.leader >= 0 for each in found.values())

    def controller(self, *, in_office: bool = False) -> int:
        """Return the broker that the tree names as the controller, or -1.

        A node of a session that its broker has lost names it until that session ends; `in_office`
        is only who holds it in the session in which it is registered.
        """
        tree = KazooClient(self.zookeeper.address)
        tree.start(DEADLINE_S)
        try:
            if tree.exists("/controller") is None:
                return -1
            data, stat = tree.get("/controller")
            number: int = json.loads(data)["brokerid"]
            registered = tree.exists(f"/brokers/ids/{number}")
            is_present = registered and registered.ephemeralOwner == stat.ephemeralOwner
            return number if is_present or not in_office else -1
        finally:
            tree.stop()
            tree.close()

    def leader_of(self, topic: str, partition: int = 0) -> int:
        """Return who leads a partition, or -1."""
        topics = metadata(self.admin, topic).topics
        number: int = topics[topic].partitions[partition].leader
        return number

    def wait_in_sync(self, *topics: str) -> None:
        """Wait until all replicas of topics are in sync, as every broker tells."""
        for node in self.nodes:
            admin = self.admin_of(node)
            for topic in topics:
                wait_for(
                    lambda admin=admin, topic=topic: _in_sync(admin, topic),  # type: ignore[misc]
                    lambda node=node, admin=admin, topic=topic: (  # type: ignore[misc]
                        f"broker {node.number} sees {topic} in sync: {_described(admin, topic)}"
                    ),
                )

    def described(self, topic: str) -> str:
        """Return what the tree and every broker say of a topic, for a failure's text."""
        seen = {node.number: _described(self.admin_of(node), topic) for node in self.nodes}
        return f"controller {self.controller(in_office=True)}, partitions by broker {seen}"

    def last_lines(self, count: int = 30) -> str:
        """Return what each broker logged last."""
        files = [node.folder.with_name(f"{node.folder.name}.err") for node in self.nodes]
        tails = (path.read_text().splitlines()[-count:] for path in files if path.exists())
        return "\n\n".join("\n".join(tail) for tail in tails)

    def bytes_of(self, number: int, topic: str, partition: int) -> bytes:
        """Return a replica's log, all segments after each other."""
        folder = self.nodes[number].folder / f"{topic}-{partition}"
        return b"".join(path.read_bytes() for path in sorted(folder.glob("*.log")))

    def wait_replicas_equal(self, topic: str, partitions: int) -> None:
        """Wait until all replicas of a topic have the same bytes; nobody may write meanwhile."""
        for partition in range(partitions):
            wait_for(
                lambda partition=partition: (  # type: ignore[misc]
                    len({self.bytes_of(node.number, topic, partition) for node in self.nodes}) == 1
                ),
                lambda partition=partition: (  # type: ignore[misc]
                    f"equal replicas of {topic}-{partition}: sizes "
                    f"{[len(self.bytes_of(n.number, topic, partition)) for n in self.nodes]}"
                ),
            )


def _has_connection(pid: int, port: int, far_port: int) -> bool:
    """Return whether a process has a connection between two ports of this machine."""
    rows = (line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:])
    ends = f":{port:04X}", f":{far_port:04X}"
    sockets = {
        f"socket:[{row[9]}]"
        for row in rows
        if row[1].endswith(ends[0]) and row[2].endswith(ends[1])
    }
    for each in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # it was closed meanwhile
            if os.readlink(each) in sockets:
                return True
    return False


def _in_sync(admin: AdminClient, topic: str) -> bool:
    found = metadata(admin, topic).topics[topic].partitions
    return bool(found) and all(
        each.leader >= 0 and len(each.isrs) == len(each.replicas) for each in found.values()
    )


def _described(admin: AdminClient, topic: str) -> str:
    found = metadata(admin, topic).topics[topic].partitions
    return str([(each.id, each.leader, each.isrs) for each in found.values()])

"""The brokers of a simulated cluster: started, watched, and looked into when all is over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from tests.simulation.cluster.answers import NOT_HERE, SPEAKS, said
from tests.simulation.cluster.security import add_users, broker_options
from tests.simulation.cluster.witness import Witness

from barnabas.broker.broker import Broker
from barnabas.config.broker import BrokerOptions
from barnabas.log import partition_log
from barnabas.log.partition_log import PartitionLog
from barnabas.metadata import tree_schema as nodes
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError
from barnabas.model.ids import TopicPartition
from barnabas.records.batch import read_headers
from barnabas.replication.partition import Partition
from barnabas.simulation.world import Host, World
from barnabas.wire.messages.produce import ProduceResponse

partition_log.THOROUGH = True

PORT = 9092
SESSION_MS = 2000

OPTIONS = {
    "log.dirs": "/data",
    "barnabas.diary.enable": "false",
    "log.segment.bytes": "3000",
    "log.index.interval.bytes": "200",
    "file.delete.delay.ms": "500",
    "min.insync.replicas": "2",
    "default.replication.factor": "3",
    "auto.create.topics.enable": "false",
    "zookeeper.session.timeout.ms": str(SESSION_MS),
    "replica.lag.time.max.ms": "1500",
    "replica.fetch.wait.max.ms": "300",
    "replica.fetch.backoff.ms": "100",
    "replica.socket.timeout.ms": "1000",
    "replica.high.watermark.checkpoint.interval.ms": "1000",
    "controller.socket.timeout.ms": "1000",
    "controlled.shutdown.retry.backoff.ms": "200",
    "request.timeout.ms": "1500",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "3",
    "offsets.commit.timeout.ms": "2000",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
}


class WatchedBroker(Broker):
    """A broker that shows the witness what it takes on."""

    def __init__(self, witness: Witness, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._witness = witness
        self._watches_partitions = False

    def controller_seen(self, controller_id: int, controller_epoch: int) -> None:
        self._watch_partitions()
        self._witness.controls(controller_id, controller_epoch)
        super().controller_seen(controller_id, controller_epoch)

    def role_taken(self, partition: Partition) -> None:
        if partition.is_assigned_leader:
            self._witness.leads(self.broker_id, partition)
        if partition.is_leader:
            self._witness.shows(partition)
        super().role_taken(partition)

    def _watch_partitions(self) -> None:
        """Show the witness every watermark; called before the controller gives the first role."""
        if self._watches_partitions:
            return
        assert not self.partitions, "nothing is hosted before the controller has spoken"
        self._watches_partitions = True
        watermark_rose, appended = self.partitions.watermark_rose, self.partitions.appended

        def watched(partition: Partition, event: Callable[[Partition], None]) -> None:
            if partition.is_leader:
                self._witness.shows(partition)
            event(partition)

        self.partitions.watermark_rose = partial(watched, event=watermark_rose)  # type: ignore[method-assign]
        self.partitions.appended = partial(watched, event=appended)  # type: ignore[method-assign]

    def watch_answers(self, session_ended: Callable[[int], float | None]) -> None:
        """Show the witness every answer; `session_ended` says when a session did, None if not."""
        for router in self.parts.network.routers:
            reply = router._reply

            def watched(request: Any, response: Any, reply: Any = reply) -> None:
                self._show_answer(request.body, response, session_ended(self.tree.session_id))
                reply(request, response)

            router._reply = watched  # type: ignore[method-assign]

    def _show_answer(self, request: Any, response: Any, ended_s: float | None) -> None:
        now_s, witness = self.clock(), self._witness
        for key, code, acknowledges in said(request, response):
            partition = self.partitions.get(key)
            if partition is None or not partition.is_assigned_leader:
                continue
            epoch = partition.leader_epoch
            if code in NOT_HERE and self.silence.hides:
                witness.refuses(key, epoch)
            if code not in SPEAKS:
                continue
            if isinstance(response, ProduceResponse) and self.silence.is_silent:
                # Nothing is appended any more: this was safe before, and its request waited for
                # another partition. In the end it is looked for like all that was acknowledged.
                continue
            if ended_s is not None:
                witness.answers(self.broker_id, key, epoch, ended_s, now_s)
            if acknowledges and code is ErrorCode.NONE:
                witness.acknowledges(key, epoch, now_s)


class Brokers:
    """The brokers of one world, each on a host of its own."""

    def __init__(
        self, world: World, count: int, witness: Witness, secured: bool = False, /, **options: str
    ) -> None:
        """Describe brokers; `secured` ones log in to each other, and have ACLs."""
        self.world = world
        self._secured = secured
        self.witness = witness
        self.numbers = list(range(1, count + 1))
        self.running: dict[int, WatchedBroker] = {}
        """Those that serve, as far as their host knows."""
        self._options = options
        self._onlooker = world.coordination_store.tree.open_session(0)
        self._stops: dict[int, asyncio.Event] = {}
        self._ended: dict[int, float] = {}
        """When sessions expired."""
        self._note_expiry()

    def _note_expiry(self) -> None:
        store = self.world.coordination_store
        expire = store.expire

        def noted(session_id: int) -> None:
            self._ended[session_id] = self.world.loop.time()
            expire(session_id)

        store.expire = noted  # type: ignore[method-assign]

    def lost_session(self, number: int, seconds: float) -> bool:
        """Tell whether a broker's session ended at least so long ago."""
        broker = self.running.get(number)
        ended_s = None if broker is None else self._ended.get(broker.tree.session_id)
        return ended_s is not None and self.world.loop.time() - ended_s >= seconds

    @staticmethod
    def name(number: int) -> str:
        return f"broker-{number}"

    def start(self) -> None:
        """Begin every broker's first life."""
        if self._secured:
            add_users(self.world)
        for number in self.numbers:
            self.world.start(self.name(number), partial(self._live, number=number))

    async def _live(self, host: Host, number: int) -> None:
        """Run a broker as a supervisor would: one that cannot start is started again."""
        stop = self._stops[number] = asyncio.Event()
        values = {
            **OPTIONS,
            "listeners": f"PLAINTEXT://{host.name}:{PORT}",
            "broker.id": str(number),
            **(broker_options(host.name, PORT) if self._secured else {}),
            **self._options,
        }
        self.running.pop(number, None)
        while True:
            broker = WatchedBroker(
                self.witness,
                BrokerOptions.parse(values),
                coordination=host.coordination(SESSION_MS),
                files=host.disk,
                wall_clock=lambda: host.now_ms() / 1000,
                clock=self.world.loop.time,
                thread_clock=None,
                random=host.random,
                random_bytes=host.random.randbytes,
            )
            try:
                await broker.start()
                break
            except (BarnabasError, TimeoutError) as failure:
                self.world.trace.note(host.name, "cannot start:", failure)
                await asyncio.sleep(0.3)
        broker.watch_answers(self._ended.get)
        self.running[number] = broker
        ends = [asyncio.ensure_future(event.wait()) for event in (stop, broker.lost)]
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        if broker.lost.is_set():
            self.witness.complain(f"{host.name} gave up: {broker.lost_reason}")
        await broker.stop()
        del self.running[number]

    # -- faults -------------------------------------------------------------------------------

    def is_up(self, number: int) -> bool:
        """Tell whether a host runs a process, serving or not."""
        return self.world.hosts[self.name(number)].process is not None

    def end(self, number: int, how: str) -> None:
        """End a broker's life: `kill`, `crash` or `silent` (a crash that nobody hears of)."""
        self.running.pop(number, None)
        if how == "kill":
            self.world.kill(self.name(number))
        else:
            self.world.crash(self.name(number), silent=how == "silent")

    def restart(self, number: int) -> None:
        """Begin a broker's next life."""
        self.world.restart(self.name(number))

    def ask_to_stop(self, number: int) -> None:
        """Have a broker shut down in order; nothing waits for it."""
        self._stops[number].set()

    def expire(self, number: int) -> None:
        """End a broker's session although it is heard of."""
        broker = self.running.get(number)
        if broker is None:
            return
        store, session = self.world.coordination_store, broker.tree.session_id
        if session in store.subscribers:
            self.world.trace.note("expire", self.name(number))
            store.expire(session)

    # -- looking inside -----------------------------------------------------------------------

    def state(self, key: TopicPartition) -> nodes.PartitionState | None:
        """Return what the tree says about a partition."""
        path = nodes.state_path(*key)
        try:
            data, _ = self.world.coordination_store.tree.get(path, self._onlooker)
        except BarnabasError:
            return None
        return nodes.PartitionState.decode(path, data)

    def assignments(self) -> dict[TopicPartition, tuple[int, ...]]:
        """Return the replicas of all partitions, as the tree says."""
        tree = self.world.coordination_store.tree
        found: dict[TopicPartition, tuple[int, ...]] = {}
        for topic in tree.children(nodes.TOPICS, self._onlooker):
            path = nodes.topic_path(topic)
            node = nodes.TopicAssignment.decode(path, tree.get(path, self._onlooker)[0])
            for number, replicas in node.replicas.items():
                found[TopicPartition(topic, number)] = tuple(replicas)
        return found

    async def come_to_rest(self, seconds: float) -> bool:
        """Wait until everything is in order; False if that takes too long."""
        loop = self.world.loop
        deadline = loop.time() + seconds
        while loop.time() < deadline:
            if self.trouble() is None:
                return True
            await asyncio.sleep(0.1)
        return False

    def trouble(self) -> str | None:
        """Say what is not in order yet: everyone serves, leads what it should, and is in sync."""
        store = self.world.coordination_store
        for number in self.numbers:
            broker = self.running.get(number)
            if broker is None or broker.tree.session_id not in store.subscribers:
                return f"broker {number} is not there"
            if broker.silence.hides:
                return f"broker {number} is silent"
            if set(broker.cluster.brokers) != set(self.numbers):
                return f"broker {number} knows {sorted(broker.cluster.brokers)}"
        if store.tree.children(nodes.DELETE_TOPICS, self._onlooker):
            return "topics are being deleted"
        for key, replicas in self.assignments().items():
            said = self._trouble_of(key, replicas)
            if said is not None:
                return f"{key}: {said}"
        return None

    def _trouble_of(self, key: TopicPartition, replicas: tuple[int, ...]) -> str | None:
        state = self.state(key)
        if state is None or state.leader < 0:
            return "no leader"
        if set(state.isr) != set(replicas):
            return f"in sync are {list(state.isr)} of {list(replicas)}"
        for number in replicas:
            partition = self.running[number].partitions.get(key)
            if partition is None:
                return f"not on broker {number}"
            if (partition.leader, partition.leader_epoch) != (state.leader, state.leader_epoch):
                return f"broker {number} knows {partition.leader}, epoch {partition.leader_epoch}"
        for broker in self.running.values():
            view = broker.cluster.topic(key.topic)
            known = None if view is None else view.partitions[key.partition]
            if known is None or (known.leader, known.leader_epoch) != (
                state.leader,
                state.leader_epoch,
            ):
                return f"broker {broker.broker_id} tells of {known}"
        return None

    def replicas(self, key: TopicPartition) -> Iterator[tuple[int, Partition]]:
        """Yield the replicas of a partition, the leader first."""
        state = self.state(key)
        assert state is not None
        others = [each for each in self.assignments()[key] if each != state.leader]
        for number in (state.leader, *others):
            yield number, self.running[number].partitions[key]


def content(log: PartitionLog) -> bytes:
    """Return every byte of a log from its start on."""
    parts, offset = [], log.log_start_offset
    while offset < log.log_end_offset:
        piece = log.read(offset, 1 << 20)
        data = bytes(piece.read())
        piece.release()
        headers = read_headers(data)
        if not headers:
            break
        parts.append(data[: sum(header.size for header in headers)])
        offset = headers[-1].last_offset + 1
    return b"".join(parts)

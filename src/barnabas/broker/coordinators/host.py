"""Hosts coordinators: one machine per partition of an internal topic that this broker leads.

The rhythm is in this file alone. A machine is told of a request and answers with an `Outcome`;
its records are appended to the machine's partition as one batch, and its replies leave when the
high watermark has passed that batch. A reply without records leaves at once. When a partition
begins to be led here, its records are replayed into a fresh machine, and requests are told to
wait meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from barnabas.broker.coordinators.collaborators import Collaborators
from barnabas.broker.partitions.delayed_append import ALL_REPLICAS
from barnabas.kernels import TRANSACTIONAL_BIT, BatchBuilder, Buffer
from barnabas.log.validation import NEWEST_VERSION, stored_bounds
from barnabas.metadata.partition_for import partition_for
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError, RequestError, StorageError
from barnabas.model.outcome import Outcome, Reply, StateRecord
from barnabas.records.batch import BatchHeader, read_batch, read_headers
from barnabas.records.bounds import Bounds
from barnabas.records.compression import Codec, compress
from barnabas.records.control import ControlType, read_marker
from barnabas.records.conversion import to_batches
from barnabas.timing.wheel import Timer

if TYPE_CHECKING:
    from barnabas.metadata.topic_store import NewTopic
    from barnabas.replication.partition import Partition

logger = logging.getLogger("barnabas.coordinator")

KNOWN_IDS_MAX = 10_000
LOAD_SLICE_S = 0.01
"""For so long loading keeps others waiting before it lets them run."""
LATE_MS = 50
GRACE_MS_MAX = 5_000
"""A deadline that is noticed so much too late is put off by as much again, within a bound."""


class Machine(Protocol):
    """What every coordinator can be told alike."""

    def on_timer(self, key: Hashable, now_ms: int) -> Outcome:
        """A deadline has come."""


M = TypeVar("M", bound=Machine)


class Shard(Generic[M]):
    """One machine and the partition that keeps its state."""

    def __init__(self, partition: Partition, machine: M) -> None:
        self.partition = partition
        self.epoch = partition.leader_epoch
        self.machine = machine
        self.loading = True
        self.required = 0
        """The offset up to which the high watermark must come for all earlier outcomes."""
        self.timers: dict[Hashable, Timer] = {}


class CoordinatorHost(ABC, Generic[M]):
    """All machines of one kind on this broker."""

    def __init__(
        self,
        collaborators: Collaborators,
        topic: str,
        make_machine: Callable[[Partition], M],
        load_bytes: int,
        codec: int = 0,
    ) -> None:
        self.topic = topic
        self.shards: dict[int, Shard[M]] = {}
        self._options = collaborators.options
        self._now_ms = collaborators.now_ms
        self._timer = collaborators.timer
        self._cluster = collaborators.cluster
        self._partitions = collaborators.partitions
        self._shown_leader = collaborators.shown_leader
        self._create_topic = collaborators.create_topic
        self._make_machine = make_machine
        self._load_bytes = load_bytes
        self._codec = Codec.of(codec)
        self._compress = None if self._codec is Codec.NONE else partial(compress, self._codec)
        self._opened = False
        self._known: dict[str, Shard[M]] = {}
        """The shards of ids that were asked for; the hash behind it is not cheap in Python."""
        self._loads: set[asyncio.Task[None]] = set()
        self._loading = asyncio.Lock()

    # finding

    async def find(self, key: str) -> int:
        """Return the broker that coordinates an id, making the internal topic first if need be."""
        await self.ensure_topic()
        topic = self._cluster.topic(self.topic)
        if topic is None:
            raise RequestError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        number = partition_for(key, len(topic.partitions))
        leader = self._shown_leader(self.topic, number, topic.partitions[number].leader)
        if leader not in self._cluster.brokers:
            raise RequestError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return leader

    async def ensure_topic(self) -> None:
        """Make the internal topic, unless it is there."""
        if self._cluster.topic(self.topic) is None:
            await self._create_topic(self._internal_topic())

    def shard(self, key: str) -> Shard[M]:
        """Return the shard of an id; raise what tells a client to wait or to look elsewhere."""
        shard = self._known.get(key)
        if shard is not None and not shard.loading:
            return shard
        topic = self._cluster.topic(self.topic)
        if topic is None:
            raise RequestError(ErrorCode.NOT_COORDINATOR)
        shard = self.shards.get(partition_for(key, len(topic.partitions)))
        if shard is None:
            raise RequestError(ErrorCode.NOT_COORDINATOR)
        if shard.loading:
            raise RequestError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        if len(self._known) >= KNOWN_IDS_MAX:
            self._known.clear()
        self._known[key] = shard
        return shard

    def loaded_shards(self) -> Iterator[Shard[M]]:
        """Yield the shards that can answer."""
        return (shard for shard in self.shards.values() if not shard.loading)

    @property
    def is_loading(self) -> bool:
        """True while some shard cannot answer yet."""
        return any(shard.loading for shard in self.shards.values())

    @property
    def topic_configs(self) -> Mapping[str, str]:
        """The options of the topic that keeps the machines' state."""
        return self._internal_topic().configs

    @abstractmethod
    def _internal_topic(self) -> NewTopic:
        """Describe the topic that keeps the machines' state."""

    @abstractmethod
    def _replay(self, machine: M, record: StateRecord, producer_id: int | None) -> None:
        """Hand a record of the log to a machine; `producer_id` is set in a transaction's batch."""

    @abstractmethod
    def _replay_marker(self, machine: M, producer_id: int, committed: bool) -> None:
        """Tell a machine that a transaction ended at this place of the log."""

    @abstractmethod
    def _loaded(self, machine: M, now_ms: int) -> list[Outcome]:
        """Tell a machine that all records have been replayed."""

    @abstractmethod
    def _unloaded(self, machine: M) -> list[Reply]:
        """Stop a machine; return what the waiting requests are told."""

    # leading

    def open(self) -> None:
        """Begin to coordinate; every topic of the cluster is known by now.

        Not earlier: a machine that has loaded may ask for markers on any topic at once, and a
        topic that is merely not known yet would be taken for a deleted one.
        """
        self._opened = True
        self.lead_all(
            partition for key, partition in self._partitions.items() if key[0] == self.topic
        )

    def lead_all(self, partitions: Iterable[Partition]) -> None:
        """Coordinate what is led here, each in its present epoch."""
        if not self._opened:
            return
        for partition in partitions:
            shard = self.shards.get(partition.topic_partition.partition)
            if partition.is_leader and (shard is None or shard.epoch != partition.leader_epoch):
                self._lead(partition)

    def _lead(self, partition: Partition) -> None:
        number = partition.topic_partition.partition
        self.resign(number)
        shard = Shard(partition, self._make_machine(partition))
        self.shards[number] = shard
        self._known.clear()  # with another number of partitions ids live elsewhere
        if partition.log.log_start_offset == partition.log.log_end_offset:
            self._finish_loading(shard)
            return
        task = asyncio.get_running_loop().create_task(self._load(shard))
        self._loads.add(task)
        task.add_done_callback(self._loads.discard)

    def is_current(self, shard: Shard[M]) -> bool:
        """Return whether a shard is the one that coordinates its partition now."""
        return self.shards.get(shard.partition.topic_partition.partition) is shard

    def load_again(self, shard: Shard[M]) -> None:
        """Load again from the log, which has records that the machine has taken back."""
        self._lead(shard.partition)
        self._partitions.produce_purgatory.check(shard.partition.topic_partition)

    def resign(self, number: int) -> None:
        """Stop coordinating a partition."""
        shard = self.shards.pop(number, None)
        if shard is None:
            return
        self._known.clear()
        for timer in shard.timers.values():
            timer.cancel()
        self.send(self._unloaded(shard.machine))

    def stop(self) -> None:
        """Stop coordinating everything."""
        for task in self._loads:
            task.cancel()
        for number in list(self.shards):
            self.resign(number)

    async def _load(self, shard: Shard[M]) -> None:
        """Replay a partition, one after the other: together they would keep others waiting."""
        try:
            async with self._loading:
                await self._replay_log(shard)
        except Exception as failure:  # of any kind: nobody else would learn of it
            key = shard.partition.topic_partition
            logger.exception("%s: coordinator could not be loaded and is unavailable", key)
            if isinstance(failure, StorageError):
                self._partitions.on_storage_failure(key, failure)
            return
        if self.is_current(shard):
            # What was loaded may not have reached the followers: nobody is told of it before.
            shard.required = shard.partition.log.log_end_offset
            self._finish_loading(shard)

    async def _replay_log(self, shard: Shard[M]) -> None:
        """Replay a log up to its end, letting others run between batches."""
        loop, log = asyncio.get_running_loop(), shard.partition.log
        offset = log.log_start_offset
        rest_s = loop.time() + LOAD_SLICE_S
        # The end moves: transactions end here also while their offsets are being loaded.
        while offset < log.log_end_offset and self.is_current(shard):
            bounds = stored_bounds(log.options)
            piece = log.read(offset, self._load_bytes)
            try:
                data = to_batches(piece.read(), bounds.record)
            finally:
                piece.release()
            position = 0
            for header in read_headers(data):
                self._replay_batch(shard.machine, data, header, position, bounds)
                position += header.size
                offset = header.last_offset + 1
                if loop.time() >= rest_s:
                    await asyncio.sleep(0)
                    rest_s = loop.time() + LOAD_SLICE_S
            if position == 0:
                return
            await asyncio.sleep(0)

    def _replay_batch(
        self, machine: M, data: Buffer, header: BatchHeader, position: int, bounds: Bounds
    ) -> None:
        if header.is_control:
            for record in read_batch(data, header, position, bounds):
                marker = read_marker(record)
                if marker is not None:
                    committed = marker.type is ControlType.COMMIT
                    self._replay_marker(machine, header.producer_id, committed)
            return
        producer_id = header.producer_id if header.is_transactional else None
        for record in read_batch(data, header, position, bounds):
            if record.key is not None:
                value = None if record.value is None else bytes(record.value)
                self._replay(machine, StateRecord(bytes(record.key), value), producer_id)

    def _finish_loading(self, shard: Shard[M]) -> None:
        shard.loading = False
        for outcome in self._loaded(shard.machine, self._now_ms()):
            self.apply(shard, outcome)

    # applying

    def apply(self, shard: Shard[M], outcome: Outcome) -> None:
        """Do what a machine asked for, unless another has taken its place meanwhile."""
        if not self.is_current(shard):
            self.fail(outcome, ErrorCode.NOT_COORDINATOR)
            return
        for change in outcome.timers:
            self._set_timer(shard, change.key, change.deadline_ms)
        try:
            if outcome.records:
                shard.required = self._append(shard, outcome)
        except StorageError as failure:
            # First the answer: what is led on the same disk may have to be resigned.
            self.fail(outcome, ErrorCode.KAFKA_STORAGE_ERROR)
            self._partitions.append_failed(shard.partition, failure)
            return
        except BarnabasError as failure:
            code = ErrorCode.KAFKA_STORAGE_ERROR
            if isinstance(failure, RequestError):
                code = failure.code
            logger.error("%s: append failed: %s", shard.partition.topic_partition, failure)
            self.fail(outcome, code)
            return
        # An answer without records must not overtake those that wait: it may tell of their effect.
        if shard.partition.log.high_watermark >= shard.required:
            self.finish(shard, outcome)
            return
        self._partitions.when_safe(
            [(shard.partition, shard.required, outcome)],
            self._timer.now_ms() + self._options().offsets_commit_timeout_ms,
            partial(self._settled, shard, outcome, shard.required),
            is_stale=lambda: not self.is_current(shard),
        )

    def _settled(self, shard: Shard[M], outcome: Outcome, required_offset: int) -> None:
        """Finish an outcome whose records are safe; undo it if they are not."""
        partition = shard.partition
        if not partition.is_leader:
            self.fail(outcome, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        elif not self.is_current(shard):
            self.fail(outcome, ErrorCode.NOT_COORDINATOR)
        elif partition.log.high_watermark < required_offset:
            self.fail(outcome, ErrorCode.REQUEST_TIMED_OUT)
            # Records are in the log all the same, and may become safe. And what nobody waits for,
            # such as the markers that are due after loading, nobody would ask for again.
            if outcome.records or not outcome.replies:
                self.load_again(shard)
        else:
            self.finish(shard, outcome)

    def finish(self, shard: Shard[M], outcome: Outcome) -> None:
        """Send the replies of an outcome whose records are safe."""
        self.send(outcome.replies)

    def fail(self, outcome: Outcome, code: ErrorCode) -> None:
        """Undo an outcome whose records are not safe, and send what that says."""
        self.send(outcome.undo(code) if outcome.undo is not None else outcome.replies)

    def _append(self, shard: Shard[M], outcome: Outcome) -> int:
        """Append an outcome's records as one batch; return the offset that must become safe."""
        now_ms = self._now_ms()
        builder = BatchBuilder()
        builder.append_many([(now_ms, key, value, ()) for key, value in outcome.records])
        producer_id, producer_epoch = outcome.producer or (-1, -1)
        batch = builder.finish(
            codec=self._codec,
            compress=self._compress,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            attributes=0 if outcome.producer is None else TRANSACTIONAL_BIT,
        )
        appended = self._partitions.append(
            shard.partition, batch, ALL_REPLICAS, NEWEST_VERSION, now_ms, origin="coordinator"
        )
        return appended.last_offset + 1

    def send(self, replies: list[Reply]) -> None:
        for reply in replies:
            reply.token.answer(reply.response)  # type: ignore[attr-defined]  # tokens are Requests

    def _set_timer(self, shard: Shard[M], key: Hashable, deadline_ms: int | None) -> None:
        known = shard.timers.pop(key, None)
        if known is not None:
            known.cancel()
        if deadline_ms is None:
            return
        timer = self._timer
        # Machines think in wall-clock time; the wheel turns with the loop's clock.
        due_ms = timer.now_ms() + deadline_ms - self._now_ms()
        shard.timers[key] = timer.wheel.add(due_ms, lambda: self._due(shard, key, due_ms))
        timer.set()

    def _due(self, shard: Shard[M], key: Hashable, due_ms: int) -> None:
        """Let a deadline come, unless this broker stood still and has not read what puts it off.

        What clients sent meanwhile (heartbeats, joins) waits in their sockets, and where the whole
        machine stood still they have yet to send it.
        """
        timer = self._timer
        late_ms = timer.now_ms() - due_ms
        if late_ms <= LATE_MS:
            self._fire(shard, key)
            return
        again_ms = timer.now_ms() + min(late_ms, GRACE_MS_MAX)
        shard.timers[key] = timer.wheel.add(again_ms, lambda: self._fire(shard, key))

    def _fire(self, shard: Shard[M], key: Hashable) -> None:
        shard.timers.pop(key, None)
        self.apply(shard, shard.machine.on_timer(key, self._now_ms()))

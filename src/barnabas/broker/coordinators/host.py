"""Hosts coordinators: one machine per partition of an internal topic that this broker leads.

All coordinators work alike. A machine handles a request and returns an `Outcome`; its records are
appended to the machine's partition as one batch, and its replies are sent when the high watermark
has passed that batch. A reply without records is sent at once. When this broker becomes leader of
a partition, its records are replayed into a new machine, and until then requests get
COORDINATOR_LOAD_IN_PROGRESS.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from barnabas.broker.coordinators.collaborators import Collaborators
from barnabas.broker.coordinators.load_times import LoadTimes
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

KNOWN_IDS_MAX = 10_000
LOAD_SLICE_S = 0.01
"""How long loading may block the loop before it yields."""
LATE_MS = 50
GRACE_MS_MAX = 5_000
"""The limit of the delay that is added to a deadline that is noticed too late."""


class Machine(Protocol):
    """What all coordinators have in common."""

    def on_timer(self, key: Hashable, now_ms: int) -> Outcome:
        """Handle a deadline that has passed."""


M = TypeVar("M", bound=Machine)


class Shard(Generic[M]):
    """One machine and the partition that stores its state."""

    def __init__(self, partition: Partition, machine: M) -> None:
        self.partition = partition
        self.epoch = partition.leader_epoch
        self.machine = machine
        self.loading = True
        self.required = 0
        """The offset that the high watermark must reach for all earlier outcomes."""
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
        *,
        logger: logging.Logger,
    ) -> None:
        self.topic = topic
        self._logger = logger
        self.shards: dict[int, Shard[M]] = {}
        self._options = collaborators.options
        self._now_ms = collaborators.now_ms
        self._timer = collaborators.timer
        self._cluster = collaborators.cluster
        self._partitions = collaborators.partitions
        self._shown_leader = collaborators.shown_leader
        self._create_topic = collaborators.create_topic
        self._note = collaborators.note
        self._make_machine = make_machine
        self._load_bytes = load_bytes
        self._codec = Codec.of(codec)
        self._compress = None if self._codec is Codec.NONE else partial(compress, self._codec)
        self._opened = False
        self._known: dict[str, Shard[M]] = {}
        """A cache of shards by id; hashing an id is not cheap in Python."""
        self._loads: set[asyncio.Task[None]] = set()
        self._loading = asyncio.Lock()
        self.load_times = LoadTimes()
        """On the timer's clock; a load includes its wait for those before it."""

    # finding

    async def find(self, key: str) -> int:
        """Return the broker that coordinates an id, creating the internal topic if needed."""
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
        """Create the internal topic, unless it exists."""
        if self._cluster.topic(self.topic) is None:
            await self._create_topic(self._internal_topic())

    def shard(self, key: str) -> Shard[M]:
        """Return the shard of an id; raise if it is loading, or on another broker."""
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
        """The configs of the topic that stores the machines' state."""
        return self._internal_topic().configs

    @abstractmethod
    def _internal_topic(self) -> NewTopic:
        """Return the topic that stores the machines' state."""

    @abstractmethod
    def _replay(self, machine: M, record: StateRecord, producer_id: int | None) -> None:
        """Replay a record of the log; `producer_id` is set in a transactional batch."""

    @abstractmethod
    def _replay_marker(self, machine: M, producer_id: int, committed: bool) -> None:
        """Replay the end of a transaction, at its position in the log."""

    @abstractmethod
    def _loaded(self, machine: M, now_ms: int) -> list[Outcome]:
        """Notify a machine that all records have been replayed."""

    @abstractmethod
    def _unloaded(self, machine: M) -> list[Reply]:
        """Stop a machine; return the replies to waiting requests."""

    # leading

    def open(self) -> None:
        """Start to coordinate; every topic of the cluster is known by now.

        Not earlier: a machine that has loaded may request markers on any topic at once, and a
        topic that is merely not known yet would be taken for a deleted one.
        """
        self._opened = True
        self.lead_all(
            partition for key, partition in self._partitions.items() if key[0] == self.topic
        )

    def lead_all(self, partitions: Iterable[Partition]) -> None:
        """Coordinate the partitions that are led here, each in its current epoch."""
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
        self._known.clear()  # if the number of partitions has changed, ids are in other shards
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
        """Load again from the log, which has records that the machine has undone."""
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
        """Replay a partition, one after the other: together they would block other requests."""
        began_ms = self._timer.now_ms()
        try:
            async with self._loading:
                await self._replay_log(shard)
        except Exception as failure:  # of any kind: it would be reported nowhere else
            key = shard.partition.topic_partition
            self._logger.exception(
                "%s: loading failed, coordinator unavailable until its leader changes", key
            )
            if isinstance(failure, StorageError):
                self._partitions.on_storage_failure(key, failure)
            return
        if self.is_current(shard):
            self.load_times.loaded(self._timer.now_ms() - began_ms, self._timer.now_ms())
            # What was loaded may not be on the followers yet: no reply may show it before.
            shard.required = shard.partition.log.log_end_offset
            self._finish_loading(shard)

    async def _replay_log(self, shard: Shard[M]) -> None:
        """Replay a log up to its end, yielding to the loop between batches."""
        loop, log = asyncio.get_running_loop(), shard.partition.log
        offset = log.log_start_offset
        rest_s = loop.time() + LOAD_SLICE_S
        # The end moves: markers are also written while offsets are being loaded.
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
        """Carry out an outcome, unless its machine has been replaced meanwhile."""
        if not self.is_current(shard):
            self.fail(outcome, ErrorCode.NOT_COORDINATOR)
            return
        for change in outcome.timers:
            self._set_timer(shard, change.key, change.deadline_ms)
        try:
            if outcome.records:
                shard.required = self._append(shard, outcome)
        except StorageError as failure:
            # Reply first: handling the failure may unload coordinators on the same disk.
            self.fail(outcome, ErrorCode.KAFKA_STORAGE_ERROR)
            self._partitions.append_failed(shard.partition, failure)
            return
        except BarnabasError as failure:
            code = ErrorCode.KAFKA_STORAGE_ERROR
            if isinstance(failure, RequestError):
                code = failure.code
            self._logger.error("%s: append failed: %s", shard.partition.topic_partition, failure)
            self.fail(outcome, code)
            return
        # A reply without records must not overtake those that wait: it may show their effect.
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
        """Finish an outcome whose records are committed; undo it if they are not."""
        partition = shard.partition
        if not partition.is_leader:
            self.fail(outcome, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        elif not self.is_current(shard):
            self.fail(outcome, ErrorCode.NOT_COORDINATOR)
        elif partition.log.high_watermark < required_offset:
            self.fail(outcome, ErrorCode.REQUEST_TIMED_OUT)
            # The records are still in the log, and may be committed later. And what no client waits
            # for, such as markers that are due after loading, would not be requested again.
            if outcome.records or not outcome.replies:
                self.load_again(shard)
        else:
            self.finish(shard, outcome)

    def finish(self, shard: Shard[M], outcome: Outcome) -> None:
        """Send the replies of an outcome whose records are committed."""
        for note in outcome.notes:
            self._note(note)
        self.send(outcome.replies)

    def fail(self, outcome: Outcome, code: ErrorCode) -> None:
        """Undo an outcome whose records are not committed, and send the resulting replies."""
        self.send(outcome.undo(code) if outcome.undo is not None else outcome.replies)

    def _append(self, shard: Shard[M], outcome: Outcome) -> int:
        """Append an outcome's records as one batch; return the offset that must be committed."""
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
        # Machines use wall-clock time, the timing wheel the loop's clock.
        due_ms = timer.now_ms() + deadline_ms - self._now_ms()
        shard.timers[key] = timer.wheel.add(due_ms, lambda: self._due(shard, key, due_ms))
        timer.set()

    def _due(self, shard: Shard[M], key: Hashable, due_ms: int) -> None:
        """Handle a deadline, unless this broker was paused and has not read what extends it.

        What clients sent meanwhile (heartbeats, joins) waits in their sockets, and if the whole
        machine was paused they have yet to send it.
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

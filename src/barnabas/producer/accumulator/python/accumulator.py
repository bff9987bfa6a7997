"""The open batches of all partitions, where a producer's records wait until they are sent."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from barnabas.kernels import HEADER_SIZE, Buffer, Column, Row, murmur2
from barnabas.kernels.batch_header import SIZE_MAX
from barnabas.kernels.contract import column_range
from barnabas.kernels.python.builder import encode_record, read_cell
from barnabas.model.ids import TopicPartition
from barnabas.producer.accumulator.python.batch import (
    PendingBatch,
    RecordFuture,
    Segment,
    Wait,
)
from barnabas.producer.accumulator.python.buffer_pool import BufferPool
from barnabas.producer.accumulator.refusal import Refusal

_BYTES = (bytes, bytearray, memoryview)
_DELTAS_MAX = 16  # what the index in a batch may add to the size of a record


class PendingPartition:
    """The batch of a partition that is being filled, and those that are full."""

    __slots__ = ("closed", "noted", "open", "partition")

    def __init__(self, partition: TopicPartition) -> None:
        self.partition = partition
        self.open: PendingBatch | None = None
        self.closed: list[PendingBatch] = []
        self.noted = False


class _Topic:
    """The partitions of a topic, and the one where records without a key go for now."""

    __slots__ = ("count", "name", "slots", "sticky", "sticky_bytes")

    def __init__(self, name: str) -> None:
        self.name = name
        self.count = 0
        self.slots: list[PendingPartition] = []
        self.sticky = -1
        self.sticky_bytes = 0


class Accumulator:
    """The open batches of all partitions."""

    def __init__(
        self,
        pool: BufferPool,
        *,
        wake: Callable[[], object],
        choose: Callable[[str], int],
        wait: Wait,
        record_size_max: int = SIZE_MAX,
        ignore_keys: bool = False,
        clock: Callable[[], int] | None = None,
    ) -> None:
        """Prepare to take records.

        `wake` is called when there is something new for the sender, `choose` names the partition
        for the next records without a key, `wait` blocks until a batch is done, `clock` returns
        the time in milliseconds (default: the system's).
        """
        self.pool = pool
        self.closed = False
        self.wake = wake
        self.wait = wait
        self.record_size_max = record_size_max
        self._choose = choose
        self._ignore_keys = ignore_keys
        self._clock = clock or _system_clock
        self._topics: dict[str, _Topic] = {}
        self._changed: list[PendingPartition] = []
        self._signalled = False

    def add_topic(self, name: str, count: int) -> None:
        """Accept records for the partitions 0 to count - 1 of a topic from now on."""
        topic = self._topics.get(name) or _Topic(name)
        for index in range(len(topic.slots), count):
            topic.slots.append(PendingPartition(TopicPartition(name, index)))
        topic.count = count
        if topic.sticky >= count:
            topic.sticky = -1
        self._topics[name] = topic

    def forget_topic(self, name: str) -> None:
        """Reject records for a topic until it is added again."""
        topic = self._topics.get(name)
        if topic is not None:
            topic.count = 0

    def unstick(self, name: str) -> None:
        """Choose another partition for records without a key."""
        topic = self._topics.get(name)
        if topic is not None:
            topic.sticky = -1

    def partition_count(self, name: str) -> int:
        """Return how many partitions of a topic are known; 0 for none."""
        topic = self._topics.get(name)
        return 0 if topic is None else topic.count

    def append(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        headers: Any = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        in_turn: bool = False,
    ) -> RecordFuture | Refusal:
        """Append a record and return its future, or why it was rejected."""
        if not isinstance(topic, str) or not _is_plain(key) or not _is_plain(value):
            return Refusal.TYPE
        pairs = _pairs(headers)
        if pairs is None or not isinstance(partition, int | None):
            return Refusal.TYPE
        if not isinstance(timestamp_ms, int | None):
            return Refusal.TYPE
        timestamp = self._clock() if timestamp_ms is None else timestamp_ms
        with self.pool.lock:
            taken = self._place(topic, value, key, pairs, partition, timestamp, in_turn)
            index = taken.count - 1 if isinstance(taken, PendingBatch) else -1
        self._wake_sender()
        if isinstance(taken, Refusal):
            return taken
        return RecordFuture(taken, index, timestamp, _size(key), _size(value), _header_size(pairs))

    def append_many(
        self,
        topic: str,
        rows: Sequence[Row],
        start: int,
        segments: list[Segment],
        partition: int | None = None,
        in_turn: bool = False,
    ) -> tuple[int, Refusal | None]:
        """Append rows from `start` on: values, or (key, value[, headers[, timestamp[,
        partition]]]).

        Return the first row that was not appended, and why (None if all were). Their positions are
        added to `segments`. Only the first row is in turn: a long call must not starve others.
        """
        refusal: Refusal | None = None
        index = start
        while index < len(rows):
            row = rows[index]
            if isinstance(row, tuple | list):
                if not 2 <= len(row) <= 5:
                    refusal = Refusal.TYPE
                    break
                key, value, headers, time_ms, target = (*row, None, None, None)[:5]
            else:
                key, value, headers, time_ms, target = None, row, None, None, None
            target = partition if target is None else target
            pairs = _pairs(headers)
            if pairs is None or not (_is_plain(key) and _is_plain(value)):
                refusal = Refusal.TYPE
                break
            if not isinstance(target, int | None) or not isinstance(time_ms, int | None):
                refusal = Refusal.TYPE
                break
            timestamp = self._clock() if time_ms is None else time_ms
            with self.pool.lock:
                taken = self._place(topic, value, key, pairs, target, timestamp, in_turn)
                if isinstance(taken, Refusal):
                    refusal = taken
                    break
                taken.note_last(segments)
            in_turn = False
            index += 1
        self._wake_sender()
        return index, refusal

    def append_columns(
        self,
        topic: str,
        timestamps: Buffer | None,
        keys: Column | None,
        values: Column | None,
        partitions: Buffer | None,
        start: int,
        stop: int,
        segments: list[Segment],
        partition: int | None = None,
        in_turn: bool = False,
    ) -> tuple[int, Refusal | None]:
        """Append the rows start..stop of Arrow buffers, like `append_many`.

        `timestamps` holds int64 values and `partitions` int32 ones; a negative one is for the
        accumulator to choose. A column is validity bits (or None), int32 offsets and data.
        """
        if start < 0:
            raise column_range()
        times = None if timestamps is None else memoryview(timestamps).cast("B").cast("q")
        targets = None if partitions is None else memoryview(partitions).cast("B").cast("i")
        for column in (times, targets):
            if column is not None and stop > len(column):
                raise column_range()
        refusal: Refusal | None = None
        now_ms = self._clock()
        index = start
        while index < stop:
            key = None if keys is None else read_cell(keys, index)
            value = None if values is None else read_cell(values, index)
            target = partition if targets is None or targets[index] < 0 else targets[index]
            timestamp = now_ms if times is None or times[index] < 0 else times[index]
            with self.pool.lock:
                taken = self._place(topic, value, key, (), target, timestamp, in_turn)
                if isinstance(taken, Refusal):
                    refusal = taken
                    break
                taken.note_last(segments)
            in_turn = False
            index += 1
        self._wake_sender()
        return index, refusal

    def adopt(
        self, partition: TopicPartition, records: Buffer, in_turn: bool = False
    ) -> PendingBatch | Refusal:
        """Add a complete batch that the caller built; return it, or why it was rejected."""
        with self.pool.lock:
            if self.closed:
                return Refusal.CLOSED
            topic = self._topics.get(partition.topic)
            if topic is None or topic.count == 0:
                return Refusal.TOPIC
            if not 0 <= partition.partition < topic.count:
                return Refusal.PARTITION
            if len(records) > self.record_size_max:
                return Refusal.SIZE
            if not self.pool.reserve(len(records), in_turn):
                return Refusal.MEMORY
            batch = PendingBatch(self.pool, self.wait, partition, records)
            batch._charge = len(records)
            slot = topic.slots[partition.partition]
            self._close(slot)
            slot.closed.append(batch)
            self._note(slot)
        self._wake_sender()
        return batch

    def collect(self) -> list[PendingPartition]:
        """Return the partitions with a new batch, open or closed, since the last call."""
        with self.pool.lock:
            changed, self._changed = self._changed, []
            for slot in changed:
                slot.noted = False
            self._signalled = False
        return changed

    def take(self, slot: PendingPartition, with_open: bool = False) -> list[PendingBatch]:
        """Remove and return the full batches of a partition, and on request the open one."""
        with self.pool.lock:
            if with_open:
                self._close(slot)
            taken, slot.closed = slot.closed, []
        return taken

    def _wake_sender(self) -> None:
        """Wake the sender, once until it collects."""
        if self._changed and not self._signalled:
            self._signalled = True
            self.wake()

    # All that follows is called with the lock held.

    def _place(
        self,
        name: str,
        value: Buffer | None,
        key: Buffer | None,
        headers: tuple[tuple[str, Buffer | None], ...],
        partition: int | None,
        timestamp: int,
        in_turn: bool,
    ) -> PendingBatch | Refusal:
        """Encode a record at the end of a batch and return the batch, or the refusal."""
        if self.closed:
            return Refusal.CLOSED
        if value is None and key is None:
            return Refusal.EMPTY
        topic = self._topics.get(name)
        if topic is None or topic.count == 0:
            return Refusal.TOPIC
        size = len(encode_record(timestamp, timestamp, 0, key, value, headers))
        if HEADER_SIZE + size > self.record_size_max:
            return Refusal.SIZE
        by_stickiness = partition is None and (key is None or self._ignore_keys)
        if by_stickiness:
            slot = self._sticky_slot(topic, size)
        elif partition is None:
            assert key is not None
            slot = topic.slots[(murmur2(key) & 0x7FFFFFFF) % topic.count]
        elif 0 <= partition < topic.count:
            slot = topic.slots[partition]
        else:
            return Refusal.PARTITION
        batch = slot.open
        index = -1 if batch is None else batch.put(timestamp, key, value, headers)
        if index < 0:
            self._close(slot)
            batch = self._begin(slot, HEADER_SIZE + size, in_turn)
            if batch is None:
                return Refusal.MEMORY
            index = batch.put(timestamp, key, value, headers)
        assert batch is not None
        if batch.size >= self.pool.batch_size and not batch.full:
            batch.full = True
            self._note(slot)
        if by_stickiness:
            topic.sticky_bytes += size
        return batch

    def _sticky_slot(self, topic: _Topic, size: int) -> PendingPartition:
        """Return the sticky partition; switch after a batch's bytes, at most two (KIP-794)."""
        size += _DELTAS_MAX
        if topic.sticky >= 0 and HEADER_SIZE + topic.sticky_bytes + size > self.pool.batch_size:
            batch = topic.slots[topic.sticky].open
            if (
                batch is None
                or topic.sticky_bytes >= 2 * self.pool.batch_size
                or batch.size + size > self.pool.batch_size
            ):
                topic.sticky = -1
        if topic.sticky < 0:
            topic.sticky = self._choose(topic.name) % topic.count
            topic.sticky_bytes = 0
        return topic.slots[topic.sticky]

    def _begin(self, slot: PendingPartition, size: int, in_turn: bool) -> PendingBatch | None:
        charge = max(size, self.pool.batch_size)
        if not self.pool.reserve(charge, in_turn):
            return None
        batch = PendingBatch(self.pool, self.wait, slot.partition)
        batch._charge = charge
        batch._buffer = self.pool.take(charge)
        slot.open = batch
        self._note(slot)
        return batch

    def _close(self, slot: PendingPartition) -> None:
        if slot.open is not None:
            slot.closed.append(slot.open)
            slot.open = None
            self._note(slot)

    def _note(self, slot: PendingPartition) -> None:
        if not slot.noted:
            slot.noted = True
            self._changed.append(slot)


def _is_plain(field: object) -> bool:
    return field is None or isinstance(field, _BYTES)


def _pairs(headers: Any) -> tuple[tuple[str, Buffer | None], ...] | None:
    """Return headers as a tuple, or None if they are not pairs of a string and bytes."""
    if headers is None:
        return ()
    if not isinstance(headers, list | tuple):
        return None
    for pair in headers:
        if not (isinstance(pair, tuple | list) and len(pair) == 2):
            return None
        if not isinstance(pair[0], str) or not _is_plain(pair[1]):
            return None
    return tuple((name, content) for name, content in headers)


def _size(field: Buffer | None) -> int:
    return -1 if field is None else memoryview(field).nbytes


def _header_size(headers: tuple[tuple[str, Buffer | None], ...]) -> int:
    if not headers:
        return -1
    return sum(len(name.encode("utf-8")) + max(_size(content), 0) for name, content in headers)


def _system_clock() -> int:
    return time.time_ns() // 1_000_000

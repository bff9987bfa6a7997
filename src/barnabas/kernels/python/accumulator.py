"""Where a producer's records wait, encoded, until they are sent; see `accumulator_contract`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from barnabas.kernels.accumulator_contract import Detour, Refusal, wrong_memory
from barnabas.kernels.batch_header import HEADER_SIZE, SIZE_MAX
from barnabas.kernels.contract import Buffer, Column, Row, column_range
from barnabas.kernels.python.builder import _cell
from barnabas.kernels.python.murmur2 import murmur2
from barnabas.kernels.python.pending_batch import (
    PendingBatch,
    RecordFuture,
    Segment,
    encode_record,
)
from barnabas.model.ids import TopicPartition

_BYTES = (bytes, bytearray, memoryview)
_DELTAS_MAX = 16  # what the place in a batch may add to the size of a record


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
    """The open batches of all partitions, within a bounded memory."""

    def __init__(
        self,
        batch_size: int,
        memory: int,
        *,
        wake: Callable[[], object],
        detour: Detour,
        choose: Callable[[str], int],
        wait: Callable[[Any, float | None], object],
        report: Callable[[BaseException], object],
        metadata: type[tuple[Any, ...]],
        batch_size_max: int = 0,
        record_size_max: int = SIZE_MAX,
        ignore_keys: bool = False,
        clock: Callable[[], int] | None = None,
    ) -> None:
        """Prepare to take records.

        `wake` is called when there is something new for the sender, `choose` names the partition
        for the next records without a key, `wait` blocks until a batch is done, `report` hears of
        callbacks that fail, `metadata` is the class of the value of a record's future, `clock`
        tells the time in milliseconds (default: the system's). A batch of `batch_size` bytes is
        full; as long as nobody takes it, it may grow up to `batch_size_max`.
        """
        if memory < batch_size:
            raise wrong_memory(memory, batch_size)
        self.batch_size = max(batch_size, HEADER_SIZE)
        self.batch_size_max = max(self.batch_size, batch_size_max)
        self.memory = memory
        self.in_use = 0
        self.closed = False
        self.waiting = False
        self.wake = wake
        self.detour = detour
        self.choose = choose
        self.wait = wait
        self.report = report
        self.metadata = metadata
        self.record_size_max = record_size_max
        self.ignore_keys = ignore_keys
        self.lock = threading.RLock()
        self.on_room: Callable[[], object] | None = None
        self._clock = clock or _system_clock
        self._topics: dict[str, _Topic] = {}
        self._pool: list[bytearray] = []
        self._changed: list[PendingPartition] = []
        self._signalled = False

    def add_topic(self, name: str, count: int) -> None:
        """Take records for the partitions 0 to count - 1 of a topic from now on."""
        topic = self._topics.get(name) or _Topic(name)
        for index in range(len(topic.slots), count):
            topic.slots.append(PendingPartition(TopicPartition(name, index)))
        topic.count = count
        if topic.sticky >= count:
            topic.sticky = -1
        self._topics[name] = topic

    def forget_topic(self, name: str) -> None:
        """Refuse records for a topic until it is added again."""
        topic = self._topics.get(name)
        if topic is not None:
            topic.count = 0

    def unstick(self, name: str) -> None:
        """Choose anew where records without a key go."""
        topic = self._topics.get(name)
        if topic is not None:
            topic.sticky = -1

    def partition_count(self, name: str) -> int:
        """Return how many partitions of a topic are known; 0 for none."""
        topic = self._topics.get(name)
        return 0 if topic is None else topic.count

    def slot(self, partition: TopicPartition) -> PendingPartition:
        """Return what waits for a partition that was added."""
        return self._topics[partition.topic].slots[partition.partition]

    def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        headers: Any = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> Any:
        """Take a record and return its future; where that is refused, leave it to the detour."""
        taken = self.append(topic, value, key, headers, partition, timestamp_ms)
        if isinstance(taken, RecordFuture):
            return taken
        return self.detour(taken, topic, value, key, headers, partition, timestamp_ms)

    def append(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        headers: Any = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        in_turn: bool = False,
    ) -> RecordFuture | int:
        """Take a record and return its future, or say why not."""
        if not isinstance(topic, str) or not _is_plain(key) or not _is_plain(value):
            return Refusal.TYPE
        pairs = _pairs(headers)
        if pairs is None or not isinstance(partition, int | None):
            return Refusal.TYPE
        if not isinstance(timestamp_ms, int | None):
            return Refusal.TYPE
        with self.lock:
            placed = self._place(topic, value, key, pairs, partition, timestamp_ms, in_turn)
            if isinstance(placed, int):
                return self._woken(placed)
            batch, index, timestamp = placed
            future = RecordFuture(
                batch, index, timestamp, _size(key), _size(value), _header_size(pairs)
            )
        self._woken(0)
        return future

    def append_many(
        self,
        topic: str,
        rows: Sequence[Row],
        start: int,
        segments: list[Segment],
        partition: int | None = None,
        in_turn: bool = False,
    ) -> tuple[int, int]:
        """Take rows from `start` on: values, or (key, value[, headers[, timestamp[, partition]]]).

        Return the first row that was not taken, and why (0 if all were). Where the rows ended up
        is added to `segments`. Only the first row is in turn: a long call must not keep others out.
        """
        refusal = 0
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
            with self.lock:
                placed = self._place(topic, value, key, pairs, target, time_ms, in_turn)
                if isinstance(placed, int):
                    refusal = placed
                    break
                _note_segment(segments, placed[0], placed[1])
            in_turn = False
            index += 1
        self._woken(refusal)
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
    ) -> tuple[int, int]:
        """Take the rows start..stop of Arrow's buffers, as `append_many` does.

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
        refusal = 0
        index = start
        while index < stop:
            key = None if keys is None else _cell(keys, index)
            value = None if values is None else _cell(values, index)
            target = partition if targets is None or targets[index] < 0 else targets[index]
            time_ms = None if times is None or times[index] < 0 else times[index]
            with self.lock:
                placed = self._place(topic, value, key, (), target, time_ms, in_turn)
                if isinstance(placed, int):
                    refusal = placed
                    break
                _note_segment(segments, placed[0], placed[1])
            in_turn = False
            index += 1
        self._woken(refusal)
        return index, refusal

    def adopt(
        self, partition: TopicPartition, records: Buffer, in_turn: bool = False
    ) -> PendingBatch | int:
        """Take a whole batch that was built elsewhere, or say why not."""
        with self.lock:
            if self.closed:
                return Refusal.CLOSED
            topic = self._topics.get(partition.topic)
            if topic is None or topic.count == 0:
                return Refusal.TOPIC
            if not 0 <= partition.partition < topic.count:
                return Refusal.PARTITION
            if len(records) > self.record_size_max:
                return Refusal.SIZE
            if not self._reserve(len(records), in_turn):
                return self._woken(Refusal.MEMORY)
            batch = PendingBatch(self, partition, records)
            batch._charge = len(records)
            slot = topic.slots[partition.partition]
            self._close(slot)
            slot.closed.append(batch)
            self._note(slot)
        self._woken(0)
        return batch

    def collect(self) -> list[PendingPartition]:
        """Return the partitions with a new batch, open or closed, since this was last asked."""
        with self.lock:
            changed, self._changed = self._changed, []
            for slot in changed:
                slot.noted = False
            self._signalled = False
        return changed

    def take(self, slot: PendingPartition, with_open: bool = False) -> list[PendingBatch]:
        """Return the full batches of a partition, and the open one if asked, and keep none."""
        with self.lock:
            if with_open:
                self._close(slot)
            taken, slot.closed = slot.closed, []
        return taken

    def has_room(self, size: int) -> bool:
        """Tell whether a batch of this size could be begun."""
        return self.in_use + max(size, self.batch_size) <= self.memory

    def free(self, batch: PendingBatch) -> None:
        """Take back the memory of a batch that is done."""
        with self.lock:
            buffer, batch._buffer = batch._buffer, None
            self.in_use -= batch._charge
            if batch._charge == self.batch_size and buffer is not None:
                self._pool.append(buffer)
            batch._charge = 0
        if self.on_room is not None:
            self.on_room()

    # All that follows is called with the lock held.

    def _place(
        self,
        name: str,
        value: Buffer | None,
        key: Buffer | None,
        headers: tuple[tuple[str, Buffer | None], ...],
        partition: int | None,
        timestamp_ms: int | None,
        in_turn: bool,
    ) -> tuple[PendingBatch, int, int] | int:
        if self.closed:
            return Refusal.CLOSED
        if value is None and key is None:
            return Refusal.EMPTY
        topic = self._topics.get(name)
        if topic is None or topic.count == 0:
            return Refusal.TOPIC
        timestamp = self._clock() if timestamp_ms is None else timestamp_ms
        size = len(encode_record(timestamp, timestamp, 0, key, value, headers))
        if HEADER_SIZE + size > self.record_size_max:
            return Refusal.SIZE
        by_stickiness = partition is None and (key is None or self.ignore_keys)
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
        if batch.size >= self.batch_size and not batch.full:
            batch.full = True
            self._note(slot)
        if by_stickiness:
            topic.sticky_bytes += size
        return batch, index, timestamp

    def _sticky_slot(self, topic: _Topic, size: int) -> PendingPartition:
        """Stay with a partition for a batch's bytes, and at most for two (KIP-794)."""
        size += _DELTAS_MAX
        if topic.sticky >= 0 and HEADER_SIZE + topic.sticky_bytes + size > self.batch_size:
            batch = topic.slots[topic.sticky].open
            if (
                batch is None
                or topic.sticky_bytes >= 2 * self.batch_size
                or batch.size + size > self.batch_size
            ):
                topic.sticky = -1
        if topic.sticky < 0:
            topic.sticky = self.choose(topic.name) % topic.count
            topic.sticky_bytes = 0
        return topic.slots[topic.sticky]

    def _begin(self, slot: PendingPartition, size: int, in_turn: bool) -> PendingBatch | None:
        charge = max(size, self.batch_size)
        if not self._reserve(charge, in_turn):
            return None
        batch = PendingBatch(self, slot.partition)
        batch._charge = charge
        pooled = charge == self.batch_size and self._pool
        batch._buffer = self._pool.pop() if pooled else bytearray(charge)
        slot.open = batch
        self._note(slot)
        return batch

    def _grow(self, batch: PendingBatch, size: int) -> bool:
        """Give a batch that could not be sent yet more room, if it may grow so far."""
        buffer = batch._buffer
        assert buffer is not None
        capacity = min(max(2 * len(buffer), size), self.batch_size_max)
        more = capacity - len(buffer)
        if self.waiting or size > capacity or self.in_use + more > self.memory:
            return False
        buffer.extend(bytes(more))
        self.in_use += more
        batch._charge += more
        return True

    def _reserve(self, size: int, in_turn: bool) -> bool:
        if self.waiting and not in_turn:
            return False
        if self.in_use + size > self.memory and self.in_use > 0:
            return False  # a single batch may be larger than all memory: it would never fit
        self.in_use += size
        while self._pool and self.in_use + len(self._pool) * self.batch_size > self.memory:
            self._pool.pop()
        return True

    def _close(self, slot: PendingPartition) -> None:
        if slot.open is not None:
            slot.closed.append(slot.open)
            slot.open = None
            self._note(slot)

    def _note(self, slot: PendingPartition) -> None:
        if not slot.noted:
            slot.noted = True
            self._changed.append(slot)

    def _woken(self, refusal: int) -> int:
        """Wake the sender once for all that it has not yet collected."""
        if self._changed and not self._signalled:
            self._signalled = True
            self.wake()
        return refusal


def _note_segment(segments: list[Segment], batch: PendingBatch, index: int) -> None:
    segment = batch._segment
    if batch._call is segments and segment is not None and segment.first + segment.count == index:
        segment.count += 1
        return
    batch._call = segments
    batch._segment = Segment(batch, index)
    segments.append(batch._segment)


def _is_plain(field: object) -> bool:
    return field is None or isinstance(field, _BYTES)


def _pairs(headers: Any) -> tuple[tuple[str, Buffer | None], ...] | None:
    """Return headers as a tuple, or None if they are not pairs of a text and bytes."""
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


__all__ = ["Accumulator", "PendingBatch", "PendingPartition", "RecordFuture", "Segment"]

"""A batch that is being filled, its outcome, and the futures of its records."""

from __future__ import annotations

import logging
import struct
from collections.abc import Callable, Iterable
from enum import IntEnum
from functools import partial
from typing import Any, TypeAlias

from barnabas.kernels import (
    CODEC_MASK,
    HEADER_SIZE,
    NO_TIMESTAMP,
    Buffer,
    crc32c,
)
from barnabas.kernels.batch_header import PREFIX_SIZE
from barnabas.kernels.python.builder import encode_record
from barnabas.model.ids import TopicPartition
from barnabas.producer.accumulator.python.buffer_pool import BufferPool
from barnabas.structs import RecordMetadata

log = logging.getLogger("barnabas.producer")

Wait: TypeAlias = Callable[["PendingBatch", float | None], object]
"""Blocks until a batch is done, at most for this many seconds."""

_SEALED = struct.Struct(">hiqqqhii")  # what the CRC covers of the header
_OPEN = struct.Struct(">qiibI")  # what comes before


class Outcome(IntEnum):
    """Which calls a watcher of a batch wants."""

    EITHER = 0  # called without arguments when the batch is done
    SUCCESS = 1  # called with the record's metadata
    FAILURE = 2  # called with the exception
    FUTURE = 3  # an asyncio future, to be set


class Segment:
    """Some records of one call that follow each other in a batch."""

    __slots__ = ("batch", "count", "first")

    def __init__(self, batch: PendingBatch, first: int) -> None:
        self.batch = batch
        self.first = first
        self.count = 1


class RecordFuture:
    """The outcome of one record, read from its batch."""

    __slots__ = ("_batch", "_header_size", "_index", "_key_size", "_timestamp", "_value_size")

    def __init__(
        self,
        batch: PendingBatch,
        index: int,
        timestamp: int,
        key_size: int,
        value_size: int,
        header_size: int,
    ) -> None:
        self._batch = batch
        self._index = index
        self._timestamp = timestamp
        self._key_size = key_size
        self._value_size = value_size
        self._header_size = header_size

    @property
    def batch(self) -> PendingBatch:
        """The batch that the record was put into."""
        return self._batch

    @property
    def is_done(self) -> bool:
        """Whether the outcome is known."""
        return self._batch.done

    @property
    def exception(self) -> BaseException | None:
        """Why the record was not written; None if it was, or is not yet."""
        batch, index = self._batch.find(self._index)
        return batch.failure_of(index) if batch.done else None

    @property
    def value(self) -> Any:
        """Where the record was written, once that is known."""
        batch, index = self._batch.find(self._index)
        if not batch.done or batch.failure_of(index) is not None:
            return None
        return batch.metadata_of(
            index, self._timestamp, self._key_size, self._value_size, self._header_size
        )

    def succeeded(self) -> bool:
        """Return whether the record was written."""
        return self._batch.done and self.exception is None

    def failed(self) -> bool:
        """Return whether the record failed."""
        return self._batch.done and self.exception is not None

    def retriable(self) -> bool:
        """Return whether sending the record again may succeed."""
        return bool(getattr(self.exception, "retriable", False))

    def get(self, timeout: float | None = None) -> Any:
        """Wait for the outcome, at most `timeout` seconds; return it or raise."""
        if not self._batch.done:
            self._batch._wait(self._batch, timeout)
        failure = self.exception
        if failure is not None:
            raise failure
        return self.value

    def add_callback(self, callback: Callable[..., object], *args: Any, **named: Any) -> Any:
        """Call with the metadata (after `args`) when the record is written."""
        return self._watch(Outcome.SUCCESS, callback, args, named)

    def add_errback(self, callback: Callable[..., object], *args: Any, **named: Any) -> Any:
        """Call with the exception (after `args`) when the record fails."""
        return self._watch(Outcome.FAILURE, callback, args, named)

    def add_both(self, callback: Callable[..., object], *args: Any, **named: Any) -> Any:
        """Call with the metadata or with the exception."""
        self._watch(Outcome.SUCCESS, callback, args, named)
        return self._watch(Outcome.FAILURE, callback, args, named)

    def resolve(self, future: Any) -> Any:
        """Set an asyncio future when the outcome is known; return that future."""
        self._batch.add(Outcome.FUTURE, future, self)
        return future

    def _watch(
        self,
        outcome: Outcome,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        named: dict[str, Any],
    ) -> RecordFuture:
        if args or named:
            callback = partial(callback, *args, **named)
        self._batch.add(outcome, callback, self)
        return self


class PendingBatch:
    """Records of one partition that are sent together, and their outcome."""

    __slots__ = (
        "_buffer",
        "_call",
        "_charge",
        "_failure",
        "_failures",
        "_parent",
        "_parts",
        "_pool",
        "_segment",
        "_unfinished_parts",
        "_used",
        "_wait",
        "_watchers",
        "append_time_ms",
        "base_offset",
        "base_timestamp",
        "count",
        "done",
        "full",
        "log_start_offset",
        "max_timestamp",
        "partition",
    )

    def __init__(
        self,
        pool: BufferPool,
        wait: Wait,
        partition: TopicPartition,
        records: Buffer | None = None,
    ) -> None:
        """Begin an empty batch, or wrap a complete one that the caller built."""
        self._pool = pool
        self._wait = wait
        self.partition = partition
        self.count = 0
        self.base_timestamp = NO_TIMESTAMP
        self.max_timestamp = NO_TIMESTAMP
        self.done = False
        self.full = False
        self.base_offset = -1
        self.append_time_ms = -1
        self.log_start_offset = -1
        self._buffer: bytearray | None = None
        self._used = HEADER_SIZE
        self._charge = 0
        self._failure: BaseException | None = None
        self._failures: dict[int, BaseException] | None = None
        self._watchers: list[tuple[int, Any, RecordFuture | None]] | None = []
        self._parts: list[PendingBatch] = []
        self._parent: PendingBatch | None = None
        self._unfinished_parts = 0
        self._call: object = None
        self._segment: Segment | None = None
        if records is not None:
            self._buffer = bytearray(records)
            self._used = len(self._buffer)
            _, _, base, largest, _, _, _, count = _SEALED.unpack_from(self._buffer, 21)
            self.base_timestamp, self.max_timestamp, self.count = base, largest, count

    @property
    def exception(self) -> BaseException | None:
        """Why the batch as a whole failed."""
        return self._failure

    @property
    def size(self) -> int:
        """Bytes of the batch so far, before compression."""
        return self._used

    def view(self) -> memoryview:
        """Return the batch as it was encoded; its header is there once `finish` was called."""
        assert self._buffer is not None, "the buffer of this batch was released"
        return memoryview(self._buffer)[: self._used]

    def finish(
        self,
        codec: int = 0,
        packed: Buffer | None = None,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
        attributes: int = 0,
    ) -> memoryview:
        """Write the header, and return the batch: with `packed` in place of its records."""
        if packed is None:
            batch = self.view()
        else:
            batch = memoryview(bytearray(HEADER_SIZE + len(packed)))
            batch[HEADER_SIZE:] = packed
        _SEALED.pack_into(
            batch,
            21,
            attributes & ~CODEC_MASK | codec,
            self.count - 1,
            self.base_timestamp,
            self.max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            self.count,
        )
        crc = crc32c(batch[21:])
        _OPEN.pack_into(batch, 0, 0, len(batch) - PREFIX_SIZE, -1, 2, crc)
        return batch

    def complete(
        self, base_offset: int, append_time_ms: int = -1, log_start_offset: int = -1
    ) -> None:
        """Record that the records were written, from this offset on."""
        if not self.done:
            self.base_offset = base_offset
            self.append_time_ms = append_time_ms
            self.log_start_offset = log_start_offset
            self._end()

    def fail(
        self, failure: BaseException, by_record: dict[int, BaseException] | None = None
    ) -> None:
        """Record that the records failed; `by_record` has the errors of single ones."""
        if not self.done:
            self._failure = failure
            self._failures = by_record
            self._end()

    def split(self, parts: Iterable[Buffer]) -> list[PendingBatch]:
        """Return batches with the same records in order, which replace this one."""
        batches = [PendingBatch(self._pool, self._wait, self.partition, part) for part in parts]
        for batch in batches:
            batch._parent = self
        self._unfinished_parts = len(batches)
        self._parts = batches
        return list(batches)

    def future(self, index: int = 0) -> RecordFuture:
        """Return a future for one record that was appended together with others."""
        return RecordFuture(self, index, self.base_timestamp if index == 0 else -1, -1, -1, -1)

    def watch(self, callback: Callable[[], object]) -> None:
        """Call when the batch is done, or now if it is."""
        self.add(Outcome.EITHER, callback, None)

    def add(self, outcome: int, callback: Any, future: RecordFuture | None) -> None:
        """Add a callback for the outcome; call it immediately if that is known."""
        with self._pool.lock:
            if self._watchers is not None:
                self._watchers.append((outcome, callback, future))
                return
        self._notify(outcome, callback, future)

    def find(self, index: int) -> tuple[PendingBatch, int]:
        """Return the batch that the record ended up in, and its index there."""
        batch = self
        while batch._parts:
            for part in batch._parts:
                if index < part.count:
                    batch = part
                    break
                index -= part.count
        return batch, index

    def failure_of(self, index: int) -> BaseException | None:
        """Return the error of one record of a batch that is done."""
        if self._failures is None:
            return self._failure
        return self._failures.get(index, self._failure)

    def metadata_of(
        self, index: int, timestamp: int, key_size: int, value_size: int, header_size: int
    ) -> Any:
        """Return where one record of a batch that is done was written."""
        by_broker = self.append_time_ms >= 0
        fields = (
            self.partition.topic,
            self.partition.partition,
            self.partition,
            self.base_offset + index if self.base_offset >= 0 else -1,
            self.append_time_ms if by_broker else timestamp,
            1 if by_broker else 0,
            self.log_start_offset,
            None,
            key_size,
            value_size,
            header_size,
        )
        return tuple.__new__(RecordMetadata, fields)

    def _end(self) -> None:
        with self._pool.lock:
            watchers, self._watchers = self._watchers, None
            self.done = True
            self._pool.give_back(self._buffer, self._charge)
            self._buffer = None
            self._charge = 0
        if self._pool.on_room is not None:
            self._pool.on_room()
        for outcome, callback, future in watchers or ():
            self._notify(outcome, callback, future)
        parent = self._parent
        if parent is not None:
            parent._unfinished_parts -= 1
            if parent._unfinished_parts == 0:
                parent._end()

    def _notify(self, outcome: int, callback: Any, future: RecordFuture | None) -> None:
        try:
            if outcome == Outcome.EITHER:
                callback()
                return
            assert future is not None
            failure = future.exception
            if outcome == Outcome.FUTURE:
                if callback.done():
                    return
                if failure is None:
                    callback.set_result(future.value)
                else:
                    callback.set_exception(failure)
            elif outcome == Outcome.SUCCESS:
                if failure is None:
                    callback(future.value)
            elif failure is not None:
                callback(failure)
        except Exception:  # of the user's callback: the others must be called, too
            log.exception("record callback failed, the others are still called")

    def put(
        self,
        timestamp: int,
        key: Buffer | None,
        value: Buffer | None,
        headers: tuple[tuple[str, Buffer | None], ...],
    ) -> int:
        """Encode a record and return its index, or -1 if it does not fit."""
        assert self._buffer is not None
        base_timestamp = self.base_timestamp if self.count else timestamp
        record = encode_record(timestamp, base_timestamp, self.count, key, value, headers)
        size = self._used + len(record)
        if size > len(self._buffer):
            grown = self._pool.grow(self._buffer, size)
            if not grown:
                return -1
            self._charge += grown
        self._buffer[self._used : self._used + len(record)] = record
        self._used += len(record)
        self.base_timestamp = base_timestamp
        self.max_timestamp = max(self.max_timestamp, timestamp)
        self.count += 1
        return self.count - 1

    def note_last(self, segments: list[Segment]) -> None:
        """Add the last record to the segments of the call that it belongs to."""
        index = self.count - 1
        last = self._segment
        if self._call is segments and last is not None and last.first + last.count == index:
            last.count += 1
            return
        self._call = segments
        self._segment = Segment(self, index)
        segments.append(self._segment)

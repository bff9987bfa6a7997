"""A batch that is being filled, its outcome, and the futures that ask it; see the Python twin."""

cimport cython
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_Resize
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

import logging
from functools import partial

from barnabas.kernels.cython.crc32c cimport checksum
from barnabas.kernels.cython.fields cimport Field, body_size, borrow, give_back, put_record
from barnabas.kernels.cython.layout cimport (
    RELEASE_FROM,
    load32,
    load64,
    store16,
    store32,
    store64,
    unsigned_size,
    zigzag64,
)
from barnabas.producer.accumulator.cython.buffer_pool cimport BufferPool
from barnabas.structs import RecordMetadata

cdef enum:
    HEADER_SIZE = 61
    PREFIX_SIZE = 12
    CODEC_MASK = 0x07

cdef enum:  # which calls a watcher of a batch wants
    EITHER = 0  # called without arguments when the batch is done
    SUCCESS = 1  # called with the record's metadata
    FAILURE = 2  # called with the exception
    FUTURE = 3  # an asyncio future, to be set

log = logging.getLogger("barnabas.producer")


@cython.final
cdef class Segment:
    """Some records of one call that follow each other in a batch."""


@cython.final
@cython.freelist(1024)
@cython.no_gc  # it points at its batch alone, and a batch lets go of everything when it is done
cdef class RecordFuture:
    """The outcome of one record, read from its batch."""

    @property
    def is_done(self):
        """Whether the outcome is known."""
        return self.batch.done

    @property
    def exception(self):
        """Why the record was not written; None if it was, or is not yet."""
        cdef int64_t index = self.index
        cdef PendingBatch batch = find(self.batch, &index)
        return batch.failure_of(index) if batch.done else None

    @property
    def value(self):
        """Where the record was written, once that is known."""
        cdef int64_t index = self.index
        cdef PendingBatch batch = find(self.batch, &index)
        if not batch.done or batch.failure_of(index) is not None:
            return None
        return self.metadata(batch, index)

    cdef object metadata(self, PendingBatch batch, int64_t index):
        return batch.metadata_of(
            index, self.timestamp, self.key_size, self.value_size, self.header_size
        )

    def succeeded(self):
        """Return whether the record was written."""
        return self.batch.done and self.exception is None

    def failed(self):
        """Return whether the record failed."""
        return self.batch.done and self.exception is not None

    def retriable(self):
        """Return whether sending the record again may succeed."""
        return bool(getattr(self.exception, "retriable", False))

    def get(self, timeout=None):
        """Wait for the outcome, at most `timeout` seconds; return it or raise."""
        if not self.batch.done:
            self.batch.wait(self.batch, timeout)
        failure = self.exception
        if failure is not None:
            raise failure
        return self.value

    def add_callback(self, callback, *args, **named):
        """Call with the metadata (after `args`) when the record is written."""
        if args or named:
            callback = partial(callback, *args, **named)
        self.batch.add(SUCCESS, callback, self)
        return self

    def add_errback(self, callback, *args, **named):
        """Call with the exception (after `args`) when the record fails."""
        if args or named:
            callback = partial(callback, *args, **named)
        self.batch.add(FAILURE, callback, self)
        return self

    def add_both(self, callback, *args, **named):
        """Call with the metadata or with the exception."""
        if args or named:
            callback = partial(callback, *args, **named)
        self.batch.add(SUCCESS, callback, self)
        self.batch.add(FAILURE, callback, self)
        return self

    def resolve(self, future):
        """Set an asyncio future when the outcome is known; return that future."""
        self.batch.add(FUTURE, future, self)
        return future


@cython.final
cdef class PendingBatch:
    """Records of one partition that are sent together, and their outcome."""

    def __init__(self, BufferPool pool, wait, partition, records=None):
        """Begin an empty batch, or wrap a complete one that the caller built."""
        cdef uint8_t* p
        self.begin(pool, wait, partition)
        if records is not None:
            self.buffer = bytearray(records)
            self.used = self.capacity = len(self.buffer)
            if self.used < HEADER_SIZE:
                raise ValueError("a batch is longer than its header")
            p = <uint8_t*>PyByteArray_AS_STRING(self.buffer)
            self.base_timestamp = <int64_t>load64(p + 27)
            self.max_timestamp = <int64_t>load64(p + 35)
            self.count = <int32_t>load32(p + 57)

    cdef void begin(self, BufferPool pool, object wait, object partition):
        self.pool = pool
        self.wait = wait
        self.partition = partition
        self.base_timestamp = self.max_timestamp = -1
        self.base_offset = self.append_time_ms = self.log_start_offset = -1
        self.used = HEADER_SIZE

    @property
    def exception(self):
        """Why the batch as a whole failed."""
        return self.failure

    @property
    def size(self):
        """Bytes of the batch so far, before compression."""
        return self.used

    def view(self):
        """Return the batch as it was encoded; its header is there once `finish` was called."""
        assert self.buffer is not None, "the buffer of this batch was released"
        return memoryview(self.buffer)[:self.used]

    def finish(
        self,
        int codec=0,
        packed=None,
        int64_t producer_id=-1,
        int16_t producer_epoch=-1,
        int32_t base_sequence=-1,
        int attributes=0,
    ):
        """Write the header, and return the batch: with `packed` in place of its records."""
        cdef bytearray batch
        cdef Field field
        cdef Py_ssize_t size
        cdef uint8_t* p
        cdef uint32_t crc
        assert self.buffer is not None, "the buffer of this batch was released"
        if packed is None:
            batch = self.buffer
            size = self.used
        else:
            borrow(packed, &field)
            try:
                size = HEADER_SIZE + field.size
                batch = bytearray()
                PyByteArray_Resize(batch, size)
                memcpy(PyByteArray_AS_STRING(batch) + HEADER_SIZE, field.data, field.size)
            finally:
                give_back(&field)
        p = <uint8_t*>PyByteArray_AS_STRING(batch)
        store64(p, 0)
        store32(p + 8, <uint32_t>(size - PREFIX_SIZE))
        store32(p + 12, 0xFFFFFFFF)
        p[16] = 2
        store16(p + 21, <uint16_t>((attributes & ~CODEC_MASK) | codec))
        store32(p + 23, <uint32_t>(self.count - 1))
        store64(p + 27, <uint64_t>self.base_timestamp)
        store64(p + 35, <uint64_t>self.max_timestamp)
        store64(p + 43, <uint64_t>producer_id)
        store16(p + 51, <uint16_t>producer_epoch)
        store32(p + 53, <uint32_t>base_sequence)
        store32(p + 57, <uint32_t>self.count)
        if size < RELEASE_FROM:
            crc = checksum(p + 21, size - 21, 0)
        else:
            with nogil:
                crc = checksum(p + 21, size - 21, 0)
        store32(p + 17, crc)
        return memoryview(batch)[:size]

    def complete(
        self, int64_t base_offset, int64_t append_time_ms=-1, int64_t log_start_offset=-1
    ):
        """Record that the records were written, from this offset on."""
        if not self.done:
            self.base_offset = base_offset
            self.append_time_ms = append_time_ms
            self.log_start_offset = log_start_offset
            self.end()

    def fail(self, failure, dict by_record=None):
        """Record that the records failed; `by_record` has the errors of single ones."""
        if not self.done:
            self.failure = failure
            self.failures = by_record
            self.end()

    def split(self, parts):
        """Return batches with the same records in order, which replace this one."""
        cdef PendingBatch part
        cdef list batches = []
        for records in parts:
            part = PendingBatch(self.pool, self.wait, self.partition, records)
            part.parent = self
            batches.append(part)
        self.unfinished_parts = len(batches)
        self.parts = batches
        return list(batches)

    def find(self, int64_t index):
        """Return the batch that the record ended up in, and its index there."""
        cdef PendingBatch batch = find(self, &index)
        return batch, index

    def future(self, int64_t index=0):
        """Return a future for one record that was appended together with others."""
        cdef RecordFuture future = RecordFuture.__new__(RecordFuture)
        future.batch = self
        future.index = index
        future.timestamp = self.base_timestamp if index == 0 else -1
        future.key_size = future.value_size = future.header_size = -1
        return future

    def watch(self, callback):
        """Call when the batch is done, or now if it is."""
        self.add(EITHER, callback, None)

    cdef void add(self, int outcome, object callback, RecordFuture future):
        """Add a callback for the outcome; call it immediately if that is known."""
        cdef list fresh
        if self.watchers is None and not self.done:
            fresh = []
            if self.watchers is None:
                self.watchers = fresh
        if self.done:
            self.notify(outcome, callback, future)
            return
        # Three entries each: a tuple for each would be an object more for the garbage collector.
        self.watchers.append(outcome)
        self.watchers.append(callback)
        self.watchers.append(future)

    cdef object failure_of(self, int64_t index):
        if self.failures is None:
            return self.failure
        return self.failures.get(index, self.failure)

    cdef object metadata_of(
        self,
        int64_t index,
        int64_t timestamp,
        int64_t key_size,
        int64_t value_size,
        int64_t header_size,
    ):
        cdef bint by_broker = self.append_time_ms >= 0
        cdef tuple fields = (
            self.partition[0],
            self.partition[1],
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

    cdef int end(self) except -1:
        cdef list watchers = self.watchers
        cdef PendingBatch parent = self.parent
        cdef Py_ssize_t i
        self.watchers = None
        self.done = True
        self.segment = None  # it points back here
        self.call = None
        self.pool.give_back(self.buffer, self.charge)
        self.buffer = None
        self.charge = 0
        if self.pool.on_room is not None:
            self.pool.on_room()
        if watchers is not None:
            for i in range(0, len(watchers), 3):
                self.notify(watchers[i], watchers[i + 1], watchers[i + 2])
        if parent is not None:
            parent.unfinished_parts -= 1
            if parent.unfinished_parts == 0:
                parent.end()
        return 0

    cdef void notify(self, int outcome, object callback, RecordFuture future):
        cdef PendingBatch batch
        cdef int64_t index
        try:
            if outcome == EITHER:
                callback()
                return
            index = future.index
            batch = find(self, &index)
            failure = batch.failure_of(index)
            if outcome == FUTURE:
                if callback.done():
                    return
                if failure is None:
                    callback.set_result(future.metadata(batch, index))
                else:
                    callback.set_exception(failure)
            elif outcome == SUCCESS:
                if failure is None:
                    callback(future.metadata(batch, index))
            elif failure is not None:
                callback(failure)
        except Exception:  # of the user's callback: the others must be called, too
            log.exception("record callback failed, the others are still called")

    cdef int64_t put(
        self,
        int64_t timestamp,
        Field* key,
        Field* value,
        int64_t header_count,
        const char* headers,
        Py_ssize_t headers_size,
    ) noexcept:
        """Encode a record and return its index, or -1 if it does not fit."""
        cdef int64_t base_timestamp = self.base_timestamp if self.count else timestamp
        cdef uint64_t delta = zigzag64(
            <int64_t>(<uint64_t>timestamp - <uint64_t>base_timestamp)
        )
        cdef int64_t body = body_size(delta, self.count, key, value, header_count, headers_size)
        cdef Py_ssize_t size = unsigned_size(<uint64_t>body << 1) + body
        if self.used + size > self.capacity and not self.grow(self.used + size):
            return -1
        put_record(
            <uint8_t*>PyByteArray_AS_STRING(self.buffer) + self.used,
            body, delta, self.count, key, value, header_count, headers, headers_size,
        )
        self.used += size
        self.base_timestamp = base_timestamp
        if timestamp > self.max_timestamp:
            self.max_timestamp = timestamp
        self.count += 1
        return self.count - 1

    cdef RecordFuture last_future(
        self, int64_t timestamp, int64_t key_size, int64_t value_size, int64_t header_size
    ):
        """Return a future of the record that was put in last."""
        cdef int64_t index = self.count - 1
        cdef RecordFuture future = RecordFuture.__new__(RecordFuture)
        future.batch = self
        future.index = index
        future.timestamp = timestamp
        future.key_size = key_size
        future.value_size = value_size
        future.header_size = header_size
        return future

    cdef bint grow(self, Py_ssize_t size) noexcept:
        """Get more room for a batch that could not be sent yet, if it may grow so far."""
        cdef Py_ssize_t capacity = self.pool.grow(self.buffer, self.capacity, size)
        if capacity == 0:
            return False
        self.charge += capacity - self.capacity
        self.capacity = capacity
        return True

    cdef int note_last(self, list segments) except -1:
        """Add the last record to the segments of the call that it belongs to."""
        cdef int64_t index = self.count - 1
        cdef Segment segment = self.segment
        if self.call is segments and segment.first + segment.count == index:
            segment.count += 1
            return 0
        segment = Segment.__new__(Segment)
        segment.batch = self
        segment.first = index
        segment.count = 1
        self.call = segments
        self.segment = segment
        segments.append(segment)
        return 0


cdef PendingBatch find(PendingBatch batch, int64_t* index):
    """Return the batch that a record ended up in, and set its index there."""
    cdef PendingBatch part
    while batch.parts is not None:
        for part in batch.parts:
            if index[0] < part.count:
                batch = part
                break
            index[0] -= part.count
    return batch

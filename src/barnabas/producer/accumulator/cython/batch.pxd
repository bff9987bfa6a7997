cimport cython
from libc.stdint cimport int64_t

from barnabas.kernels.cython.fields cimport Field
from barnabas.producer.accumulator.cython.buffer_pool cimport BufferPool


cdef class PendingBatch


@cython.final
cdef class Segment:
    cdef readonly PendingBatch batch
    cdef readonly int64_t first
    cdef readonly int64_t count


@cython.final
cdef class RecordFuture:
    cdef readonly PendingBatch batch
    cdef int64_t index
    cdef int64_t timestamp
    cdef int64_t key_size
    cdef int64_t value_size
    cdef int64_t header_size

    cdef object metadata(self, PendingBatch batch, int64_t index)


@cython.final
cdef class PendingBatch:
    cdef readonly object partition
    cdef readonly int64_t count
    cdef readonly int64_t base_timestamp
    cdef readonly int64_t max_timestamp
    cdef readonly bint done
    cdef readonly int64_t base_offset
    cdef readonly int64_t append_time_ms
    cdef readonly int64_t log_start_offset
    cdef readonly bint full  # set by the accumulator
    cdef BufferPool pool
    cdef object wait
    cdef bytearray buffer  # of `capacity` bytes; None once its memory was given back
    cdef Py_ssize_t capacity
    cdef Py_ssize_t used
    cdef Py_ssize_t charge
    cdef object failure
    cdef dict failures
    cdef list watchers
    cdef list parts
    cdef PendingBatch parent
    cdef Py_ssize_t unfinished_parts
    cdef list call
    cdef Segment segment

    cdef void begin(self, BufferPool pool, object wait, object partition)
    cdef void add(self, int outcome, object callback, RecordFuture future)
    cdef object failure_of(self, int64_t index)
    cdef object metadata_of(
        self,
        int64_t index,
        int64_t timestamp,
        int64_t key_size,
        int64_t value_size,
        int64_t header_size,
    )
    cdef int end(self) except -1
    cdef void notify(self, int outcome, object callback, RecordFuture future)
    cdef int64_t put(
        self,
        int64_t timestamp,
        Field* key,
        Field* value,
        int64_t header_count,
        const char* headers,
        Py_ssize_t headers_size,
    ) noexcept
    cdef RecordFuture last_future(
        self, int64_t timestamp, int64_t key_size, int64_t value_size, int64_t header_size
    )
    cdef bint grow(self, Py_ssize_t size) noexcept
    cdef int note_last(self, list segments) except -1

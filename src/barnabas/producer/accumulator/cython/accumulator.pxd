cimport cython
from libc.stdint cimport int64_t

from barnabas.kernels.cython.fields cimport Field
from barnabas.producer.accumulator.cython.batch cimport PendingBatch
from barnabas.producer.accumulator.cython.buffer_pool cimport BufferPool
from barnabas.producer.accumulator.cython.headers cimport Headers


@cython.final
cdef class PendingPartition:
    cdef readonly object partition
    cdef readonly PendingBatch open
    cdef readonly list closed
    cdef bint noted


@cython.final
cdef class Topic:
    cdef str name
    cdef int64_t count
    cdef list slots
    cdef int64_t sticky
    cdef int64_t sticky_bytes


@cython.final
cdef class Accumulator:
    cdef readonly BufferPool pool
    cdef public bint closed
    cdef readonly object wake
    cdef readonly object wait
    cdef object choose
    cdef readonly int64_t record_size_max
    cdef bint ignore_keys
    cdef object clock
    cdef dict topics
    cdef list changed
    cdef bint signalled

    cdef object put(
        self,
        object topic,
        object value,
        object key,
        object headers,
        object partition,
        object timestamp_ms,
        bint in_turn,
    )
    cdef int64_t now(self) except? -1
    cdef object place(
        self,
        object name,
        int64_t timestamp,
        Field* key,
        Field* value,
        Headers* head,
        int64_t target,
        bint in_turn,
    )
    cdef int64_t sticky_partition(self, Topic topic, int64_t size) except -1
    cdef PendingBatch new_batch(self, PendingPartition slot, Py_ssize_t charge)
    cdef void close(self, PendingPartition slot)
    cdef void note(self, PendingPartition slot)
    cdef int wake_sender(self) except -1
    cdef object put_row(
        self, object topic, object row, int64_t target, list segments, bint in_turn
    )

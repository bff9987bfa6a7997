"""The memory that a producer's batches share; see the Python twin."""

cimport cython
from cpython.bytearray cimport PyByteArray_Resize
from libc.stdint cimport int64_t

from barnabas.model.errors import InvalidValueError

cdef enum:
    HEADER_SIZE = 61


@cython.final
cdef class BufferPool:
    """At most `memory` bytes of buffers; those of the usual size are used again."""

    def __init__(self, int64_t memory, Py_ssize_t batch_size, Py_ssize_t batch_size_max=0):
        """Prepare the pool; a batch of `batch_size` bytes may grow up to `batch_size_max`."""
        if memory < batch_size:
            raise InvalidValueError(
                f"buffer.memory={memory} must have room for one batch (batch.size={batch_size})"
            )
        self.memory = memory
        self.batch_size = max(batch_size, HEADER_SIZE)
        self.batch_size_max = max(self.batch_size, batch_size_max)
        self.free = []

    cdef bint reserve(self, int64_t size, bint in_turn):
        """Reserve memory for the caller; return whether there was enough."""
        if self.waiting and not in_turn:
            return False
        if self.in_use + size > self.memory and self.in_use > 0:
            return False  # a single batch may be larger than all memory: it would never fit
        self.in_use += size
        while self.free and self.in_use + len(self.free) * self.batch_size > self.memory:
            self.free.pop()
        return True

    cdef bytearray take(self, Py_ssize_t size):
        """Return a buffer of a size that was reserved."""
        cdef bytearray buffer
        if size == self.batch_size and self.free:
            return self.free.pop()
        buffer = bytearray()
        PyByteArray_Resize(buffer, size)
        return buffer

    cdef Py_ssize_t grow(self, bytearray buffer, Py_ssize_t capacity, Py_ssize_t size) noexcept:
        """Make room for `size` bytes in a buffer; return its new capacity, or 0 if it may not."""
        cdef Py_ssize_t wanted = min(max(2 * capacity, size), self.batch_size_max)
        if self.waiting or size > wanted or self.in_use + wanted - capacity > self.memory:
            return 0
        try:
            PyByteArray_Resize(buffer, wanted)
        except (MemoryError, BufferError):  # a view of its last batch is still alive
            return 0
        self.in_use += wanted - capacity
        return wanted

    cdef int give_back(self, bytearray buffer, int64_t charge) except -1:
        """Release a buffer that was charged with this many bytes."""
        self.in_use -= charge
        if charge == self.batch_size and buffer is not None:
            self.free.append(buffer)
        return 0

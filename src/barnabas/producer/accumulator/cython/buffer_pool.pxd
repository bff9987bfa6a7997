cimport cython
from libc.stdint cimport int64_t


@cython.final
cdef class BufferPool:
    cdef readonly int64_t memory
    cdef readonly int64_t in_use
    cdef readonly Py_ssize_t batch_size
    cdef readonly Py_ssize_t batch_size_max
    cdef public bint waiting
    cdef public object on_room
    cdef list free

    cdef bint reserve(self, int64_t size, bint in_turn)
    cdef bytearray take(self, Py_ssize_t size)
    cdef Py_ssize_t grow(self, bytearray buffer, Py_ssize_t capacity, Py_ssize_t size) noexcept
    cdef int give_back(self, bytearray buffer, int64_t charge) except -1

from libc.stdint cimport uint8_t, uint32_t

cdef uint32_t hash_bytes(const uint8_t* data, Py_ssize_t size) noexcept nogil

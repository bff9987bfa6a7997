from libc.stdint cimport uint8_t, uint32_t

cdef uint32_t checksum(const uint8_t* data, size_t size, uint32_t value) noexcept nogil

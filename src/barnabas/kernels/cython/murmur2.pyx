"""murmur2 as Kafka's partitioners use it: a key has the same partition in every client."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int32_t, uint8_t, uint32_t

cdef enum:
    SEED = 0x9747B28C
    MULTIPLIER = 0x5BD1E995


cdef uint32_t hash_bytes(const uint8_t* data, Py_ssize_t size) noexcept nogil:
    cdef uint32_t hashed = <uint32_t>SEED ^ <uint32_t>size
    cdef uint32_t word
    while size >= 4:
        word = data[0] | <uint32_t>data[1] << 8 | <uint32_t>data[2] << 16 | <uint32_t>data[3] << 24
        word *= <uint32_t>MULTIPLIER
        word ^= word >> 24
        word *= <uint32_t>MULTIPLIER
        hashed = hashed * <uint32_t>MULTIPLIER ^ word
        data += 4
        size -= 4
    if size:
        word = data[0]
        if size > 1:
            word |= <uint32_t>data[1] << 8
        if size > 2:
            word |= <uint32_t>data[2] << 16
        hashed = (hashed ^ word) * <uint32_t>MULTIPLIER
    hashed ^= hashed >> 13
    hashed *= <uint32_t>MULTIPLIER
    hashed ^= hashed >> 15
    return hashed


def murmur2(data, /):
    """Return the hash as a signed 32-bit number, as Java has it."""
    cdef Py_buffer view
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    cdef uint32_t hashed = hash_bytes(<const uint8_t*>view.buf, view.len)
    PyBuffer_Release(&view)
    return <int32_t>hashed

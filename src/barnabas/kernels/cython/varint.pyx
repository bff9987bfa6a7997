"""Variable-length numbers: seven bits a byte, lowest first; signed ones are zigzag-coded before."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from barnabas.kernels.contract import wrong_varint
from barnabas.kernels.cython.layout cimport put_unsigned, read_unsigned, zigzag32, zigzag64


cdef bytes encode(uint64_t value):
    cdef uint8_t[10] out
    cdef uint8_t* end = put_unsigned(out, value)
    return PyBytes_FromStringAndSize(<char*>out, end - out)


cdef Py_ssize_t decode(
    object buffer, Py_ssize_t position, int shift_end, uint64_t* value
) except -1:
    """Read the number at position and return the position after it."""
    cdef Py_buffer view
    cdef const uint8_t* cursor
    cdef int fault = 1
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    if 0 <= position < view.len:
        cursor = <const uint8_t*>view.buf + position
        fault = read_unsigned(
            &cursor, <const uint8_t*>view.buf + view.len, value, shift_end, 1
        )
        position = cursor - <const uint8_t*>view.buf
    PyBuffer_Release(&view)
    if fault:
        raise wrong_varint()
    return position


def encode_unsigned_varint(uint32_t value, /):
    """Encode 0 ≤ value < 2³²."""
    return encode(value)


def encode_varint(int32_t value, /):
    """Encode a signed 32-bit number."""
    return encode(zigzag32(value))


def encode_varlong(int64_t value, /):
    """Encode a signed 64-bit number."""
    return encode(zigzag64(value))


def decode_unsigned_varint(buffer, Py_ssize_t position=0, /):
    """Return the number at position, and the position after it."""
    cdef uint64_t value = 0
    position = decode(buffer, position, 35, &value)
    return <uint32_t>value, position


def decode_varint(buffer, Py_ssize_t position=0, /):
    """Return the signed number at position, and the position after it."""
    cdef uint64_t wide = 0
    position = decode(buffer, position, 35, &wide)
    cdef uint32_t value = <uint32_t>wide
    return <int32_t>((value >> 1) ^ (0 - (value & 1))), position


def decode_varlong(buffer, Py_ssize_t position=0, /):
    """Return the signed 64-bit number at position, and the position after it."""
    cdef uint64_t value = 0
    position = decode(buffer, position, 70, &value)
    return <int64_t>((value >> 1) ^ (0 - (value & 1))), position

"""Borrowed bytes and how they stand in a record, shared by the compiled kernels as inline code."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

from barnabas.kernels.cython.layout cimport put_unsigned, unsigned_size, zigzag32


cdef struct Field:
    # Borrowed bytes; a size of -1 is null. `held` says that the view must be given back; bytes
    # objects are not held, so the borrower keeps a reference to the object meanwhile.
    const uint8_t* data
    Py_ssize_t size
    Py_buffer view
    bint held


cdef struct Cells:
    # One column of Arrow: validity bits (or NULL), int32 offsets, data.
    bint present
    Field validity
    Field offsets
    Field data


cdef inline int borrow(object source, Field* field) except -1:
    field.held = False
    field.data = NULL
    if source is None:
        field.size = -1
    elif PyBytes_CheckExact(source):
        field.data = <const uint8_t*>PyBytes_AS_STRING(source)
        field.size = PyBytes_GET_SIZE(source)
    else:
        PyObject_GetBuffer(source, &field.view, PyBUF_SIMPLE)
        field.held = True
        field.data = <const uint8_t*>field.view.buf
        field.size = field.view.len
    return 0


cdef inline void give_back(Field* field) noexcept:
    if field.held:
        field.held = False
        PyBuffer_Release(&field.view)


cdef inline int borrow_cells(object column, Cells* cells) except -1:
    cdef tuple buffers
    cells.present = column is not None
    cells.validity.held = cells.offsets.held = cells.data.held = False
    if cells.present:
        buffers = <tuple?>column  # which keeps its parts alive, as its caller keeps it
        if len(buffers) != 3:
            raise TypeError("a column is (validity, offsets, data)")
        borrow(buffers[0], &cells.validity)
        borrow(buffers[1], &cells.offsets)
        borrow(buffers[2], &cells.data)
    return 0


cdef inline void give_back_cells(Cells* cells) noexcept:
    if cells.present:
        give_back(&cells.validity)
        give_back(&cells.offsets)
        give_back(&cells.data)


cdef inline bint read_cell(Cells* cells, Py_ssize_t index, Field* field) noexcept nogil:
    """Point field at the cell of a row; False if the row is outside the buffers."""
    cdef int32_t start, stop
    field.held = False
    field.data = NULL
    field.size = -1
    if not cells.present:
        return True
    if cells.validity.size >= 0:
        if index >= 8 * cells.validity.size:
            return False
        if not (cells.validity.data[index >> 3] >> (index & 7)) & 1:
            return True
    if index + 1 >= cells.offsets.size // 4:
        return False
    memcpy(&start, cells.offsets.data + 4 * index, 4)
    memcpy(&stop, cells.offsets.data + 4 * index + 4, 4)
    if not (0 <= start <= stop <= cells.data.size):
        return False
    field.data = cells.data.data + start
    field.size = stop - start
    return True


cdef inline int64_t field_size(Py_ssize_t size) noexcept nogil:
    """Return the bytes of a length and of what it announces."""
    return 1 if size < 0 else unsigned_size(<uint64_t>size << 1) + size


cdef inline uint8_t* put_field(uint8_t* p, const uint8_t* data, Py_ssize_t size) noexcept nogil:
    if size < 0:
        p[0] = 1
        return p + 1
    p = put_unsigned(p, <uint64_t>size << 1)
    memcpy(p, data, size)
    return p + size


cdef inline int64_t body_size(
    uint64_t delta,
    int64_t offset_delta,
    Field* key,
    Field* value,
    int64_t header_count,
    Py_ssize_t headers_size,
) noexcept nogil:
    """Return the bytes of a record after its length; `delta` is the time's, in zigzag."""
    return (
        1
        + unsigned_size(delta)
        + unsigned_size(zigzag32(<int32_t>offset_delta))
        + field_size(key.size)
        + field_size(value.size)
        + unsigned_size(<uint64_t>header_count << 1)
        + headers_size
    )


cdef inline void put_record(
    uint8_t* p,
    int64_t body,
    uint64_t delta,
    int64_t offset_delta,
    Field* key,
    Field* value,
    int64_t header_count,
    const char* headers,
    Py_ssize_t headers_size,
) noexcept nogil:
    """Write a record of a known size; `headers` are encoded already."""
    p = put_unsigned(p, <uint64_t>body << 1)
    p[0] = 0
    p = put_unsigned(p + 1, delta)
    p = put_unsigned(p, zigzag32(<int32_t>offset_delta))
    p = put_field(p, key.data, key.size)
    p = put_field(p, value.data, value.size)
    p = put_unsigned(p, <uint64_t>header_count << 1)
    if headers_size:
        memcpy(p, headers, headers_size)

"""Columns that grow row by row, shared with the cursor as inline code that needs no GIL."""

from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t
from libc.stdlib cimport realloc
from libc.string cimport memcpy

from barnabas.kernels.cython.layout cimport FAULT_LENGTH, Layout, read_varint

cdef enum:
    # In place of a Fault.
    NO_MEMORY = -1
    FULL = -2

cdef enum:
    # The blocks of a store.
    TOPIC, PARTITION, OFFSET, TIMESTAMP, TIMESTAMP_TYPE
    KEY_VALID, KEY_OFFSET, KEY_DATA
    VALUE_VALID, VALUE_OFFSET, VALUE_DATA
    HEADER_OFFSET
    NAME_VALID, NAME_OFFSET, NAME_DATA
    CONTENT_VALID, CONTENT_OFFSET, CONTENT_DATA
    BLOCKS


cdef struct Memory:
    uint8_t* data
    Py_ssize_t used
    Py_ssize_t capacity


cdef class Block:
    cdef Memory memory
    cdef int exports


cdef struct Cells:
    # A column of bytes.
    Memory* valid
    Memory* offset
    Memory* data
    int64_t nulls


cdef class ColumnStore:
    cdef readonly int64_t count
    cdef list blocks
    cdef list spares
    cdef list topics
    cdef dict topic_indexes
    cdef Memory* memories[BLOCKS]
    cdef int64_t header_count
    cdef Cells keys, values, names, contents

    cdef int begin(self) except -1
    cdef Block unread(self, int which)
    cdef int32_t topic_index(self, str topic) except -1
    cdef int put_headers(self, Layout* layout) noexcept nogil
    cdef int put_text(self, const uint8_t* data, int32_t length) noexcept with gil


cdef inline int reserve(Memory* memory, Py_ssize_t size) noexcept nogil:
    """Make room for this many bytes in all; return 0 or NO_MEMORY."""
    cdef Py_ssize_t capacity = memory.capacity
    cdef uint8_t* data
    if size <= capacity:
        return 0
    if capacity < 4096:
        capacity = 4096
    while capacity < size:
        capacity += capacity // 2
    data = <uint8_t*>realloc(memory.data, capacity)
    if data == NULL:
        return NO_MEMORY
    memory.data = data
    memory.capacity = capacity
    return 0


cdef inline int put_cell(
    Cells* cells, int64_t row, const uint8_t* source, int32_t size
) noexcept nogil:
    """Write the cell of a row (a negative size is null); return 0, NO_MEMORY or FULL."""
    cdef uint8_t bit = <uint8_t>(1 << (row & 7))
    if size > INT32_MAX - cells.data.used:
        return FULL
    if reserve(cells.offset, 4 * (row + 2)) or reserve(cells.valid, (row >> 3) + 1):
        return NO_MEMORY
    if row & 7 == 0:
        cells.valid.data[row >> 3] = 0
    if size < 0:
        cells.nulls += 1
        cells.valid.data[row >> 3] &= ~bit
    else:
        if reserve(cells.data, cells.data.used + size):
            return NO_MEMORY
        cells.valid.data[row >> 3] |= bit
        memcpy(cells.data.data + cells.data.used, source, size)
        cells.data.used += size
    (<int32_t*>cells.offset.data)[row + 1] = <int32_t>cells.data.used
    return 0


cdef inline void take_back(Cells* cells, int32_t size) noexcept nogil:
    """Undo the last `put_cell`: its row will be written again."""
    if size < 0:
        cells.nulls -= 1
    else:
        cells.data.used -= size


cdef inline int put_number32(Memory* memory, int64_t row, int32_t number) noexcept nogil:
    if reserve(memory, 4 * (row + 1)):
        return NO_MEMORY
    (<int32_t*>memory.data)[row] = number
    return 0


cdef inline int put_number64(Memory* memory, int64_t row, int64_t number) noexcept nogil:
    if reserve(memory, 8 * (row + 1)):
        return NO_MEMORY
    (<int64_t*>memory.data)[row] = number
    return 0


cdef inline int put_number8(Memory* memory, int64_t row, uint8_t number) noexcept nogil:
    if reserve(memory, row + 1):
        return NO_MEMORY
    memory.data[row] = number
    return 0

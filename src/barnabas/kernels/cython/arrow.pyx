"""Records of one batch as the buffers of Arrow's columns, without an object for each record.

A first walk checks every record and adds up the sizes, so that each buffer is allocated once and
exactly; a second one fills them. The GIL is held throughout: the bytes cannot change in between.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset

from barnabas.kernels.contract import Columns, corrupt_record, record_too_large, wrong_range
from barnabas.kernels.cython.layout cimport (
    FAULT_COUNT,
    FAULT_LEFTOVER,
    FAULT_LENGTH,
    Layout,
    read_layout,
    read_varint,
)


cdef struct Target:
    # Where a column of bytes is written.
    uint8_t* validity  # NULL: no cell is null
    int32_t* offsets
    uint8_t* data
    int32_t used


cdef bytes new_bytes(Py_ssize_t size):
    return PyBytes_FromStringAndSize(NULL, size)


cdef tuple new_column(Target* target, int64_t count, int64_t nulls, int64_t size):
    """Allocate a column's buffers and point the target at them."""
    cdef bytes validity = None
    cdef bytes offsets = new_bytes(4 * (count + 1))
    cdef bytes data = new_bytes(size)
    target.validity = NULL
    if nulls:
        validity = new_bytes((count + 7) // 8)
        target.validity = <uint8_t*>PyBytes_AS_STRING(validity)
        memset(target.validity, 0, (count + 7) // 8)
    target.offsets = <int32_t*>PyBytes_AS_STRING(offsets)
    target.data = <uint8_t*>PyBytes_AS_STRING(data)
    target.used = 0
    target.offsets[0] = 0
    return validity, offsets, data


cdef inline void put_cell(
    Target* target, int64_t index, const uint8_t* data, int32_t size
) noexcept nogil:
    if size >= 0:
        if target.validity != NULL:
            target.validity[index >> 3] |= <uint8_t>(1 << (index & 7))
        memcpy(target.data + target.used, data, size)
        target.used += size
    target.offsets[index + 1] = target.used


cdef tuple object_column(list cells):
    """Return the column of bytes objects and None."""
    cdef Target target
    cdef int64_t size = 0, nulls = 0, index
    cdef bytes cell
    for cell in cells:
        if cell is None:
            nulls += 1
        else:
            size += len(cell)
    if size > INT32_MAX:
        raise record_too_large(size)
    cdef tuple column = new_column(&target, len(cells), nulls, size)
    for index in range(len(cells)):
        cell = cells[index]
        if cell is None:
            put_cell(&target, index, NULL, -1)
        else:
            put_cell(&target, index, <const uint8_t*>PyBytes_AS_STRING(cell), <int32_t>len(cell))
    return column


cdef int collect_headers(Layout* layout, list names, list contents) except -1:
    cdef const uint8_t* p = layout.headers
    cdef int32_t _index, length = 0
    for _index in range(layout.header_count):
        read_varint(&p, layout.end, &length, FAULT_LENGTH)
        names.append(PyUnicode_DecodeUTF8(<const char*>p, length, "replace").encode("utf-8"))
        p += length
        read_varint(&p, layout.end, &length, FAULT_LENGTH)
        contents.append(None if length < 0 else PyBytes_FromStringAndSize(<const char*>p, length))
        if length > 0:
            p += length
    return 0


cdef object fill(
    const uint8_t* start,
    const uint8_t* end,
    int64_t count,
    int64_t base_offset,
    int64_t base_timestamp,
    object append_time,
):
    cdef Layout layout
    cdef Target keys, values
    cdef const uint8_t* cursor = start
    cdef int64_t index, key_bytes = 0, value_bytes = 0, null_keys = 0, null_values = 0
    cdef int64_t headers_total = 0, timestamp = 0
    cdef int fault
    cdef bint has_append_time = append_time is not None
    if count < 0:
        raise corrupt_record(0, FAULT_COUNT)
    for index in range(count):
        fault = read_layout(cursor, end, &layout)
        if fault:
            raise corrupt_record(index, fault)
        cursor = layout.end
        if layout.key_length < 0:
            null_keys += 1
        else:
            key_bytes += layout.key_length
        if layout.value_length < 0:
            null_values += 1
        else:
            value_bytes += layout.value_length
        headers_total += layout.header_count
    if cursor != end:
        raise corrupt_record(count, FAULT_LEFTOVER)
    cdef bytes offsets = new_bytes(8 * count)
    cdef bytes timestamps = new_bytes(8 * count)
    cdef bytes header_offsets = new_bytes(4 * (count + 1))
    cdef tuple key_column = new_column(&keys, count, null_keys, key_bytes)
    cdef tuple value_column = new_column(&values, count, null_values, value_bytes)
    cdef int64_t* offset_at = <int64_t*>PyBytes_AS_STRING(offsets)
    cdef int64_t* timestamp_at = <int64_t*>PyBytes_AS_STRING(timestamps)
    cdef int32_t* header_at = <int32_t*>PyBytes_AS_STRING(header_offsets)
    cdef list names = [], contents = []
    if has_append_time:
        timestamp = append_time
    cursor = start
    header_at[0] = 0
    for index in range(count):
        read_layout(cursor, end, &layout)
        cursor = layout.end
        offset_at[index] = <int64_t>(<uint64_t>base_offset + <uint64_t><int64_t>layout.offset_delta)
        if not has_append_time:
            timestamp = <int64_t>(<uint64_t>base_timestamp + <uint64_t>layout.timestamp_delta)
        timestamp_at[index] = timestamp
        put_cell(&keys, index, layout.key, layout.key_length)
        put_cell(&values, index, layout.value, layout.value_length)
        header_at[index + 1] = header_at[index] + layout.header_count
        if layout.header_count:
            collect_headers(&layout, names, contents)
    return Columns(
        count,
        offsets,
        timestamps,
        key_column,
        value_column,
        header_offsets,
        object_column(names),
        object_column(contents),
    )


def records_to_columns(
    buffer,
    Py_ssize_t start,
    Py_ssize_t end,
    int64_t count,
    int64_t base_offset,
    int64_t base_timestamp,
    append_time=None,
):
    """Decode uncompressed records into columns."""
    cdef Py_buffer view
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    try:
        if not (0 <= start <= end <= view.len):
            raise wrong_range(start, end, view.len)
        if end - start > INT32_MAX:
            raise record_too_large(end - start)
        return fill(
            <const uint8_t*>view.buf + start,
            <const uint8_t*>view.buf + end,
            count,
            base_offset,
            base_timestamp,
            append_time,
        )
    finally:
        PyBuffer_Release(&view)

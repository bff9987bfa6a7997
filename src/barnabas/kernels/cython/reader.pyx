"""Records of one batch, decoded on demand."""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from barnabas.kernels.contract import corrupt_record, wrong_range
from barnabas.kernels.cython.layout cimport (
    FAULT_COUNT,
    FAULT_LEFTOVER,
    FAULT_LENGTH,
    Layout,
    read_layout,
    read_varint,
)


# Records live and die by the million. Bytes and numbers cannot form a cycle, so the collector need
# not track them: keeping many alive would otherwise cost half of the reading speed.
@cython.no_gc
@cython.freelist(512)
cdef class Record:
    """One record as a consumer sees it; compares, hashes and prints by its fields."""

    cdef readonly int64_t offset
    cdef readonly int64_t timestamp
    cdef readonly object key
    cdef readonly object value
    cdef readonly tuple headers

    def __init__(self, int64_t offset, int64_t timestamp, key, value, tuple headers=()):
        self.offset = offset
        self.timestamp = timestamp
        self.key = key
        self.value = value
        self.headers = headers

    def _fields(self):
        return self.offset, self.timestamp, self.key, self.value, self.headers

    def __eq__(self, other):
        if not isinstance(other, Record):
            return NotImplemented
        return self._fields() == other._fields()

    def __hash__(self):
        return hash(self._fields())

    def __repr__(self):
        return (
            f"Record(offset={self.offset}, timestamp={self.timestamp}, key={self.key!r}, "
            f"value={self.value!r}, headers={self.headers!r})"
        )

    def __reduce__(self):
        return Record, self._fields()


cdef inline object make_field(const uint8_t* data, int32_t length):
    return None if length < 0 else PyBytes_FromStringAndSize(<const char*>data, length)


cdef tuple make_headers(Layout* layout):
    """Return a record's headers; bytes of a name that are not UTF-8 become U+FFFD, as in Java."""
    cdef list headers = []
    cdef const uint8_t* p = layout.headers
    cdef int32_t _index, length = 0
    for _index in range(layout.header_count):
        read_varint(&p, layout.end, &length, FAULT_LENGTH)
        name = PyUnicode_DecodeUTF8(<const char*>p, length, "replace")
        p += length
        read_varint(&p, layout.end, &length, FAULT_LENGTH)
        headers.append((name, make_field(p, length)))
        if length > 0:
            p += length
    return tuple(headers)


cdef class RecordReader:
    """An iterator over uncompressed records; `take` gives them in lists.

    The buffer must stay unchanged until the last record is read. `append_time` replaces the
    records' own timestamps, as batches stamped by the broker ask for.
    """

    cdef Py_buffer view
    cdef bint held
    cdef const uint8_t* cursor
    cdef const uint8_t* end
    cdef int64_t index
    cdef int64_t count
    cdef int64_t base_offset
    cdef int64_t base_timestamp
    cdef int64_t append_time
    cdef bint has_append_time

    def __cinit__(
        self,
        buffer,
        Py_ssize_t start,
        Py_ssize_t end,
        int64_t count,
        int64_t base_offset,
        int64_t base_timestamp,
        append_time=None,
    ):
        PyObject_GetBuffer(buffer, &self.view, PyBUF_SIMPLE)
        self.held = True
        if not (0 <= start <= end <= self.view.len):
            raise wrong_range(start, end, self.view.len)
        if count < 0:
            raise corrupt_record(0, FAULT_COUNT)
        if count == 0 and start != end:
            raise corrupt_record(0, FAULT_LEFTOVER)
        self.cursor = <const uint8_t*>self.view.buf + start
        self.end = <const uint8_t*>self.view.buf + end
        self.index = 0
        self.count = count
        self.base_offset = base_offset
        self.base_timestamp = base_timestamp
        self.has_append_time = append_time is not None
        self.append_time = 0 if append_time is None else append_time

    def __dealloc__(self):
        self.release()

    cdef void release(self) noexcept:
        if self.held:
            self.held = False
            PyBuffer_Release(&self.view)

    @property
    def remaining(self):
        """How many records are left."""
        return self.count - self.index

    cdef Record read(self):
        """Decode the next record, which must be there."""
        cdef Layout layout
        cdef Record record
        cdef int fault = read_layout(self.cursor, self.end, &layout)
        if fault:
            raise corrupt_record(self.index, fault)
        self.index += 1
        self.cursor = layout.end
        if self.index == self.count and self.cursor != self.end:
            raise corrupt_record(self.count, FAULT_LEFTOVER)
        record = Record.__new__(Record)
        record.offset = <int64_t>(
            <uint64_t>self.base_offset + <uint64_t><int64_t>layout.offset_delta
        )
        if self.has_append_time:
            record.timestamp = self.append_time
        else:
            record.timestamp = <int64_t>(
                <uint64_t>self.base_timestamp + <uint64_t>layout.timestamp_delta
            )
        record.key = make_field(layout.key, layout.key_length)
        record.value = make_field(layout.value, layout.value_length)
        record.headers = make_headers(&layout) if layout.header_count else ()
        return record

    def take(self, int64_t count, /):
        """Return the next records, at most `count`; an empty list is the end."""
        cdef list records = []
        while count > 0 and self.index < self.count:
            records.append(self.read())
            count -= 1
        if self.index >= self.count:
            self.release()
        return records

    def __iter__(self):
        return self

    def __next__(self):
        if self.index >= self.count:
            self.release()
            raise StopIteration
        return self.read()


def read_records(
    buffer,
    Py_ssize_t start,
    Py_ssize_t end,
    int64_t count,
    int64_t base_offset,
    int64_t base_timestamp,
    append_time=None,
):
    """Read uncompressed records lazily."""
    return RecordReader(buffer, start, end, count, base_offset, base_timestamp, append_time)

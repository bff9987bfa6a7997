"""Arrow's buffers for records of many batches; see `kernels/python/column_store.py`."""

cimport cython
from cpython.buffer cimport PyBuffer_FillInfo
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdlib cimport free

from barnabas.kernels.contract import ConsumerColumns

cdef enum:
    SPARE_MAX = 4  # blocks of each column that are kept while views of them exist


@cython.final
cdef class Block:
    """Memory that grows while it is written, and is reused once no view of it exists."""

    def __dealloc__(self):
        free(self.memory.data)

    def __getbuffer__(self, Py_buffer* view, int flags):
        PyBuffer_FillInfo(view, self, self.memory.data, self.memory.used, 1, flags)
        self.exports += 1

    def __releasebuffer__(self, Py_buffer* view):
        self.exports -= 1


cdef bint is_ascii(const uint8_t* data, int32_t size) noexcept nogil:
    cdef int32_t index
    cdef uint8_t bits = 0
    for index in range(size):
        bits |= data[index]
    return bits < 0x80


@cython.final
cdef class ColumnStore:
    """Columns that grow, batch after batch; `finish` gives them out and begins new ones.

    Their memory is reused once no view of it exists, because fresh memory costs more than all
    that is written to it.
    """

    def __cinit__(self):
        self.spares = [[] for _ in range(BLOCKS)]
        self.begin()

    cdef int begin(self) except -1:
        """Start with no rows, in memory that has no views."""
        cdef int which
        self.blocks = []
        for which in range(BLOCKS):
            block = self.unread(which)
            self.blocks.append(block)
            self.memories[which] = &(<Block>block).memory
        self.topics = []
        self.topic_indexes = {}
        self.count = 0
        self.header_count = 0
        for which in (KEY_OFFSET, VALUE_OFFSET, HEADER_OFFSET, NAME_OFFSET, CONTENT_OFFSET):
            if put_number32(self.memories[which], 0, 0):
                raise MemoryError
        self.keys = Cells(
            self.memories[KEY_VALID], self.memories[KEY_OFFSET], self.memories[KEY_DATA], 0
        )
        self.values = Cells(
            self.memories[VALUE_VALID], self.memories[VALUE_OFFSET], self.memories[VALUE_DATA], 0
        )
        self.names = Cells(
            self.memories[NAME_VALID], self.memories[NAME_OFFSET], self.memories[NAME_DATA], 0
        )
        self.contents = Cells(
            self.memories[CONTENT_VALID],
            self.memories[CONTENT_OFFSET],
            self.memories[CONTENT_DATA],
            0,
        )
        return 0

    cdef Block unread(self, int which):
        cdef list spares = self.spares[which]
        cdef Block block
        for block in spares:
            if block.exports == 0:
                block.memory.used = 0
                return block
        block = Block()
        if reserve(&block.memory, 1):  # an empty column has an address, too
            raise MemoryError
        if len(spares) < SPARE_MAX:
            spares.append(block)
        return block

    cdef int32_t topic_index(self, str topic) except -1:
        index = self.topic_indexes.get(topic)
        if index is None:
            index = self.topic_indexes[topic] = len(self.topics)
            self.topics.append(topic)
        return index

    cdef int put_headers(self, Layout* layout) noexcept nogil:
        """Append the headers of one record; return 0, NO_MEMORY or FULL."""
        cdef const uint8_t* p = layout.headers
        cdef int32_t _index, length = 0
        cdef int fault
        for _index in range(layout.header_count):
            read_varint(&p, layout.end, &length, FAULT_LENGTH)
            if is_ascii(p, length):
                fault = put_cell(&self.names, self.header_count, p, length)
            else:
                fault = self.put_text(p, length)
            if fault:
                return fault
            p += length
            read_varint(&p, layout.end, &length, FAULT_LENGTH)
            fault = put_cell(&self.contents, self.header_count, p, length)
            if fault:
                return fault
            if length > 0:
                p += length
            self.header_count += 1
        return 0

    cdef int put_text(self, const uint8_t* data, int32_t length) noexcept with gil:
        """Append a header's name of which bytes may not be UTF-8: those become U+FFFD."""
        cdef bytes text
        try:
            text = PyUnicode_DecodeUTF8(<const char*>data, length, "replace").encode("utf-8")
        except MemoryError:
            return NO_MEMORY
        return put_cell(
            &self.names, self.header_count, <const uint8_t*><const char*>text, <int32_t>len(text)
        )

    def finish(self):
        """Return the columns, and start over: later rows go elsewhere while these are in use."""
        cdef int64_t rows = self.count, headers = self.header_count
        cdef list views
        self.memories[TOPIC].used = 4 * rows
        self.memories[PARTITION].used = 4 * rows
        self.memories[OFFSET].used = 8 * rows
        self.memories[TIMESTAMP].used = 8 * rows
        self.memories[TIMESTAMP_TYPE].used = rows
        self.memories[KEY_VALID].used = (rows + 7) // 8
        self.memories[KEY_OFFSET].used = 4 * (rows + 1)
        self.memories[VALUE_VALID].used = (rows + 7) // 8
        self.memories[VALUE_OFFSET].used = 4 * (rows + 1)
        self.memories[HEADER_OFFSET].used = 4 * (rows + 1)
        self.memories[NAME_OFFSET].used = 4 * (headers + 1)
        self.memories[CONTENT_VALID].used = (headers + 7) // 8
        self.memories[CONTENT_OFFSET].used = 4 * (headers + 1)
        # Views, so that what is looked at is not written to again.
        views = [memoryview(block) for block in self.blocks]
        columns = ConsumerColumns(
            rows,
            tuple(self.topics),
            views[TOPIC],
            views[PARTITION],
            views[OFFSET],
            views[TIMESTAMP],
            views[TIMESTAMP_TYPE],
            (views[KEY_VALID] if self.keys.nulls else None, views[KEY_OFFSET], views[KEY_DATA]),
            (
                views[VALUE_VALID] if self.values.nulls else None,
                views[VALUE_OFFSET],
                views[VALUE_DATA],
            ),
            views[HEADER_OFFSET],
            (None, views[NAME_OFFSET], views[NAME_DATA]),
            (
                views[CONTENT_VALID] if self.contents.nulls else None,
                views[CONTENT_OFFSET],
                views[CONTENT_DATA],
            ),
        )
        self.begin()
        return columns

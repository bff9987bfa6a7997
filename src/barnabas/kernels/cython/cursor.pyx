"""The records of a fetched partition; see the twin in `kernels/python/cursor.py`."""

from cpython.buffer cimport (
    PyBUF_SIMPLE,
    PyBuffer_Release,
    PyObject_CheckBuffer,
    PyObject_GetBuffer,
)
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t

from barnabas.kernels.contract import (
    corrupt_record,
    cut_marker,
    untraced,
    wrong_counts,
    wrong_crc,
    wrong_magic,
    wrong_size,
)
from barnabas.kernels.cython.batch_header cimport (
    APPEND_TIME_BIT,
    ATTRIBUTES_AT,
    BASE_TIMESTAMP_AT,
    BATCH_MAGIC,
    CODEC_MASK,
    CONTROL_BIT,
    COUNT_AT,
    CRC_AT,
    HEADER_SIZE,
    LAST_OFFSET_DELTA_AT,
    LEADER_EPOCH_AT,
    LENGTH_AT,
    MAGIC_AT,
    MAX_TIMESTAMP_AT,
    PREFIX_SIZE,
    PRODUCER_ID_AT,
    TRANSACTIONAL_BIT,
)
from barnabas.kernels.cython.column_store cimport (
    FULL,
    NO_MEMORY,
    OFFSET,
    PARTITION,
    TIMESTAMP,
    TIMESTAMP_TYPE,
    TOPIC,
    HEADER_OFFSET,
    ColumnStore,
    put_cell,
    put_number8,
    put_number32,
    put_number64,
    take_back,
)
from barnabas.kernels.cython.consumer_record cimport ConsumerRecord
from barnabas.kernels.cython.crc32c cimport checksum
from barnabas.kernels.cython.layout cimport (
    FAULT_LEFTOVER,
    FAULT_LENGTH,
    RELEASE_FROM,
    Layout,
    load16,
    load32,
    load64,
    read_layout,
    read_varint,
)

cdef extern from "Python.h":
    void PyObject_GC_UnTrack(void*)


cdef inline object make_field(const uint8_t* data, int32_t length):
    return None if length < 0 else PyBytes_FromStringAndSize(<const char*>data, length)


cdef tuple make_headers(Layout* layout, int32_t* size):
    """Return a record's headers and their bytes; a name that is not UTF-8 gets U+FFFD."""
    cdef list headers = []
    cdef const uint8_t* p = layout.headers
    cdef int32_t _index, length = 0
    size[0] = 0
    for _index in range(layout.header_count):
        read_varint(&p, layout.end, &length, FAULT_LENGTH)
        name = PyUnicode_DecodeUTF8(<const char*>p, length, "replace")
        size[0] += length
        p += length
        read_varint(&p, layout.end, &length, FAULT_LENGTH)
        headers.append((name, make_field(p, length)))
        if length > 0:
            size[0] += length
            p += length
    return tuple(headers)


cdef class RecordCursor:
    """The unread rest of a partition's part of a Fetch response; `take` returns its records in
    lists."""

    cdef readonly str topic
    cdef readonly int32_t partition
    cdef readonly int64_t position
    cdef readonly int32_t leader_epoch
    cdef readonly bint progressed
    cdef object source
    cdef Py_buffer view
    cdef bint held
    cdef const uint8_t* next_batch
    cdef const uint8_t* last_byte
    cdef bint check_crcs
    cdef object unpack
    cdef object key_deserializer
    cdef object value_deserializer
    cdef bint whole_key
    cdef bint whole_value
    cdef list aborted  # (first offset, producer id), the last one first
    cdef set aborting
    cdef dict unpacked  # what `prepare` has decompressed, by the position of its batch

    # The batch that is open: all of it, or the chunk up to `stop` of a large one.
    cdef object chunks
    cdef object failure
    cdef int64_t stop
    cdef Py_buffer batch_view
    cdef bint batch_held
    cdef const uint8_t* cursor
    cdef const uint8_t* end
    cdef int64_t index
    cdef int64_t count
    cdef int64_t base_offset
    cdef int64_t last_offset
    cdef int64_t base_timestamp
    cdef int64_t append_time
    cdef int32_t batch_epoch
    cdef int16_t attributes

    def __cinit__(
        self,
        buffer,
        str topic,
        int32_t partition,
        int64_t position,
        *,
        unpack,
        bint check_crcs=True,
        aborted=None,
        key_deserializer=None,
        value_deserializer=None,
    ):
        PyObject_GetBuffer(buffer, &self.view, PyBUF_SIMPLE)
        self.held = True
        self.source = buffer
        self.topic = topic
        self.partition = partition
        self.position = position
        self.leader_epoch = -1
        self.progressed = False
        self.next_batch = <const uint8_t*>self.view.buf
        self.last_byte = self.next_batch + self.view.len
        self.check_crcs = check_crcs
        self.unpack = unpack
        # An object whose `deserialize` wants topic and headers too, or a plain function.
        self.whole_key = hasattr(key_deserializer, "deserialize")
        self.key_deserializer = (
            key_deserializer.deserialize if self.whole_key else key_deserializer
        )
        self.whole_value = hasattr(value_deserializer, "deserialize")
        self.value_deserializer = (
            value_deserializer.deserialize if self.whole_value else value_deserializer
        )
        self.aborted = sorted(aborted or (), reverse=True)
        self.aborting = set()
        self.unpacked = {}

    def __dealloc__(self):
        self.close_batch()
        self.release()

    cdef void release(self) noexcept:
        if self.held:
            self.held = False
            PyBuffer_Release(&self.view)

    cdef void close_batch(self) noexcept:
        self.index = self.count = self.stop = 0
        self.chunks = None
        self.drop_records()

    cdef void drop_records(self) noexcept:
        if self.batch_held:
            self.batch_held = False
            PyBuffer_Release(&self.batch_view)

    @property
    def exhausted(self):
        """Whether nothing is left."""
        return self.index >= self.count and not self.held

    @property
    def unpacking(self):
        """Whether it is inside a large batch, of which one chunk is in memory at a time."""
        return self.chunks is not None

    @property
    def bytes_left(self):
        """How many fetched bytes are not read yet."""
        return self.last_byte - self.next_batch if self.held else 0

    def survey(self):
        """Return where the next fetch begins, after all whole batches: offset, and epoch before."""
        cdef const uint8_t* p = self.next_batch
        cdef int64_t size, last_offset, position = self.position
        cdef int32_t epoch = -1
        while self.held and self.last_byte - p >= HEADER_SIZE and p[MAGIC_AT] == BATCH_MAGIC:
            size = <int64_t><int32_t>load32(p + LENGTH_AT) + PREFIX_SIZE
            if size < HEADER_SIZE or size > self.last_byte - p:
                break
            last_offset = <int64_t>load64(p) + <int32_t>load32(p + LAST_OFFSET_DELTA_AT)
            position = max(position, last_offset + 1)
            epoch = <int32_t>load32(p + LEADER_EPOCH_AT)
            p += size
        return position, epoch

    def prepare(self, int64_t size_max):
        """Decompress batches in advance, up to `size_max` bytes."""
        cdef const uint8_t* p = self.next_batch
        cdef int64_t size, total = 0
        cdef int32_t count
        cdef int16_t attributes
        cdef uint32_t computed
        while self.held and total < size_max and self.last_byte - p >= HEADER_SIZE:
            size = <int64_t><int32_t>load32(p + LENGTH_AT) + PREFIX_SIZE
            if p[MAGIC_AT] != BATCH_MAGIC or size < HEADER_SIZE or size > self.last_byte - p:
                return
            attributes = <int16_t>load16(p + ATTRIBUTES_AT)
            if attributes & CODEC_MASK and not attributes & CONTROL_BIT:
                if self.check_crcs:
                    computed = checksum(p + ATTRIBUTES_AT, size - ATTRIBUTES_AT, 0)
                    if computed != load32(p + CRC_AT):
                        return  # reading the batch raises it
                packed = self.slice(p + HEADER_SIZE, p + size)
                count = <int32_t>load32(p + COUNT_AT)
                records = self.unpack(attributes & CODEC_MASK, packed, count)
                self.unpacked[p - <const uint8_t*>self.view.buf] = records
                if not PyObject_CheckBuffer(records):
                    return  # it is large, and unpacked as it is read
                total += len(records)
            p += size

    cdef object slice(self, const uint8_t* start, const uint8_t* stop):
        cdef const uint8_t* zero = <const uint8_t*>self.view.buf
        return memoryview(self.source)[start - zero:stop - zero]

    cdef bint open_batch(self) except -1:
        """Open the next batch with records for the user; return False if there is none."""
        cdef const uint8_t* p
        cdef int64_t size, last_offset
        cdef int32_t last_offset_delta, count
        cdef int16_t attributes
        self.close_batch()
        while self.held:
            p = self.next_batch
            if self.last_byte - p < HEADER_SIZE:
                self.release()
                break
            if p[MAGIC_AT] != BATCH_MAGIC:
                if p[MAGIC_AT] < BATCH_MAGIC and self.progressed:
                    # An older format: the next fetch begins with it, and it is converted on
                    # arrival.
                    self.release()
                    break
                raise wrong_magic(<int><signed char>p[MAGIC_AT])
            size = <int64_t><int32_t>load32(p + LENGTH_AT) + PREFIX_SIZE
            if size < HEADER_SIZE:
                raise wrong_size(size)
            if size > self.last_byte - p:
                self.release()
                break
            last_offset_delta = <int32_t>load32(p + LAST_OFFSET_DELTA_AT)
            last_offset = <int64_t>load64(p) + last_offset_delta
            if last_offset < self.position:
                self.next_batch = p + size
                self.progressed = True
                continue
            self.check(p, size)
            attributes = <int16_t>load16(p + ATTRIBUTES_AT)
            count = <int32_t>load32(p + COUNT_AT)
            if count < 0 or count > <int64_t>last_offset_delta + 1:
                raise wrong_counts(count, last_offset_delta)
            if self.aborted and attributes & (TRANSACTIONAL_BIT | CONTROL_BIT):
                self.follow_transactions(last_offset)
            if attributes & CONTROL_BIT:
                self.read_marker(p, size, count)
            elif not (attributes & TRANSACTIONAL_BIT and self.aborting
                      and <int64_t>load64(p + PRODUCER_ID_AT) in self.aborting) and count:
                self.enter(p, size, attributes, count, last_offset)
                return True
            self.next_batch = p + size
            self.progressed = True
            self.position = last_offset + 1
            self.leader_epoch = <int32_t>load32(p + LEADER_EPOCH_AT)
        return False

    cdef int check(self, const uint8_t* p, int64_t size) except -1:
        cdef uint32_t computed
        if not self.check_crcs:
            return 0
        if size >= RELEASE_FROM:
            with nogil:
                computed = checksum(p + ATTRIBUTES_AT, size - ATTRIBUTES_AT, 0)
        else:
            computed = checksum(p + ATTRIBUTES_AT, size - ATTRIBUTES_AT, 0)
        if computed != load32(p + CRC_AT):
            raise wrong_crc(load32(p + CRC_AT), computed)
        return 0

    cdef int follow_transactions(self, int64_t last_offset) except -1:
        """Notice the aborted transactions that begin up to here."""
        while self.aborted and self.aborted[len(self.aborted) - 1][0] <= last_offset:
            self.aborting.add(self.aborted.pop()[1])
        return 0

    cdef int read_marker(self, const uint8_t* p, int64_t size, int32_t count) except -1:
        """Notice the end of an aborted transaction."""
        cdef Layout layout
        cdef int fault
        if count == 0:
            return 0  # compaction has emptied it: nothing of the transaction is left
        fault = read_layout(p + HEADER_SIZE, p + size, &layout)
        if fault:
            raise corrupt_record(0, fault)
        if layout.key_length < 4:
            raise cut_marker()
        if load16(layout.key + 2) == 0:
            self.aborting.discard(<int64_t>load64(p + PRODUCER_ID_AT))
        return 0

    cdef int enter(
        self, const uint8_t* p, int64_t size, int16_t attributes, int32_t count, int64_t last_offset
    ) except -1:
        cdef Py_ssize_t begin = p - <const uint8_t*>self.view.buf
        if attributes & CODEC_MASK:
            records = self.unpacked.pop(begin, None)
            if records is None:
                records = self.unpack(
                    attributes & CODEC_MASK, self.slice(p + HEADER_SIZE, p + size), count
                )
            if PyObject_CheckBuffer(records):
                self.stop = count
                self.hold(records)
            else:
                self.stop = 0
                self.chunks = records
        else:
            self.stop = count
            self.cursor = p + HEADER_SIZE
            self.end = p + size
        self.next_batch = p + size
        self.progressed = True
        self.index = 0
        self.count = count
        self.base_offset = <int64_t>load64(p)
        self.last_offset = last_offset
        self.batch_epoch = <int32_t>load32(p + LEADER_EPOCH_AT)
        self.base_timestamp = <int64_t>load64(p + BASE_TIMESTAMP_AT)
        self.append_time = <int64_t>load64(p + MAX_TIMESTAMP_AT)
        self.attributes = attributes
        return 0

    cdef int hold(self, records) except -1:
        self.drop_records()
        PyObject_GetBuffer(records, &self.batch_view, PyBUF_SIMPLE)
        self.batch_held = True
        self.cursor = <const uint8_t*>self.batch_view.buf
        self.end = self.cursor + self.batch_view.len
        return 0

    cdef int go_on(self) except -1:
        """Read the next chunk of a large batch; a failure is kept for the next call."""
        if self.failure is not None:
            raise untraced(self.failure)
        try:
            records, count = next(self.chunks, (b"", 1))  # one that is not there is cut
        except Exception as failure:
            self.failure = untraced(failure)
            raise
        self.hold(records)
        self.stop += count
        return 0

    cdef void leave(self) noexcept:
        """Be done with the batch; its last offsets may no longer have a record."""
        self.position = self.last_offset + 1
        self.leader_epoch = self.batch_epoch
        self.close_batch()
        if self.last_byte - self.next_batch < HEADER_SIZE:
            self.release()

    cdef inline int read(self, Layout* layout) noexcept nogil:
        """Read the next record; the last one counts only if nothing is left after it."""
        cdef int fault = read_layout(self.cursor, self.end, layout)
        if not fault and self.index + 1 == self.stop and layout.end != self.end:
            return FAULT_LEFTOVER
        return fault

    cdef object damage(self, int fault):
        """Return what to raise where a record cannot be read."""
        return corrupt_record(self.stop if fault == FAULT_LEFTOVER else self.index, fault)

    cdef inline int64_t offset_at(self, Layout* layout) noexcept nogil:
        return <int64_t>(<uint64_t>self.base_offset + <uint64_t><int64_t>layout.offset_delta)

    cdef inline int64_t timestamp_at(self, Layout* layout) noexcept nogil:
        if self.attributes & APPEND_TIME_BIT:
            return self.append_time
        return <int64_t>(<uint64_t>self.base_timestamp + <uint64_t>layout.timestamp_delta)

    cdef ConsumerRecord make(self, Layout* layout):
        cdef ConsumerRecord record = ConsumerRecord.__new__(ConsumerRecord)
        cdef int32_t size = -1
        record.topic = self.topic
        record.partition = self.partition
        record.leader_epoch = self.batch_epoch
        record.offset = self.offset_at(layout)
        record.timestamp = self.timestamp_at(layout)
        record.timestamp_type = (self.attributes & APPEND_TIME_BIT) >> 3
        record.serialized_key_size = layout.key_length
        record.serialized_value_size = layout.value_length
        record.pairs = make_headers(layout, &size) if layout.header_count else ()
        record.serialized_header_size = size
        record.key = make_field(layout.key, layout.key_length)
        record.value = make_field(layout.value, layout.value_length)
        if self.key_deserializer is None and self.value_deserializer is None:
            # Bytes and texts cannot form a cycle, so the collector need not know of this one:
            # keeping many records would otherwise cost half of the reading speed.
            PyObject_GC_UnTrack(<void*>record)
        else:
            self.deserialize(record)
        return record

    cdef int deserialize(self, ConsumerRecord record) except -1:
        try:
            if self.key_deserializer is not None:
                record.key = (
                    self.key_deserializer(self.topic, record.headers, record.key)
                    if self.whole_key
                    else self.key_deserializer(record.key)
                )
            if self.value_deserializer is not None:
                record.value = (
                    self.value_deserializer(self.topic, record.headers, record.value)
                    if self.whole_value
                    else self.value_deserializer(record.value)
                )
        except Exception as failure:
            failure.add_note(f"in {self.topic}-{self.partition} at offset {record.offset}")
            raise
        return 0

    def take(self, int64_t count, /):
        """Return the next records, at most `count`; an error is raised when no record is left
        before it."""
        cdef list records = []
        cdef Layout layout
        cdef ConsumerRecord record
        cdef int fault
        try:
            while count > 0:
                if self.index >= self.count and not self.open_batch():
                    break
                if self.index >= self.stop:
                    if records:
                        break  # the next chunk may be large: it comes with the next call
                    self.go_on()
                fault = self.read(&layout)
                if fault:
                    raise self.damage(fault)
                if self.offset_at(&layout) >= self.position:
                    record = self.make(&layout)
                    records.append(record)
                    count -= 1
                    self.position = record.offset + 1
                    self.leader_epoch = self.batch_epoch
                self.index += 1
                self.cursor = layout.end
                if self.index >= self.count:
                    self.leave()
        except Exception:
            # The reader stands before what failed, so the next call comes to it again.
            if not records:
                raise
        return records

    def fill(self, ColumnStore store, int64_t count, /):
        """Append the next records, at most `count`, to the store; return how many."""
        cdef int64_t taken = 0, before
        cdef int32_t topic
        cdef int fault = 0
        cdef Py_ssize_t topics = len(store.topics)
        try:
            while taken < count:
                if self.index >= self.count and not self.open_batch():
                    break
                if self.index >= self.stop:
                    if taken:
                        break
                    self.go_on()
                before = store.count
                topic = store.topic_index(self.topic)
                if self.end - self.cursor >= RELEASE_FROM:
                    with nogil:
                        fault = self.fill_batch(store, topic, count - taken)
                else:
                    fault = self.fill_batch(store, topic, count - taken)
                taken += store.count - before
                if fault == NO_MEMORY:
                    raise MemoryError
                if fault == FULL:
                    break
                if fault:
                    raise self.damage(fault)
                if self.index >= self.count:
                    self.leave()
        except Exception:
            if not taken:
                raise
        finally:
            if not taken and len(store.topics) > topics:
                del store.topic_indexes[store.topics.pop()]  # no row speaks of it
        return taken

    cdef int fill_batch(self, ColumnStore store, int32_t topic, int64_t count) noexcept nogil:
        cdef Layout layout
        cdef int64_t offset
        cdef int fault
        while count > 0 and self.index < self.stop:
            fault = self.read(&layout)
            if fault:
                return fault
            offset = self.offset_at(&layout)
            if offset >= self.position:
                fault = self.put_row(store, topic, offset, &layout)
                if fault:
                    return fault
                store.count += 1
                count -= 1
                self.position = offset + 1
                self.leader_epoch = self.batch_epoch
            self.index += 1
            self.cursor = layout.end
        return 0

    cdef int put_row(
        self, ColumnStore store, int32_t topic, int64_t offset, Layout* layout
    ) noexcept nogil:
        """Write one row; return 0, NO_MEMORY or FULL, and then the row is as if never begun."""
        cdef int64_t row = store.count, headers = store.header_count
        cdef int32_t used = <int32_t>store.names.data.used
        cdef int32_t contents_used = <int32_t>store.contents.data.used
        cdef int64_t nulls = store.contents.nulls
        cdef int fault
        if (
            put_number32(store.memories[TOPIC], row, topic)
            or put_number32(store.memories[PARTITION], row, self.partition)
            or put_number64(store.memories[OFFSET], row, offset)
            or put_number64(store.memories[TIMESTAMP], row, self.timestamp_at(layout))
            or put_number8(
                store.memories[TIMESTAMP_TYPE],
                row,
                <uint8_t>((self.attributes & APPEND_TIME_BIT) >> 3),
            )
        ):
            return NO_MEMORY
        fault = put_cell(&store.keys, row, layout.key, layout.key_length)
        if fault:
            return fault
        fault = put_cell(&store.values, row, layout.value, layout.value_length)
        if fault:
            take_back(&store.keys, layout.key_length)
            return fault
        if layout.header_count:
            fault = store.put_headers(layout)
        if not fault:
            fault = put_number32(
                store.memories[HEADER_OFFSET], row + 1, <int32_t>store.header_count
            )
        if fault:
            take_back(&store.keys, layout.key_length)
            take_back(&store.values, layout.value_length)
            store.header_count = headers
            store.names.data.used = used
            store.contents.data.used = contents_used
            store.contents.nulls = nulls
        return fault

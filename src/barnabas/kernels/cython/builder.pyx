"""A batch that grows record by record: each is encoded immediately, and no object is kept for it.
Space for the header is reserved from the start and written by `finish`, which closes the builder
and returns its buffer. An append that fails does not change the batch.
"""

from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_Resize
from cpython.tuple cimport PyTuple_CheckExact, PyTuple_GET_SIZE
from libc.stdint cimport INT32_MAX, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

from barnabas.kernels.contract import (
    batch_finished,
    column_range,
    nothing_appended,
    record_too_large,
    wrong_offset_delta,
)
from barnabas.kernels.cython.batch_header cimport (
    ATTRIBUTES_AT,
    BASE_SEQUENCE_AT,
    BASE_TIMESTAMP_AT,
    BATCH_MAGIC,
    CODEC_MASK,
    COUNT_AT,
    CRC_AT,
    HEADER_SIZE,
    LAST_OFFSET_DELTA_AT,
    LEADER_EPOCH_AT,
    LENGTH_AT,
    MAGIC_AT,
    MAX_TIMESTAMP_AT,
    PREFIX_SIZE,
    PRODUCER_EPOCH_AT,
    PRODUCER_ID_AT,
)
from barnabas.kernels.cython.crc32c cimport checksum
from barnabas.kernels.cython.fields cimport (
    Cells,
    Field,
    body_size,
    borrow,
    borrow_cells,
    field_size,
    give_back,
    give_back_cells,
    put_field,
    put_record,
    read_cell,
)
from barnabas.kernels.cython.layout cimport store16, store32, store64, unsigned_size, zigzag64

cdef enum:
    FIRST_CAPACITY = 1024


cdef bytearray encode_headers(tuple headers):
    """Return the headers as they stand in the record, without their count."""
    cdef bytearray out = bytearray()
    cdef Field field
    cdef Py_ssize_t used
    cdef uint8_t* p
    for name, content in headers:
        for part in (name.encode("utf-8"), content):
            borrow(part, &field)
            try:
                if field.size > INT32_MAX:
                    raise record_too_large(field.size)
                used = len(out)
                PyByteArray_Resize(out, used + field_size(field.size))
                p = <uint8_t*>PyByteArray_AS_STRING(out) + used
                put_field(p, field.data, field.size)
            finally:
                give_back(&field)
    return out


cdef class BatchBuilder:
    """Encode records into one batch of at most `limit` bytes before compression (0: no limit)."""

    cdef bytearray buffer  # longer than what is used; None once finished
    cdef Py_ssize_t used
    cdef Py_ssize_t capacity
    cdef Py_ssize_t limit
    cdef int64_t last_offset_delta
    cdef readonly int64_t count
    cdef readonly int64_t base_timestamp
    cdef readonly int64_t max_timestamp

    def __init__(self, Py_ssize_t limit=0):
        self.limit = min(limit, INT32_MAX) if limit > 0 else INT32_MAX
        self.capacity = FIRST_CAPACITY
        self.buffer = bytearray(FIRST_CAPACITY)
        self.used = HEADER_SIZE
        self.last_offset_delta = -1
        self.count = 0
        self.base_timestamp = -1
        self.max_timestamp = -1

    @property
    def size(self):
        """Bytes of the batch so far, before compression; 0 when it was finished."""
        return self.used

    cdef int64_t put(
        self,
        int64_t timestamp,
        Field* key,
        Field* value,
        bytearray headers,
        int64_t header_count,
        int64_t offset_delta,
    ) except -2:
        """Encode one record; return its offset delta, or -1 if it no longer fits."""
        if self.buffer is None:
            raise batch_finished()
        if offset_delta == -1:
            offset_delta = self.last_offset_delta + 1
        if not (self.last_offset_delta < offset_delta <= INT32_MAX):
            raise wrong_offset_delta(offset_delta, self.last_offset_delta)
        cdef int64_t base_timestamp = self.base_timestamp if self.count else timestamp
        cdef uint64_t delta = zigzag64(
            <int64_t>(<uint64_t>timestamp - <uint64_t>base_timestamp)
        )
        cdef Py_ssize_t headers_size = 0 if headers is None else len(headers)
        cdef int64_t body = body_size(
            delta, offset_delta, key, value, header_count, headers_size
        )
        cdef int64_t size = self.used + unsigned_size(<uint64_t>body << 1) + body
        if size > (self.limit if self.count else INT32_MAX):
            if self.count == 0:
                raise record_too_large(size)
            return -1
        if size > self.capacity:
            self.grow(size)
        cdef uint8_t* p = <uint8_t*>PyByteArray_AS_STRING(self.buffer) + self.used
        put_record(
            p, body, delta, offset_delta, key, value, header_count,
            NULL if headers is None else PyByteArray_AS_STRING(headers), headers_size,
        )
        self.used = size
        self.base_timestamp = base_timestamp
        if timestamp > self.max_timestamp:
            self.max_timestamp = timestamp
        self.last_offset_delta = offset_delta
        self.count += 1
        return offset_delta

    cdef int grow(self, Py_ssize_t size) except -1:
        """Make room for `size` bytes in all, and for as many again."""
        cdef Py_ssize_t capacity = max(2 * self.capacity, size)
        PyByteArray_Resize(self.buffer, capacity)
        self.capacity = capacity
        return 0

    cdef int64_t put_objects(
        self, int64_t timestamp, key, value, headers, int64_t offset_delta
    ) except -2:
        cdef Field key_field, value_field
        cdef tuple pairs
        cdef bytearray encoded = None
        cdef int64_t header_count = 0
        value_field.held = False
        if not (PyTuple_CheckExact(headers) and PyTuple_GET_SIZE(headers) == 0):
            pairs = tuple(headers)
            header_count = len(pairs)
            encoded = encode_headers(pairs)
        borrow(key, &key_field)
        try:
            borrow(value, &value_field)
            return self.put(
                timestamp, &key_field, &value_field, encoded, header_count, offset_delta
            )
        finally:
            give_back(&key_field)
            give_back(&value_field)

    def append(self, int64_t timestamp, key, value, headers=(), int64_t offset_delta=-1):
        """Add a record and return its offset delta, or -1 if it no longer fits.

        The first record is always accepted, however large. `offset_delta` leaves a gap, as
        compaction does.
        """
        return self.put_objects(timestamp, key, value, headers, offset_delta)

    def append_many(self, rows, Py_ssize_t start=0):
        """Add rows (timestamp, key, value[, headers]) from `start` on; return how many fit."""
        cdef Py_ssize_t index, size
        cdef object headers
        for index in range(start, len(rows)):
            row = rows[index]
            size = len(row)
            if size < 3:
                raise TypeError("a row is (timestamp, key, value) or (…, headers)")
            headers = row[3] if size > 3 else ()
            if self.put_objects(row[0], row[1], row[2], headers, -1) < 0:
                return index - start
        return max(len(rows) - start, 0)

    def append_columns(
        self, timestamps, keys, values, Py_ssize_t start, Py_ssize_t stop, int64_t timestamp=-1
    ):
        """Add the rows start..stop of Arrow's buffers; return how many were taken.

        `timestamps` holds int64 values, or is None and every record has `timestamp`. A column is
        validity bits (None: all valid), int32 offsets and data; a missing column is all null.
        """
        cdef Cells key_cells, value_cells
        cdef Field times, key, value
        cdef Py_ssize_t index
        key_cells.present = value_cells.present = False
        times.held = False
        if start < 0:
            raise column_range()
        try:
            borrow(timestamps, &times)
            borrow_cells(keys, &key_cells)
            borrow_cells(values, &value_cells)
            if times.size >= 0 and stop > times.size // 8:
                raise column_range()
            for index in range(start, stop):
                if not (
                    read_cell(&key_cells, index, &key)
                    and read_cell(&value_cells, index, &value)
                ):
                    raise column_range()
                if times.size >= 0:
                    memcpy(&timestamp, times.data + 8 * index, 8)
                if self.put(timestamp, &key, &value, None, 0, -1) < 0:
                    return index - start
            return max(stop - start, 0)
        finally:
            give_back(&times)
            give_back_cells(&key_cells)
            give_back_cells(&value_cells)

    def finish(
        self,
        *,
        int codec=0,
        compress=None,
        int64_t base_offset=0,
        int32_t leader_epoch=-1,
        int64_t producer_id=-1,
        int16_t producer_epoch=-1,
        int32_t base_sequence=-1,
        int attributes=0,
        int64_t last_offset_delta=-1,
    ):
        """Return the finished batch; the builder is empty and closed afterwards.

        With `codec` the records are compressed by `compress`. A
        `last_offset_delta` above the last record's is for compaction, which keeps a batch's range
        of offsets.
        """
        cdef bytearray batch
        cdef object answer  # lives as long as its bytes are borrowed
        cdef Field packed
        cdef uint8_t* p
        cdef int64_t size
        if self.buffer is None:
            raise batch_finished()
        if last_offset_delta < self.last_offset_delta:
            last_offset_delta = self.last_offset_delta
        if last_offset_delta < 0:
            raise nothing_appended()
        if codec and compress is not None:
            answer = compress(memoryview(self.buffer)[HEADER_SIZE:self.used])
            borrow(answer, &packed)
            try:
                if packed.size < 0:
                    raise TypeError("compress must return bytes, not None")
                size = HEADER_SIZE + packed.size
                if size > INT32_MAX:
                    raise record_too_large(size)
                batch = bytearray()
                PyByteArray_Resize(batch, size)
                memcpy(PyByteArray_AS_STRING(batch) + HEADER_SIZE, packed.data, packed.size)
            finally:
                give_back(&packed)
        else:
            batch = self.buffer
            size = self.used
            PyByteArray_Resize(batch, size)
        self.buffer = None
        self.used = 0
        p = <uint8_t*>PyByteArray_AS_STRING(batch)
        store64(p, <uint64_t>base_offset)
        store32(p + LENGTH_AT, <uint32_t>(size - PREFIX_SIZE))
        store32(p + LEADER_EPOCH_AT, <uint32_t>leader_epoch)
        p[MAGIC_AT] = BATCH_MAGIC
        store16(p + ATTRIBUTES_AT, <uint16_t>((attributes & ~CODEC_MASK) | codec))
        store32(p + LAST_OFFSET_DELTA_AT, <uint32_t>last_offset_delta)
        store64(p + BASE_TIMESTAMP_AT, <uint64_t>self.base_timestamp)
        store64(p + MAX_TIMESTAMP_AT, <uint64_t>self.max_timestamp)
        store64(p + PRODUCER_ID_AT, <uint64_t>producer_id)
        store16(p + PRODUCER_EPOCH_AT, <uint16_t>producer_epoch)
        store32(p + BASE_SEQUENCE_AT, <uint32_t>base_sequence)
        store32(p + COUNT_AT, <uint32_t>self.count)
        store32(p + CRC_AT, checksum(p + ATTRIBUTES_AT, size - ATTRIBUTES_AT, 0))
        return batch

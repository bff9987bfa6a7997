"""Record batches of magic 2 as a broker handles them: scan, check, validate, patch.

The layout is drawn in `kernels/batch_header.py`. `inspect_batch` runs for every produced batch, so
header, CRC and record walk are one call on one acquired buffer.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport (
    INT64_MAX,
    INT64_MIN,
    int8_t,
    int16_t,
    int32_t,
    int64_t,
    uint8_t,
    uint16_t,
    uint32_t,
    uint64_t,
)

from dataclasses import fields
from types import MemberDescriptorType

from barnabas.kernels import batch_header
from barnabas.kernels.contract import (
    Fault,
    cut_batch,
    cut_header,
    wrong_counts,
    wrong_crc,
    wrong_magic,
    wrong_range,
    wrong_size,
)
from barnabas.kernels.cython.batch_header cimport (
    APPEND_TIME_BIT,
    ATTRIBUTES_AT,
    BASE_OFFSET_AT,
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
    TRANSACTIONAL_BIT,
)
from barnabas.kernels.cython.crc32c cimport checksum
from barnabas.kernels.cython.layout cimport (
    FAULT_COUNT,
    FAULT_CUT,
    FAULT_KEY,
    FAULT_LEFTOVER,
    FAULT_OFFSET,
    FAULT_TIMESTAMP,
    RELEASE_FROM,
    Layout,
    load16,
    load32,
    load64,
    read_layout,
    read_varint,
    store16,
    store32,
    store64,
)


cdef extern from "structmember.h":
    ctypedef struct PyMemberDef:
        Py_ssize_t offset

cdef extern from "Python.h":
    ctypedef struct PyMemberDescrObject:
        PyMemberDef* d_member

    object PyType_GenericAlloc(PyTypeObject* type, Py_ssize_t size)

cdef type BatchHeader = batch_header.BatchHeader
cdef Py_ssize_t[13] SLOTS  # where an instance has its fields, in the order of their bytes


cdef int find_slots() except -1:
    names = [field.name for field in fields(BatchHeader)]
    assert len(names) == 13
    for index, name in enumerate(names):
        descriptor = BatchHeader.__dict__[name]
        assert type(descriptor) is MemberDescriptorType, name
        SLOTS[<int>index] = (<PyMemberDescrObject*><PyObject*>descriptor).d_member.offset
    return 0


find_slots()

cdef list FAULTS = [None, *Fault]  # by number: a batch may have as many faults as records


cdef struct Walk:
    # A walk over records, which stops at each fault and can go on behind it.
    const uint8_t* cursor
    const uint8_t* end
    int64_t first
    int64_t index
    int64_t count
    int64_t base_timestamp
    int64_t timestamp_min
    int64_t timestamp_max
    bint require_key
    int64_t max_timestamp
    int32_t offset_of_max


cdef int advance(Walk* walk, bint* readable) noexcept nogil:
    """Go on to the next fault and return it, or 0 at the end."""
    cdef Layout record
    cdef int fault
    cdef int64_t timestamp
    while walk.index - walk.first < walk.count:
        fault = read_layout(walk.cursor, walk.end, &record)
        if fault:
            readable[0] = False
            return fault
        walk.cursor = record.end
        timestamp = <int64_t>(<uint64_t>walk.base_timestamp + <uint64_t>record.timestamp_delta)
        if timestamp > walk.max_timestamp:
            walk.max_timestamp = timestamp
            walk.offset_of_max = record.offset_delta
        if walk.require_key and record.key_length < 0:
            return FAULT_KEY
        if timestamp != -1 and not (walk.timestamp_min <= timestamp <= walk.timestamp_max):
            return FAULT_TIMESTAMP
        if record.offset_delta != walk.index:
            return FAULT_OFFSET
        walk.index += 1
    if walk.cursor != walk.end:
        readable[0] = False
        return FAULT_LEFTOVER
    return 0


cdef tuple walk_records(Walk* walk):
    """Walk to the end, which finds the greatest timestamp, and return the faults."""
    cdef list faults = None
    cdef int fault
    cdef bint readable = True
    walk.max_timestamp = -1
    walk.offset_of_max = -1
    walk.index = walk.first
    if walk.count < 0:
        return ((walk.first, FAULTS[FAULT_COUNT]),)
    while True:
        if walk.end - walk.cursor >= RELEASE_FROM:
            with nogil:
                fault = advance(walk, &readable)
        else:
            fault = advance(walk, &readable)
        if not fault:
            break
        if faults is None:
            faults = []
        faults.append((walk.index, FAULTS[fault]))
        if not readable:
            break
        walk.index += 1
    return () if faults is None else tuple(faults)


cdef int require_range(Py_ssize_t position, Py_ssize_t* end, Py_ssize_t size) except -1:
    """Put the buffer's end for -1; a range outside the buffer is a bug of the caller."""
    if end[0] == -1:
        end[0] = size
    if not (0 <= position <= end[0] <= size):
        raise wrong_range(position, end[0], size)
    return 0


cdef int64_t batch_size(const uint8_t* p, Py_ssize_t available) except -1:
    """Return the size of the batch whose header is at p."""
    if available < HEADER_SIZE:
        raise cut_header(available)
    cdef int64_t size = <int64_t><int32_t>load32(p + LENGTH_AT) + PREFIX_SIZE
    if p[MAGIC_AT] != BATCH_MAGIC:
        raise wrong_magic(<int8_t>p[MAGIC_AT])
    if size < HEADER_SIZE:
        raise wrong_size(size)
    return size


cdef int64_t whole_size(const uint8_t* p, Py_ssize_t available) except -1:
    """Return the size of the batch at p, all of which must be there."""
    cdef int64_t size = batch_size(p, available)
    if size > available:
        raise cut_batch(size, available)
    return size


cdef inline void put(PyObject* header, int field, object value) noexcept:
    Py_INCREF(value)
    (<PyObject**>(<char*>header + SLOTS[field]))[0] = <PyObject*>value


cdef object header_of(const uint8_t* p, int64_t size):
    """Return the BatchHeader at p; calling the class would take five times as long."""
    cdef object made = PyType_GenericAlloc(<PyTypeObject*>BatchHeader, 0)
    cdef PyObject* header = <PyObject*>made
    put(header, 0, <int64_t>load64(p + BASE_OFFSET_AT))
    put(header, 1, size)
    put(header, 2, <int32_t>load32(p + LEADER_EPOCH_AT))
    put(header, 3, BATCH_MAGIC)
    put(header, 4, load32(p + CRC_AT))
    put(header, 5, <int16_t>load16(p + ATTRIBUTES_AT))
    put(header, 6, <int32_t>load32(p + LAST_OFFSET_DELTA_AT))
    put(header, 7, <int64_t>load64(p + BASE_TIMESTAMP_AT))
    put(header, 8, <int64_t>load64(p + MAX_TIMESTAMP_AT))
    put(header, 9, <int64_t>load64(p + PRODUCER_ID_AT))
    put(header, 10, <int16_t>load16(p + PRODUCER_EPOCH_AT))
    put(header, 11, <int32_t>load32(p + BASE_SEQUENCE_AT))
    put(header, 12, <int32_t>load32(p + COUNT_AT))
    return made


cdef object check(const uint8_t* p, Py_ssize_t available):
    """Return the header of a whole batch whose CRC and counts are right."""
    cdef int64_t size = whole_size(p, available)
    cdef uint32_t computed
    if size >= RELEASE_FROM:
        with nogil:
            computed = checksum(p + ATTRIBUTES_AT, size - ATTRIBUTES_AT, 0)
    else:
        computed = checksum(p + ATTRIBUTES_AT, size - ATTRIBUTES_AT, 0)
    if computed != load32(p + CRC_AT):
        raise wrong_crc(load32(p + CRC_AT), computed)
    cdef int64_t count = <int32_t>load32(p + COUNT_AT)
    cdef int64_t last_offset_delta = <int32_t>load32(p + LAST_OFFSET_DELTA_AT)
    # Compaction may leave fewer records than offsets (even none), never more.
    if not (0 <= count <= last_offset_delta + 1):
        raise wrong_counts(count, last_offset_delta)
    return header_of(p, size)


def scan_batch(buffer, Py_ssize_t position=0, Py_ssize_t end=-1):
    """Return the header at position; the rest of the batch need not be there."""
    cdef Py_buffer view
    cdef const uint8_t* p
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    try:
        require_range(position, &end, view.len)
        p = <const uint8_t*>view.buf + position
        return header_of(p, batch_size(p, end - position))
    finally:
        PyBuffer_Release(&view)


def scan_batches(buffer, Py_ssize_t position=0, Py_ssize_t end=-1):
    """Return the header of every whole batch; an incomplete one at the end is skipped. So is what
    follows a batch from an entry of an older format (magic 0 or 1) on.
    """
    cdef Py_buffer view
    cdef list found = []
    cdef int64_t size
    cdef const uint8_t* p
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    try:
        require_range(position, &end, view.len)
        while end - position >= HEADER_SIZE:
            p = <const uint8_t*>view.buf + position
            if p[MAGIC_AT] < BATCH_MAGIC and found:
                break
            size = batch_size(p, end - position)
            if size > end - position:
                break
            found.append(header_of(p, size))
            position += size
        return found
    finally:
        PyBuffer_Release(&view)


def check_batch(buffer, Py_ssize_t position=0, Py_ssize_t end=-1):
    """Return the header of a whole batch whose CRC and counts are right."""
    cdef Py_buffer view
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    try:
        require_range(position, &end, view.len)
        return check(<const uint8_t*>view.buf + position, end - position)
    finally:
        PyBuffer_Release(&view)


def inspect_batch(
    buffer,
    Py_ssize_t position=0,
    Py_ssize_t end=-1,
    int64_t timestamp_min=INT64_MIN,
    int64_t timestamp_max=INT64_MAX,
    bint require_key=False,
):
    """Check a produced batch in one call: header, CRC and, if it is not compressed, every record.

    Returns the header and what `validate_records` returns. The records of a compressed batch are
    not checked: its max timestamp is the header's and its offset delta -1.
    """
    cdef Py_buffer view
    cdef const uint8_t* p
    cdef Walk walk
    cdef tuple faults
    cdef object header
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    try:
        require_range(position, &end, view.len)
        p = <const uint8_t*>view.buf + position
        header = check(p, end - position)
        if load16(p + ATTRIBUTES_AT) & CODEC_MASK:
            return header, <int64_t>load64(p + MAX_TIMESTAMP_AT), -1, ()
        walk.cursor = p + HEADER_SIZE
        walk.end = p + PREFIX_SIZE + <int32_t>load32(p + LENGTH_AT)
        walk.count = <int32_t>load32(p + COUNT_AT)
        walk.base_timestamp = <int64_t>load64(p + BASE_TIMESTAMP_AT)
        walk.timestamp_min = timestamp_min
        walk.timestamp_max = timestamp_max
        walk.require_key = require_key
        walk.first = 0
        faults = walk_records(&walk)
        return header, walk.max_timestamp, walk.offset_of_max, faults
    finally:
        PyBuffer_Release(&view)


def validate_records(
    buffer,
    Py_ssize_t start,
    Py_ssize_t end,
    int64_t count,
    int64_t base_timestamp,
    int64_t timestamp_min=INT64_MIN,
    int64_t timestamp_max=INT64_MAX,
    bint require_key=False,
    int64_t first=0,
):
    """Walk over uncompressed records and return (max timestamp, its first offset delta, faults).

    An unreadable record ends the walk; other faults are collected, one per record. A wrong offset
    delta is reported only if nothing else is wrong, because it can be corrected. Timestamp -1
    (none) is always inside the bounds. `first` is the index of the first record, where those before
    it were walked over already.
    """
    cdef Py_buffer view
    cdef Walk walk
    cdef tuple faults
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    try:
        require_range(start, &end, view.len)
        walk.cursor = <const uint8_t*>view.buf + start
        walk.end = <const uint8_t*>view.buf + end
        walk.count = count
        walk.base_timestamp = base_timestamp
        walk.timestamp_min = timestamp_min
        walk.timestamp_max = timestamp_max
        walk.require_key = require_key
        walk.first = first
        faults = walk_records(&walk)
        return walk.max_timestamp, walk.offset_of_max, faults
    finally:
        PyBuffer_Release(&view)


def split_records(buffer, Py_ssize_t start, Py_ssize_t end, int64_t count):
    """Find the whole records at the start of some uncompressed ones, by their lengths alone.

    Returns how many there are (at most `count`), where they end, and how many bytes the next one
    takes: 0 where that cannot be seen yet or `count` is reached, -1 where its length is impossible.
    """
    cdef Py_buffer view
    cdef const uint8_t* zero
    cdef const uint8_t* last
    cdef const uint8_t* p
    cdef const uint8_t* body
    cdef int64_t found = 0, wanted = 0
    cdef int32_t length = 0
    cdef int fault
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    try:
        require_range(start, &end, view.len)
        zero = <const uint8_t*>view.buf
        p = zero + start
        last = zero + end
        with nogil:
            while found < count:
                body = p
                fault = read_varint(&body, last, &length, FAULT_CUT)
                if fault or length < 0:
                    wanted = 0 if fault == FAULT_CUT else -1
                    break
                if length > last - body:
                    wanted = body - p + length
                    break
                p = body + length
                found += 1
        return found, p - zero, wanted
    finally:
        PyBuffer_Release(&view)


cdef int64_t patched_size(Py_buffer* view, Py_ssize_t position) except -1:
    """Return the size of the batch at position, which must be whole to be patched."""
    cdef Py_ssize_t end = -1
    require_range(position, &end, view.len)
    return whole_size(<const uint8_t*>view.buf + position, end - position)


cdef uint32_t seal(uint8_t* p, int64_t size) noexcept:
    cdef uint32_t crc = checksum(p + ATTRIBUTES_AT, size - ATTRIBUTES_AT, 0)
    store32(p + CRC_AT, crc)
    return crc


def assign_offsets(buffer, Py_ssize_t position, int64_t base_offset, int32_t leader_epoch):
    """Set the offsets and leader epoch of a batch in place; its CRC does not cover them."""
    cdef Py_buffer view
    cdef uint8_t* p
    PyObject_GetBuffer(buffer, &view, PyBUF_WRITABLE)
    try:
        patched_size(&view, position)
        p = <uint8_t*>view.buf + position
        store64(p + BASE_OFFSET_AT, <uint64_t>base_offset)
        store32(p + LEADER_EPOCH_AT, <uint32_t>leader_epoch)
    finally:
        PyBuffer_Release(&view)


def stamp_timestamp(buffer, Py_ssize_t position, bint append_time, int64_t max_timestamp):
    """Set timestamp type and max timestamp of a batch in place, and its CRC; return the CRC."""
    cdef Py_buffer view
    cdef uint8_t* p
    cdef int64_t size
    cdef uint16_t attributes
    PyObject_GetBuffer(buffer, &view, PyBUF_WRITABLE)
    try:
        size = patched_size(&view, position)
        p = <uint8_t*>view.buf + position
        attributes = load16(p + ATTRIBUTES_AT) & ~<uint16_t>APPEND_TIME_BIT
        store16(p + ATTRIBUTES_AT, attributes | (APPEND_TIME_BIT if append_time else 0))
        store64(p + MAX_TIMESTAMP_AT, <uint64_t>max_timestamp)
        return seal(p, size)
    finally:
        PyBuffer_Release(&view)


def stamp_producer(
    buffer,
    Py_ssize_t position,
    int64_t producer_id,
    int16_t producer_epoch,
    int32_t base_sequence,
    bint transactional=False,
):
    """Set the producer's identity and sequence of a batch in place, and its CRC; return the CRC."""
    cdef Py_buffer view
    cdef uint8_t* p
    cdef int64_t size
    cdef uint16_t attributes
    PyObject_GetBuffer(buffer, &view, PyBUF_WRITABLE)
    try:
        size = patched_size(&view, position)
        p = <uint8_t*>view.buf + position
        attributes = load16(p + ATTRIBUTES_AT) & ~<uint16_t>TRANSACTIONAL_BIT
        store16(p + ATTRIBUTES_AT, attributes | (TRANSACTIONAL_BIT if transactional else 0))
        store64(p + PRODUCER_ID_AT, <uint64_t>producer_id)
        store16(p + PRODUCER_EPOCH_AT, <uint16_t>producer_epoch)
        store32(p + BASE_SEQUENCE_AT, <uint32_t>base_sequence)
        return seal(p, size)
    finally:
        PyBuffer_Release(&view)

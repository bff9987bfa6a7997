"""Compaction of record batches: keys into a map of offsets, and batches through that map.

The map's layout is drawn in `kernels/python/compaction.py`. The walks over many batches release
the GIL, so that a broker serves while a log is compacted on another thread.
"""

from cpython.buffer cimport (
    PyBUF_SIMPLE,
    PyBUF_WRITABLE,
    PyBuffer_Release,
    PyObject_GetBuffer,
)
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_Resize
from libc.stdint cimport INT64_MIN, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy

from barnabas.kernels.contract import (
    corrupt_record,
    wrong_counts,
    wrong_crc,
    wrong_magic,
    wrong_range,
    wrong_size,
)
from barnabas.kernels.cython.batch_header cimport (
    APPEND_TIME_BIT,
    ATTRIBUTES_AT,
    BASE_TIMESTAMP_AT,
    BATCH_MAGIC,
    COUNT_AT,
    CRC_AT,
    DELETE_HORIZON_BIT,
    HEADER_SIZE,
    LAST_OFFSET_DELTA_AT,
    LENGTH_AT,
    MAGIC_AT,
    MAX_TIMESTAMP_AT,
    PREFIX_SIZE,
    SPECIAL_MASK,
)
from barnabas.kernels.cython.crc32c cimport checksum
from barnabas.kernels.cython.layout cimport (
    FAULT_COUNT,
    FAULT_LEFTOVER,
    Layout,
    load16,
    load32,
    load64,
    put_unsigned,
    read_layout,
    store16,
    store32,
    store64,
    unsigned_size,
    zigzag32,
    zigzag64,
)

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>

    static const uint32_t barnabas_md5_add[64] = {
        0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613,
        0xfd469501, 0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193,
        0xa679438e, 0x49b40821, 0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d,
        0x02441453, 0xd8a1e681, 0xe7d3fbc8, 0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed,
        0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a, 0xfffa3942, 0x8771f681, 0x6d9d6122,
        0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70, 0x289b7ec6, 0xeaa127fa,
        0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665, 0xf4292244,
        0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
        0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb,
        0xeb86d391};
    static const uint8_t barnabas_md5_turn[4][4] = {
        {7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};

    static void barnabas_md5_block(uint32_t state[4], const uint8_t *p)
    {
        uint32_t word[16], a = state[0], b = state[1], c = state[2], d = state[3];
        for (int i = 0; i < 16; i++)
            word[i] = (uint32_t)p[4 * i] | (uint32_t)p[4 * i + 1] << 8
                | (uint32_t)p[4 * i + 2] << 16 | (uint32_t)p[4 * i + 3] << 24;
        #pragma GCC unroll 64
        for (int i = 0; i < 64; i++) {
            uint32_t f;
            int at;
            if (i < 16) { f = d ^ (b & (c ^ d)); at = i; }
            else if (i < 32) { f = c ^ (d & (b ^ c)); at = (5 * i + 1) & 15; }
            else if (i < 48) { f = b ^ c ^ d; at = (3 * i + 5) & 15; }
            else { f = c ^ (b | ~d); at = (7 * i) & 15; }
            f += a + barnabas_md5_add[i] + word[at];
            int turn = barnabas_md5_turn[i >> 4][i & 3];
            a = d; d = c; c = b;
            b += f << turn | f >> (32 - turn);
        }
        state[0] += a; state[1] += b; state[2] += c; state[3] += d;
    }

    static void barnabas_md5(const uint8_t *data, size_t size, uint8_t digest[16])
    {
        uint32_t state[4] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
        uint8_t tail[128] = {0};
        size_t left = size;
        for (; left >= 64; left -= 64, data += 64)
            barnabas_md5_block(state, data);
        memcpy(tail, data, left);
        tail[left] = 0x80;
        size_t end = left < 56 ? 64 : 128;
        uint64_t bits = (uint64_t)size << 3;
        for (int i = 0; i < 8; i++)
            tail[end - 8 + i] = (uint8_t)(bits >> 8 * i);
        barnabas_md5_block(state, tail);
        if (end == 128)
            barnabas_md5_block(state, tail + 64);
        for (int i = 0; i < 16; i++)
            digest[i] = (uint8_t)(state[i >> 2] >> 8 * (i & 3));
    }

    /* The slot where a search begins: the digest's first half as a fraction of all slots. */
    static uint64_t barnabas_home(const uint8_t digest[16], uint64_t slot_count)
    {
        uint64_t half = 0;
        for (int i = 0; i < 8; i++)
            half |= (uint64_t)digest[i] << 8 * i;
        return (uint64_t)((unsigned __int128)half * slot_count >> 64);
    }

    #define barnabas_prefetch(slot) __builtin_prefetch(slot, 1)
    """
    void barnabas_md5(const uint8_t* data, size_t size, uint8_t* digest) nogil
    uint64_t barnabas_home(const uint8_t* digest, uint64_t slot_count) nogil
    void barnabas_prefetch(const uint8_t* slot) nogil

cdef enum:
    SLOT = 24
    GROWTH_MAX = 11

# How a walk over many batches can end besides well; what to raise is found out with the GIL held.
cdef enum:
    DONE = 0
    BAD_MAGIC = -1
    BAD_SIZE = -2
    BAD_CRC = -3
    BAD_COUNTS = -4


cdef struct Trouble:
    int kind  # a value above 0 is the fault of a record
    int64_t first
    int64_t second


cdef struct Kept:
    int64_t count
    int64_t delta_max
    bint tombstones


cdef struct Search:
    # A search whose slot is being fetched from memory while the next key is hashed: in a large map
    # nearly every key would otherwise wait for it.
    uint8_t* home
    uint8_t digest[16]


cdef struct Candidate:
    Layout layout
    Search search
    const uint8_t* begin
    int64_t offset
    bint searched


cdef inline void begin_search(
    uint8_t* slots, uint64_t slot_count, const uint8_t* key, int32_t length, Search* search
) noexcept nogil:
    barnabas_md5(key, length, search.digest)
    search.home = slots + barnabas_home(search.digest, slot_count) * SLOT
    barnabas_prefetch(search.home)


cdef inline uint8_t* end_search(
    uint8_t* slots, uint64_t slot_count, const Search* search
) noexcept nogil:
    """Return the key's slot, or the free one where it belongs."""
    cdef uint8_t* slot = search.home
    cdef uint8_t* end = slots + slot_count * SLOT
    cdef int64_t value
    while True:
        memcpy(&value, slot + 16, 8)
        if value == 0 or memcmp(slot, search.digest, 16) == 0:
            return slot
        slot += SLOT
        if slot == end:
            slot = slots


cdef inline int64_t offset_in(const uint8_t* slot) noexcept nogil:
    cdef int64_t value
    memcpy(&value, slot + 16, 8)
    return value - 1


cdef int64_t map_run(
    uint8_t* slots,
    uint64_t slot_count,
    int64_t room,
    const uint8_t* p,
    const uint8_t* end,
    int64_t count,
    int64_t base_offset,
    int64_t start_offset,
    int64_t* added,
    Trouble* trouble,
) noexcept nogil:
    """Enter the records; return the offset that found no room, or -1."""
    cdef Layout layout
    cdef Search searches[2]
    cdef int64_t offsets[2]
    cdef uint8_t* slot
    cdef int64_t index, begun = 0, ended = 0, value
    cdef const uint8_t* walk = p
    cdef int fault
    if count < 0:
        trouble.kind, trouble.first = FAULT_COUNT, 0
        return -1
    # Two walks: a batch that cannot be read leaves no trace in the map.
    for index in range(count):
        fault = read_layout(walk, end, &layout)
        if fault:
            trouble.kind, trouble.first = fault, index
            return -1
        walk = layout.end
    if walk != end:
        trouble.kind, trouble.first = FAULT_LEFTOVER, count
        return -1
    for index in range(count + 1):
        if index < count:
            read_layout(p, end, &layout)
            p = layout.end
            value = base_offset + layout.offset_delta
            if layout.key_length < 0 or value < start_offset:
                continue
            if slot_count == 0:
                return value
            offsets[begun & 1] = value
            begin_search(slots, slot_count, layout.key, layout.key_length, &searches[begun & 1])
            begun += 1
            if begun == 1:
                continue
        if ended == begun:
            break
        slot = end_search(slots, slot_count, &searches[ended & 1])
        if offset_in(slot) < 0:
            if added[0] >= room:
                return offsets[ended & 1]
            added[0] += 1
            memcpy(slot, searches[ended & 1].digest, 16)
        value = offsets[ended & 1] + 1
        memcpy(slot + 16, &value, 8)
        ended += 1
    return -1


cdef uint8_t* filter_run(
    uint8_t* slots,
    uint64_t slot_count,
    const uint8_t* p,
    const uint8_t* end,
    int64_t count,
    int64_t base_offset,
    int64_t map_end,
    bint drop_tombstones,
    int64_t shift,
    uint8_t* out,
    Kept* kept,
    Trouble* trouble,
) noexcept nogil:
    """Copy what stays to `out`, and return the position after it."""
    cdef Candidate candidates[2]
    cdef Candidate* one
    cdef Layout* layout
    cdef int64_t index, begun = 0, ended = 0, delta
    cdef uint64_t size
    cdef int fault
    kept.count, kept.tombstones, kept.delta_max = 0, False, INT64_MIN
    if count < 0:
        trouble.kind, trouble.first = FAULT_COUNT, 0
        return out
    for index in range(count + 1):
        if index < count:
            one = &candidates[begun & 1]
            layout = &one.layout
            fault = read_layout(p, end, layout)
            if fault:
                trouble.kind, trouble.first = fault, index
                return out
            one.begin, p = p, layout.end
            one.offset = base_offset + layout.offset_delta
            one.searched = False
            if one.offset < map_end:
                if layout.key_length < 0 or (layout.value_length < 0 and drop_tombstones):
                    continue
                if slot_count:
                    one.searched = True
                    begin_search(slots, slot_count, layout.key, layout.key_length, &one.search)
            begun += 1
            if begun == 1:
                continue
        if ended == begun:
            break
        one = &candidates[ended & 1]
        layout = &one.layout
        ended += 1
        if one.searched and one.offset < offset_in(end_search(slots, slot_count, &one.search)):
            continue
        kept.count += 1
        if layout.value_length < 0:
            kept.tombstones = True
        delta = <int64_t>(<uint64_t>layout.timestamp_delta + <uint64_t>shift)
        if delta > kept.delta_max:
            kept.delta_max = delta
        if shift == 0:
            memcpy(out, one.begin, layout.end - one.begin)
            out += layout.end - one.begin
            continue
        size = <uint64_t>(layout.end - layout.key) + 1
        size += unsigned_size(zigzag64(delta))
        size += unsigned_size(zigzag32(layout.offset_delta))
        size += unsigned_size(zigzag32(layout.key_length))
        out = put_unsigned(out, zigzag32(<int32_t>size))
        out[0] = 0
        out = put_unsigned(out + 1, zigzag64(delta))
        out = put_unsigned(out, zigzag32(layout.offset_delta))
        out = put_unsigned(out, zigzag32(layout.key_length))
        memcpy(out, layout.key, layout.end - layout.key)
        out += layout.end - layout.key
    if p != end:
        trouble.kind, trouble.first = FAULT_LEFTOVER, count
    if kept.count == 0:
        kept.delta_max = 0
    return out


cdef inline int64_t plain_size(
    const uint8_t* p, const uint8_t* end, Trouble* trouble
) noexcept nogil:
    """Return the size of the plain batch at p, 0 when there is none or it is not whole."""
    if end - p < HEADER_SIZE:
        return 0
    cdef int64_t size = <int64_t><int32_t>load32(p + LENGTH_AT) + PREFIX_SIZE
    if p[MAGIC_AT] < BATCH_MAGIC:
        return 0
    if p[MAGIC_AT] != BATCH_MAGIC:
        trouble.kind, trouble.first = BAD_MAGIC, <signed char>p[MAGIC_AT]
        return 0
    if size < HEADER_SIZE:
        trouble.kind, trouble.first = BAD_SIZE, size
        return 0
    if size > end - p or load16(p + ATTRIBUTES_AT) & SPECIAL_MASK:
        return 0
    return size


cdef inline bint is_sound(const uint8_t* p, int64_t size, Trouble* trouble) noexcept nogil:
    """Check CRC and counts of a whole batch."""
    cdef uint32_t stored = load32(p + CRC_AT)
    cdef uint32_t computed = checksum(p + ATTRIBUTES_AT, size - ATTRIBUTES_AT, 0)
    cdef int64_t delta = <int32_t>load32(p + LAST_OFFSET_DELTA_AT)
    cdef int64_t count = <int32_t>load32(p + COUNT_AT)
    if stored != computed:
        trouble.kind, trouble.first, trouble.second = BAD_CRC, stored, computed
        return False
    if count < 0 or count > delta + 1:
        trouble.kind, trouble.first, trouble.second = BAD_COUNTS, count, delta
        return False
    return True


cdef inline void seal(
    uint8_t* batch,
    int64_t size,
    int64_t count,
    uint16_t attributes,
    int64_t base_timestamp,
    int64_t max_timestamp,
) noexcept nogil:
    """Write the fields of a header that compaction changes."""
    store32(batch + LENGTH_AT, <uint32_t>(size - PREFIX_SIZE))
    store16(batch + ATTRIBUTES_AT, attributes)
    store64(batch + BASE_TIMESTAMP_AT, <uint64_t>base_timestamp)
    store64(batch + MAX_TIMESTAMP_AT, <uint64_t>max_timestamp)
    store32(batch + COUNT_AT, <uint32_t>count)
    store32(batch + CRC_AT, checksum(batch + ATTRIBUTES_AT, size - ATTRIBUTES_AT, 0))


cdef inline bint contains(
    const uint8_t* sorted_values, int64_t count, int64_t value
) noexcept nogil:
    cdef int64_t low = 0, high = count, middle, found
    while low < high:
        middle = (low + high) >> 1
        memcpy(&found, sorted_values + 8 * middle, 8)
        if found < value:
            low = middle + 1
        elif found > value:
            high = middle
        else:
            return True
    return False


cdef int64_t filter_one(
    uint8_t* slots,
    uint64_t slot_count,
    const uint8_t* p,
    int64_t size,
    uint8_t* out,
    int64_t map_end,
    int64_t now_ms,
    int64_t horizon_ms,
    const uint8_t* retained,
    int64_t retained_count,
    bint* changed,
    Trouble* trouble,
) noexcept nogil:
    """Pass one plain batch through the map; return how many bytes of it are in `out`."""
    cdef Kept kept
    cdef uint16_t attributes = load16(p + ATTRIBUTES_AT)
    cdef int64_t base_offset = <int64_t>load64(p)
    cdef int64_t last_offset = base_offset + <int32_t>load32(p + LAST_OFFSET_DELTA_AT)
    cdef int64_t base_timestamp = <int64_t>load64(p + BASE_TIMESTAMP_AT)
    cdef int64_t max_timestamp = <int64_t>load64(p + MAX_TIMESTAMP_AT)
    cdef int64_t count = <int32_t>load32(p + COUNT_AT), shift
    cdef bint has_horizon = attributes & DELETE_HORIZON_BIT != 0
    cdef bint drop = has_horizon and now_ms >= base_timestamp
    cdef uint8_t* stop = filter_run(
        slots, slot_count, p + HEADER_SIZE, p + size, count, base_offset, map_end, drop, 0,
        out + HEADER_SIZE, &kept, trouble,
    )
    if trouble.kind:
        return 0
    memcpy(out, p, HEADER_SIZE)
    if kept.tombstones and not has_horizon and last_offset < map_end:
        # Base and horizon may lie further apart than 64 bits reach; deltas wrap, as timestamps do.
        shift = <int64_t>(<uint64_t>base_timestamp - <uint64_t>horizon_ms)
        stop = filter_run(
            slots, slot_count, p + HEADER_SIZE, p + size, count, base_offset, map_end, drop, shift,
            out + HEADER_SIZE, &kept, trouble,
        )
        attributes |= DELETE_HORIZON_BIT
        base_timestamp = horizon_ms
    elif kept.count == count and count:
        memcpy(out + HEADER_SIZE, p + HEADER_SIZE, size - HEADER_SIZE)
        return size
    if kept.count == 0:
        if not contains(retained, retained_count, last_offset):
            changed[0] = True
            return 0
        if count:
            changed[0] = True
        seal(out, HEADER_SIZE, 0, attributes & ~DELETE_HORIZON_BIT, -1, max_timestamp)
        return HEADER_SIZE
    changed[0] = True
    if not attributes & APPEND_TIME_BIT:
        max_timestamp = <int64_t>(<uint64_t>base_timestamp + <uint64_t>kept.delta_max)
    seal(out, stop - out, kept.count, attributes, base_timestamp, max_timestamp)
    return stop - out


cdef object describe(Trouble* trouble):
    if trouble.kind > 0:
        return corrupt_record(trouble.first, trouble.kind)
    if trouble.kind == BAD_MAGIC:
        return wrong_magic(trouble.first)
    if trouble.kind == BAD_SIZE:
        return wrong_size(trouble.first)
    if trouble.kind == BAD_CRC:
        return wrong_crc(trouble.first, trouble.second)
    return wrong_counts(trouble.first, trouble.second)


def find_offset(slots, key, /):
    """Return the offset that the map has for a key, -1 without one."""
    cdef Py_buffer slot, view
    cdef Search search
    cdef uint8_t* start
    cdef int64_t offset = -1
    PyObject_GetBuffer(slots, &slot, PyBUF_SIMPLE)
    try:
        PyObject_GetBuffer(key, &view, PyBUF_SIMPLE)
        if slot.len >= SLOT:
            start = <uint8_t*>slot.buf
            begin_search(start, slot.len // SLOT, <uint8_t*>view.buf, view.len, &search)
            offset = offset_in(end_search(start, slot.len // SLOT, &search))
        PyBuffer_Release(&view)
    finally:
        PyBuffer_Release(&slot)
    return offset


def map_records(
    slots,
    int64_t room,
    buffer,
    Py_ssize_t start,
    Py_ssize_t end,
    int64_t count,
    int64_t base_offset,
    int64_t start_offset,
):
    """Enter the offsets of uncompressed records from `start_offset` on.

    Returns how many keys are new, and the offset of the first record that did not fit (-1: all
    did). Records without a key need no room.
    """
    cdef Py_buffer slot, view
    cdef Trouble trouble
    cdef int64_t added = 0, full_at = -1
    trouble.kind = DONE
    PyObject_GetBuffer(slots, &slot, PyBUF_WRITABLE)
    try:
        PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
        try:
            if not (0 <= start <= end <= view.len):
                raise wrong_range(start, end, view.len)
            with nogil:
                full_at = map_run(
                    <uint8_t*>slot.buf, slot.len // SLOT, room,
                    <const uint8_t*>view.buf + start, <const uint8_t*>view.buf + end,
                    count, base_offset, start_offset, &added, &trouble,
                )
            if trouble.kind:
                raise describe(&trouble)
        finally:
            PyBuffer_Release(&view)
    finally:
        PyBuffer_Release(&slot)
    return added, full_at


def map_batches(
    slots, int64_t room, buffer, Py_ssize_t position, Py_ssize_t end, int64_t start_offset
):
    """Enter the records of plain batches, whose CRC is checked, until something else comes.

    Returns the position of the first batch that was not done (special, incomplete, or with a record
    that does not fit), how many keys are new, and the offset that did not fit (-1: all did).
    """
    cdef Py_buffer slot, view
    cdef Trouble trouble
    cdef int64_t added = 0, full_at = -1, size, base_offset, delta
    cdef const uint8_t* p
    cdef const uint8_t* stop
    trouble.kind = DONE
    PyObject_GetBuffer(slots, &slot, PyBUF_WRITABLE)
    try:
        PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
        try:
            if not (0 <= position <= end <= view.len):
                raise wrong_range(position, end, view.len)
            with nogil:
                p = <const uint8_t*>view.buf + position
                stop = <const uint8_t*>view.buf + end
                while True:
                    size = plain_size(p, stop, &trouble)
                    if size == 0 or not is_sound(p, size, &trouble):
                        break
                    base_offset = <int64_t>load64(p)
                    delta = <int32_t>load32(p + LAST_OFFSET_DELTA_AT)
                    if base_offset + delta >= start_offset:
                        full_at = map_run(
                            <uint8_t*>slot.buf, slot.len // SLOT, room, p + HEADER_SIZE, p + size,
                            <int32_t>load32(p + COUNT_AT), base_offset, start_offset,
                            &added, &trouble,
                        )
                        if trouble.kind or full_at >= 0:
                            break
                    p += size
                position = p - <const uint8_t*>view.buf
            if trouble.kind:
                raise describe(&trouble)
        finally:
            PyBuffer_Release(&view)
    finally:
        PyBuffer_Release(&slot)
    return position, added, full_at


def filter_records(
    slots,
    buffer,
    Py_ssize_t start,
    Py_ssize_t end,
    int64_t count,
    int64_t base_offset,
    int64_t map_end,
    bint drop_tombstones=False,
    int64_t shift=0,
):
    """Leave out the records that newer ones replace, those without a key and, on request,
    tombstones.

    Records from `map_end` on are all kept. `shift` is added to the timestamp deltas. Returns the
    bytes that are kept (None: all, unchanged), their number, whether tombstones are among them, and
    their greatest timestamp delta.
    """
    cdef Py_buffer slot, view
    cdef Trouble trouble
    cdef Kept kept
    cdef uint8_t* out
    cdef uint8_t* stop
    cdef bytearray result
    trouble.kind = DONE
    PyObject_GetBuffer(slots, &slot, PyBUF_SIMPLE)
    try:
        PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
        try:
            if not (0 <= start <= end <= view.len):
                raise wrong_range(start, end, view.len)
            # No record is smaller than seven bytes, whatever the count claims.
            result = bytearray(end - start + GROWTH_MAX * min(max(count, 0), end - start))
            out = <uint8_t*>PyByteArray_AS_STRING(result)
            with nogil:
                stop = filter_run(
                    <uint8_t*>slot.buf, slot.len // SLOT,
                    <const uint8_t*>view.buf + start, <const uint8_t*>view.buf + end,
                    count, base_offset, map_end, drop_tombstones, shift, out, &kept, &trouble,
                )
            if trouble.kind:
                raise describe(&trouble)
        finally:
            PyBuffer_Release(&view)
    finally:
        PyBuffer_Release(&slot)
    if kept.count == count and shift == 0:
        return None, kept.count, kept.tombstones != 0, kept.delta_max
    PyByteArray_Resize(result, stop - out)
    return result, kept.count, kept.tombstones != 0, kept.delta_max


def filter_batches(
    slots,
    buffer,
    Py_ssize_t position,
    Py_ssize_t end,
    out,
    Py_ssize_t out_position,
    int64_t map_end,
    int64_t now_ms,
    int64_t horizon_ms,
    retained,
):
    """Filter plain batches, whose CRC is checked, by the map into `out`, until something else comes
    or `out` could overflow.

    Tombstones that are kept get `horizon_ms` as their delete horizon, unless they have one; when
    that has passed (`now_ms`), they are removed. A batch without records stays if its last offset
    is in `retained` (int64, ascending). Returns both positions, and whether anything was changed.
    """
    cdef Py_buffer slot, view, target, offsets
    cdef Trouble trouble
    cdef int64_t size, count
    cdef bint changed = False
    cdef const uint8_t* p
    cdef const uint8_t* stop
    cdef uint8_t* q
    cdef uint8_t* room
    trouble.kind = DONE
    PyObject_GetBuffer(slots, &slot, PyBUF_SIMPLE)
    try:
        PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
        try:
            PyObject_GetBuffer(out, &target, PyBUF_WRITABLE)
            try:
                PyObject_GetBuffer(retained, &offsets, PyBUF_SIMPLE)
                try:
                    if not (0 <= position <= end <= view.len):
                        raise wrong_range(position, end, view.len)
                    if not (0 <= out_position <= target.len):
                        raise wrong_range(out_position, target.len, target.len)
                    with nogil:
                        p = <const uint8_t*>view.buf + position
                        stop = <const uint8_t*>view.buf + end
                        q = <uint8_t*>target.buf + out_position
                        room = <uint8_t*>target.buf + target.len
                        while True:
                            size = plain_size(p, stop, &trouble)
                            if size == 0:
                                break
                            count = <int32_t>load32(p + COUNT_AT)
                            if size + GROWTH_MAX * max(count, 0) > room - q:
                                break
                            if not is_sound(p, size, &trouble):
                                break
                            q += filter_one(
                                <uint8_t*>slot.buf, slot.len // SLOT, p, size, q, map_end,
                                now_ms, horizon_ms, <const uint8_t*>offsets.buf,
                                offsets.len // 8, &changed, &trouble,
                            )
                            if trouble.kind:
                                break
                            p += size
                        position = p - <const uint8_t*>view.buf
                        out_position = q - <uint8_t*>target.buf
                    if trouble.kind:
                        raise describe(&trouble)
                finally:
                    PyBuffer_Release(&offsets)
            finally:
                PyBuffer_Release(&target)
        finally:
            PyBuffer_Release(&view)
    finally:
        PyBuffer_Release(&slot)
    return position, out_position, changed != 0


def rebuild_batch(
    buffer,
    Py_ssize_t position,
    records,
    int64_t count,
    int16_t attributes,
    int64_t base_timestamp,
    int64_t max_timestamp,
):
    """Return the batch at position with other records; offsets, producer and epochs stay."""
    cdef Py_buffer view
    cdef bytearray batch
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    try:
        if not (0 <= position <= view.len - HEADER_SIZE):
            raise wrong_range(position, position + HEADER_SIZE, view.len)
        batch = bytearray(HEADER_SIZE)
        memcpy(PyByteArray_AS_STRING(batch), <const uint8_t*>view.buf + position, HEADER_SIZE)
    finally:
        PyBuffer_Release(&view)
    batch += records
    cdef int64_t size = len(batch)
    cdef uint8_t* p = <uint8_t*>PyByteArray_AS_STRING(batch)
    with nogil:
        seal(p, size, count, <uint16_t>attributes, base_timestamp, max_timestamp)
    return batch

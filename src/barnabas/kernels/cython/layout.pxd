"""Numbers in buffers and the walk over one record, shared by the compiled kernels as inline code.

The layout of a record is drawn in `kernels/python/layout.py`; the checks and their order are the
same here. Nothing outside [cursor, end) is ever read.
"""

from libc.stdint cimport int16_t, int32_t, int64_t, uint16_t, uint32_t, uint64_t, uint8_t

# The values of contract.Fault.
cdef enum:
    FAULT_CUT = 1
    FAULT_VARINT = 2
    FAULT_LENGTH = 3
    FAULT_FIELD = 4
    FAULT_HEADERS = 5
    FAULT_OFFSET = 6
    FAULT_KEY = 7
    FAULT_TIMESTAMP = 8
    FAULT_LEFTOVER = 9
    FAULT_COUNT = 10

# Below this size the work is shorter than what handing the GIL over and back may cost.
cdef enum:
    RELEASE_FROM = 32768


cdef struct Layout:
    const uint8_t* end
    int64_t timestamp_delta
    int32_t offset_delta
    const uint8_t* key
    int32_t key_length  # -1: null
    const uint8_t* value
    int32_t value_length
    const uint8_t* headers
    int32_t header_count


cdef inline uint16_t load16(const uint8_t* p) noexcept nogil:
    return <uint16_t>(<uint32_t>p[0] << 8 | p[1])


cdef inline uint32_t load32(const uint8_t* p) noexcept nogil:
    return <uint32_t>p[0] << 24 | <uint32_t>p[1] << 16 | <uint32_t>p[2] << 8 | p[3]


cdef inline uint64_t load64(const uint8_t* p) noexcept nogil:
    return <uint64_t>load32(p) << 32 | load32(p + 4)


cdef inline void store16(uint8_t* p, uint16_t value) noexcept nogil:
    p[0] = <uint8_t>(value >> 8)
    p[1] = <uint8_t>value


cdef inline void store32(uint8_t* p, uint32_t value) noexcept nogil:
    p[0] = <uint8_t>(value >> 24)
    p[1] = <uint8_t>(value >> 16)
    p[2] = <uint8_t>(value >> 8)
    p[3] = <uint8_t>value


cdef inline void store64(uint8_t* p, uint64_t value) noexcept nogil:
    store32(p, <uint32_t>(value >> 32))
    store32(p + 4, <uint32_t>value)


cdef inline uint32_t zigzag32(int32_t value) noexcept nogil:
    return (<uint32_t>value << 1) ^ <uint32_t>(value >> 31)


cdef inline uint64_t zigzag64(int64_t value) noexcept nogil:
    return (<uint64_t>value << 1) ^ <uint64_t>(value >> 63)


cdef inline int unsigned_size(uint64_t value) noexcept nogil:
    """Return how many bytes the number takes, seven bits in each."""
    cdef int size = 1
    while value >= 0x80:
        value >>= 7
        size += 1
    return size


cdef inline uint8_t* put_unsigned(uint8_t* p, uint64_t value) noexcept nogil:
    """Write the number and return the position after it."""
    while value >= 0x80:
        p[0] = <uint8_t>(value | 0x80)
        p += 1
        value >>= 7
    p[0] = <uint8_t>value
    return p + 1


cdef inline int read_unsigned(
    const uint8_t** cursor, const uint8_t* end, uint64_t* out, int shift_end, int past_end
) noexcept nogil:
    """Read seven bits a byte, below `shift_end` bits; return 0 or the fault."""
    cdef const uint8_t* p = cursor[0]
    cdef uint64_t value = 0
    cdef uint8_t byte
    cdef int shift = 0
    while shift < shift_end:
        if p >= end:
            return past_end
        byte = p[0]
        p += 1
        value |= <uint64_t>(byte & 0x7F) << shift
        if byte < 0x80:
            cursor[0] = p
            out[0] = value
            return 0
        shift += 7
    return FAULT_VARINT


cdef inline int read_varint(
    const uint8_t** cursor, const uint8_t* end, int32_t* out, int past_end
) noexcept nogil:
    """Read a zigzag 32-bit number; return 0 or the fault."""
    cdef uint64_t wide = 0
    cdef uint32_t value
    cdef int fault
    cdef const uint8_t* p = cursor[0]
    if p < end and p[0] < 0x80:  # most numbers of most records
        value = p[0]
        cursor[0] = p + 1
    else:
        fault = read_unsigned(cursor, end, &wide, 35, past_end)
        if fault:
            return fault
        value = <uint32_t>wide
    out[0] = <int32_t>((value >> 1) ^ (0 - (value & 1)))
    return 0


cdef inline int read_varlong(
    const uint8_t** cursor, const uint8_t* end, int64_t* out, int past_end
) noexcept nogil:
    """Read a zigzag 64-bit number; return 0 or the fault."""
    cdef uint64_t value = 0
    cdef int fault
    cdef const uint8_t* p = cursor[0]
    if p < end and p[0] < 0x80:
        value = p[0]
        cursor[0] = p + 1
    else:
        fault = read_unsigned(cursor, end, &value, 70, past_end)
        if fault:
            return fault
    out[0] = <int64_t>((value >> 1) ^ (0 - (value & 1)))
    return 0


cdef inline int read_field(
    const uint8_t** cursor,
    const uint8_t* end,
    const uint8_t** field,
    int32_t* length,
    int negative,
) noexcept nogil:
    """Read a length and step over that many bytes; return 0 or the fault."""
    cdef int fault = read_varint(cursor, end, length, FAULT_LENGTH)
    if fault:
        return fault
    if length[0] < -1:
        return negative
    if length[0] > end - cursor[0]:
        return FAULT_LENGTH
    field[0] = cursor[0]
    if length[0] > 0:
        cursor[0] += length[0]
    return 0


cdef inline int read_layout(const uint8_t* p, const uint8_t* end, Layout* out) noexcept nogil:
    """Find the fields of the record at p; return 0 or the fault."""
    cdef int fault
    cdef int32_t length = 0, _index
    cdef const uint8_t* field = NULL
    fault = read_varint(&p, end, &length, FAULT_CUT)
    if fault:
        return fault
    if length < 0:
        return FAULT_LENGTH
    if length > end - p:
        return FAULT_CUT
    end = p + length
    if p == end:
        return FAULT_LENGTH
    p += 1  # attributes: no bit is defined
    fault = read_varlong(&p, end, &out.timestamp_delta, FAULT_LENGTH)
    if fault:
        return fault
    fault = read_varint(&p, end, &out.offset_delta, FAULT_LENGTH)
    if fault:
        return fault
    fault = read_field(&p, end, &out.key, &out.key_length, FAULT_FIELD)
    if fault:
        return fault
    fault = read_field(&p, end, &out.value, &out.value_length, FAULT_FIELD)
    if fault:
        return fault
    fault = read_varint(&p, end, &out.header_count, FAULT_LENGTH)
    if fault:
        return fault
    if out.header_count < 0 or out.header_count > end - p:
        return FAULT_HEADERS
    out.headers = p
    for _index in range(out.header_count):
        fault = read_field(&p, end, &field, &length, FAULT_HEADERS)
        if fault:
            return fault
        if length < 0:
            return FAULT_HEADERS
        fault = read_field(&p, end, &field, &length, FAULT_HEADERS)
        if fault:
            return fault
    if p != end:
        return FAULT_LENGTH
    out.end = end
    return 0

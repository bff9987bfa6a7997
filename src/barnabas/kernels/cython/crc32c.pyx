"""CRC-32C (Castagnoli), the checksum of record batches.

On x86-64 with SSE4.2 (asked for at run time) three streams run side by side, because the
instruction has three cycles of latency and one of throughput; their results are joined by a table
that advances a CRC over a fixed number of zero bytes. Elsewhere, eight tables take eight bytes at a
step.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport uint8_t, uint32_t

from barnabas.kernels.cython.layout cimport RELEASE_FROM

cdef extern from *:
    """
    #include <stddef.h>
    #include <stdint.h>
    #include <string.h>

    #if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
    #define BARNABAS_SSE42 1
    #include <nmmintrin.h>
    #endif

    #define BARNABAS_POLYNOMIAL 0x82f63b78u /* reflected: bit 31 is x^0 */
    #define BARNABAS_LONG 4096
    #define BARNABAS_SHORT 256

    static uint32_t barnabas_tables[8][256];
    static uint32_t barnabas_long[4][256];
    static uint32_t barnabas_short[4][256];
    static int barnabas_hardware = 0;

    static uint32_t barnabas_multiply(uint32_t a, uint32_t b)
    {
        uint32_t product = 0, bit;
        for (bit = 0x80000000u; bit; bit >>= 1) {
            if (a & bit)
                product ^= b;
            b = b & 1 ? (b >> 1) ^ BARNABAS_POLYNOMIAL : b >> 1;
        }
        return product;
    }

    /* A CRC register after `size` zero bytes is the register times x^(8 size). */
    static void barnabas_make_shift(uint32_t table[4][256], uint32_t size)
    {
        uint32_t power = 0x80000000u, square = 0x40000000u, bits = 8 * size, byte;
        int row;
        for (; bits; bits >>= 1) {
            if (bits & 1)
                power = barnabas_multiply(power, square);
            square = barnabas_multiply(square, square);
        }
        for (row = 0; row < 4; row++)
            for (byte = 0; byte < 256; byte++)
                table[row][byte] = barnabas_multiply(power, byte << 8 * row);
    }

    static void barnabas_prepare(void)
    {
        uint32_t byte, crc;
        int row;
        for (byte = 0; byte < 256; byte++) {
            crc = byte;
            for (row = 0; row < 8; row++)
                crc = crc & 1 ? (crc >> 1) ^ BARNABAS_POLYNOMIAL : crc >> 1;
            barnabas_tables[0][byte] = crc;
        }
        for (row = 1; row < 8; row++)
            for (byte = 0; byte < 256; byte++) {
                crc = barnabas_tables[row - 1][byte];
                barnabas_tables[row][byte] = (crc >> 8) ^ barnabas_tables[0][crc & 255];
            }
        barnabas_make_shift(barnabas_long, BARNABAS_LONG);
        barnabas_make_shift(barnabas_short, BARNABAS_SHORT);
    #ifdef BARNABAS_SSE42
        __builtin_cpu_init();
        barnabas_hardware = __builtin_cpu_supports("sse4.2") != 0;
    #endif
    }

    static uint32_t barnabas_crc_portable(uint32_t crc, const uint8_t *data, size_t size)
    {
        for (; size >= 8; size -= 8, data += 8) {
            crc ^= (uint32_t)data[0] | (uint32_t)data[1] << 8 | (uint32_t)data[2] << 16
                 | (uint32_t)data[3] << 24;
            crc = barnabas_tables[7][crc & 255] ^ barnabas_tables[6][crc >> 8 & 255]
                ^ barnabas_tables[5][crc >> 16 & 255] ^ barnabas_tables[4][crc >> 24]
                ^ barnabas_tables[3][data[4]] ^ barnabas_tables[2][data[5]]
                ^ barnabas_tables[1][data[6]] ^ barnabas_tables[0][data[7]];
        }
        for (; size; size--, data++)
            crc = (crc >> 8) ^ barnabas_tables[0][(crc ^ *data) & 255];
        return crc;
    }

    #ifdef BARNABAS_SSE42
    static inline uint32_t barnabas_shift(uint32_t table[4][256], uint32_t crc)
    {
        return table[0][crc & 255] ^ table[1][crc >> 8 & 255]
             ^ table[2][crc >> 16 & 255] ^ table[3][crc >> 24];
    }

    static inline uint64_t barnabas_word(const uint8_t *data)
    {
        uint64_t word;
        memcpy(&word, data, 8);
        return word;
    }

    __attribute__((target("sse4.2")))
    static const uint8_t *barnabas_crc_triple(
        uint64_t *crc, const uint8_t *data, size_t *size, size_t stride, uint32_t table[4][256])
    {
        uint64_t first = *crc;
        while (*size >= 3 * stride) {
            uint64_t second = 0, third = 0;
            const uint8_t *stop = data + stride;
            for (; data < stop; data += 8) {
                first = _mm_crc32_u64(first, barnabas_word(data));
                second = _mm_crc32_u64(second, barnabas_word(data + stride));
                third = _mm_crc32_u64(third, barnabas_word(data + 2 * stride));
            }
            first = barnabas_shift(table, (uint32_t)first) ^ second;
            first = barnabas_shift(table, (uint32_t)first) ^ third;
            data += 2 * stride;
            *size -= 3 * stride;
        }
        *crc = first;
        return data;
    }

    __attribute__((target("sse4.2")))
    static uint32_t barnabas_crc_hardware(uint32_t start, const uint8_t *data, size_t size)
    {
        uint64_t crc = start;
        data = barnabas_crc_triple(&crc, data, &size, BARNABAS_LONG, barnabas_long);
        data = barnabas_crc_triple(&crc, data, &size, BARNABAS_SHORT, barnabas_short);
        for (; size >= 8; size -= 8, data += 8)
            crc = _mm_crc32_u64(crc, barnabas_word(data));
        for (; size; size--, data++)
            crc = _mm_crc32_u8((uint32_t)crc, *data);
        return (uint32_t)crc;
    }
    #else
    #define barnabas_crc_hardware barnabas_crc_portable
    #endif
    """
    void barnabas_prepare()
    int barnabas_hardware
    uint32_t barnabas_crc_hardware(uint32_t crc, const uint8_t* data, size_t size) nogil
    uint32_t barnabas_crc_portable(uint32_t crc, const uint8_t* data, size_t size) nogil

barnabas_prepare()


cdef uint32_t checksum(const uint8_t* data, size_t size, uint32_t value) noexcept nogil:
    """Return the CRC-32C of data, continued from `value`."""
    value = ~value
    if barnabas_hardware:
        return ~barnabas_crc_hardware(value, data, size)
    return ~barnabas_crc_portable(value, data, size)


def crc32c(data, uint32_t value=0, /):
    """Return the CRC-32C of data, continued from `value`, the CRC of what came before."""
    cdef Py_buffer view
    cdef uint32_t crc
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    if view.len >= RELEASE_FROM:
        with nogil:
            crc = checksum(<const uint8_t*>view.buf, view.len, value)
    else:
        crc = checksum(<const uint8_t*>view.buf, view.len, value)
    PyBuffer_Release(&view)
    return crc


def crc32c_portable(data, uint32_t value=0, /):
    """Return the same by tables alone, as on machines without the instruction; for tests."""
    cdef Py_buffer view
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    cdef uint32_t crc = ~barnabas_crc_portable(~value, <const uint8_t*>view.buf, view.len)
    PyBuffer_Release(&view)
    return crc

"""Reading and writing primitives at C speed, for the generated codecs in `hot.pyx`.

A Reader never looks past its end: what does not fit raises IndexError, and the Python twin then
words the complaint. Objects are filled and read through the offsets of their slots, which is only
right for objects of exactly the declared class: `checked` sees to that before an object is read.
"""

from cpython.buffer cimport (
    PyBUF_SIMPLE, PyBuffer_Release, PyObject_CheckBuffer, PyObject_GetBuffer,
)
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.long cimport PyLong_AsLongLong
from cpython.mem cimport PyMem_Free, PyMem_Realloc
from cpython.number cimport PyNumber_Index as index
from cpython.object cimport PyObject, Py_TYPE
from cpython.ref cimport Py_INCREF, Py_XDECREF
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memmove


cdef extern from *:
    """
    #include "structmember.h"

    static inline Py_ssize_t barnabas_slot_offset(PyObject *descriptor) {
        if (!Py_IS_TYPE(descriptor, &PyMemberDescr_Type)) {
            PyErr_SetString(PyExc_TypeError, "not a slot");
            return -1;
        }
        return ((PyMemberDescrObject *)descriptor)->d_member->offset;
    }

    static inline PyObject *barnabas_new(PyTypeObject *cls) {
        return cls->tp_alloc(cls, 0);
    }

    #define BARNABAS_SLOT(object, offset) (*(PyObject **)((char *)(object) + (offset)))
    #define BARNABAS_SET_SLOT(object, offset, value) (BARNABAS_SLOT(object, offset) = (value))
    """
    Py_ssize_t slot_offset "barnabas_slot_offset" (object descriptor) except -1
    object new "barnabas_new" (type cls)
    PyObject* slot "BARNABAS_SLOT" (PyObject* o, Py_ssize_t offset)
    void set_slot "BARNABAS_SET_SLOT" (PyObject* o, Py_ssize_t offset, PyObject* value)
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size) except NULL


# The longest records that are copied into the bytes around them (longer ones stay as they are), and
# the size at which what was written is handed over: larger buffers cost page faults every time.
cdef enum:
    COPIED_RECORDS_MAX = 512
    PIECE_MAX = 32768


cdef struct Reader:
    const uint8_t* data
    Py_ssize_t position
    Py_ssize_t end
    bint flexible


cdef struct Writer:
    uint8_t* data
    Py_ssize_t size
    Py_ssize_t capacity
    bint flexible


# --- objects -------------------------------------------------------------------------------------

cdef inline void put(object target, Py_ssize_t offset, object value) noexcept:
    """Fill a slot that is still empty."""
    Py_INCREF(value)
    set_slot(<PyObject*>target, offset, <PyObject*>value)


cdef inline void replace(object target, Py_ssize_t offset, object value) noexcept:
    """Fill a slot that holds something."""
    cdef PyObject* old = slot(<PyObject*>target, offset)
    put(target, offset, value)
    Py_XDECREF(old)


cdef inline object get(object source, Py_ssize_t offset):
    cdef PyObject* value = slot(<PyObject*>source, offset)
    if value is NULL:
        raise AttributeError("a field was deleted")
    return <object>value


cdef inline int checked(object value, type cls) except -1:
    if <PyObject*>Py_TYPE(value) is not <PyObject*>cls:
        raise TypeError("an object of another class")
    return 0


# --- reading -------------------------------------------------------------------------------------

cdef inline const uint8_t* take(Reader* r, Py_ssize_t size) except NULL:
    """Return where the next bytes are, and step over them."""
    cdef const uint8_t* start = r.data + r.position
    if size < 0 or r.end - r.position < size:
        raise IndexError
    r.position += size
    return start


cdef inline int8_t read_int8(Reader* r) except? -1:
    return <int8_t>take(r, 1)[0]


cdef inline object read_bool(Reader* r):
    return take(r, 1)[0] != 0


cdef inline int16_t read_int16(Reader* r) except? -1:
    cdef const uint8_t* b = take(r, 2)
    return <int16_t>((b[0] << 8) | b[1])


cdef inline int32_t read_int32(Reader* r) except? -1:
    cdef const uint8_t* b = take(r, 4)
    return <int32_t>((<uint32_t>b[0] << 24) | (<uint32_t>b[1] << 16) | (<uint32_t>b[2] << 8) | b[3])


cdef inline int64_t read_int64(Reader* r) except? -1:
    cdef const uint8_t* b = take(r, 8)
    cdef uint64_t value = 0
    cdef int i
    for i in range(8):
        value = (value << 8) | b[i]
    return <int64_t>value


cdef inline bytes read_uuid(Reader* r):
    return PyBytes_FromStringAndSize(<const char*>take(r, 16), 16)


cdef inline int64_t read_uvarint(Reader* r) except -1:
    cdef int64_t value = 0
    cdef int shift = 0
    cdef uint8_t byte
    while shift <= 28:
        byte = take(r, 1)[0]
        value |= <int64_t>(byte & 0x7F) << shift
        if byte < 128:
            if value > 0xFFFFFFFF:
                break
            return value
        shift += 7
    raise IndexError


cdef inline int64_t read_length(Reader* r, bint short, bint nullable) except? -1:
    """Return a length or count; -1 stands for null, where that is allowed."""
    cdef int64_t length
    if r.flexible:
        length = read_uvarint(r) - 1
    elif short:
        length = read_int16(r)
    else:
        length = read_int32(r)
    if length < (-1 if nullable else 0):
        raise IndexError
    return length


cdef inline int64_t read_count(Reader* r, bint nullable, Py_ssize_t smallest) except? -1:
    """Return the count of an array whose elements have at least some bytes."""
    cdef int64_t count = read_length(r, False, nullable)
    if count > (r.end - r.position) // smallest:
        raise IndexError
    return count


cdef inline object read_string(Reader* r, bint nullable):
    cdef int64_t size = read_length(r, True, nullable)
    if size < 0:
        return None
    return PyUnicode_DecodeUTF8(<const char*>take(r, size), size, NULL)


cdef inline object read_records(Reader* r, object view, bint nullable):
    cdef Py_ssize_t size = read_length(r, False, nullable)
    cdef Py_ssize_t start = r.position
    if size < 0:
        return None
    take(r, size)
    return view[start:start + size]


cdef inline int skip_tags(Reader* r) except -1:
    """Step over a tagged section of which nothing is known."""
    cdef int64_t count = read_uvarint(r)
    cdef int64_t last = -1
    cdef int64_t tag
    while count > 0:
        tag = read_uvarint(r)
        if tag <= last:
            raise IndexError
        last = tag
        take(r, read_uvarint(r))
        count -= 1
    return 0


# --- writing -------------------------------------------------------------------------------------

cdef inline uint8_t* room(Writer* w, Py_ssize_t size) except NULL:
    """Return where the next bytes go, and count them as written."""
    cdef Py_ssize_t capacity
    cdef uint8_t* grown
    if w.size + size > w.capacity:
        capacity = max(2 * w.capacity, w.size + size, 256)
        grown = <uint8_t*>PyMem_Realloc(w.data, capacity)
        if grown is NULL:
            raise MemoryError
        w.data = grown
        w.capacity = capacity
    w.size += size
    return w.data + w.size - size


cdef inline int append_int8(Writer* w, int8_t value) except -1:
    room(w, 1)[0] = <uint8_t>value
    return 0


cdef inline int write_bool(Writer* w, object value) except -1:
    room(w, 1)[0] = 1 if value else 0
    return 0


cdef inline int append_int16(Writer* w, int16_t value) except -1:
    cdef uint8_t* b = room(w, 2)
    b[0] = <uint8_t>((value >> 8) & 0xFF)
    b[1] = <uint8_t>(value & 0xFF)
    return 0


cdef inline int append_int32(Writer* w, int32_t value) except -1:
    cdef uint8_t* b = room(w, 4)
    cdef uint32_t bits = <uint32_t>value
    b[0] = <uint8_t>(bits >> 24)
    b[1] = <uint8_t>((bits >> 16) & 0xFF)
    b[2] = <uint8_t>((bits >> 8) & 0xFF)
    b[3] = <uint8_t>(bits & 0xFF)
    return 0


cdef inline int append_int64(Writer* w, int64_t value) except -1:
    cdef uint8_t* b = room(w, 8)
    cdef uint64_t bits = <uint64_t>value
    cdef int i
    for i in range(7, -1, -1):
        b[i] = <uint8_t>(bits & 0xFF)
        bits >>= 8
    return 0


cdef inline int64_t whole(object value, int64_t most) except? -1:
    """Return an integer that fits; unlike Cython's own conversion, refuse floats."""
    cdef int64_t number = PyLong_AsLongLong(value if isinstance(value, int) else index(value))
    if number > most or number < -most - 1:
        raise OverflowError
    return number


cdef inline int write_int8(Writer* w, object value) except -1:
    return append_int8(w, <int8_t>whole(value, 0x7F))


cdef inline int write_int16(Writer* w, object value) except -1:
    return append_int16(w, <int16_t>whole(value, 0x7FFF))


cdef inline int write_int32(Writer* w, object value) except -1:
    return append_int32(w, <int32_t>whole(value, 0x7FFFFFFF))


cdef inline int write_int64(Writer* w, object value) except -1:
    return append_int64(w, whole(value, 0x7FFFFFFFFFFFFFFF))


cdef inline int write_uuid(Writer* w, object value) except -1:
    cdef bytes raw
    if not isinstance(value, (bytes, bytearray)) or len(value) != 16:
        raise ValueError("a uuid has 16 bytes")
    raw = bytes(value)
    memcpy(room(w, 16), <const char*>raw, 16)
    return 0


cdef inline int write_uvarint(Writer* w, uint64_t value) except -1:
    while value > 127:
        room(w, 1)[0] = <uint8_t>((value & 0x7F) | 0x80)
        value >>= 7
    room(w, 1)[0] = <uint8_t>value
    return 0


cdef inline int write_length(Writer* w, Py_ssize_t length, bint short) except -1:
    """Write a length or count; -1 stands for null."""
    if w.flexible:
        write_uvarint(w, length + 1)
    elif short:
        if length > 0x7FFF:
            raise OverflowError
        append_int16(w, <int16_t>length)
    else:
        if length > 0x7FFFFFFF:
            raise OverflowError
        append_int32(w, <int32_t>length)
    return 0


cdef inline int write_string(Writer* w, object value, bint nullable) except -1:
    cdef Py_ssize_t size
    cdef const char* text
    if value is None and nullable:
        return write_length(w, -1, True)
    if not isinstance(value, str):
        raise TypeError
    text = PyUnicode_AsUTF8AndSize(value, &size)
    write_length(w, size, True)
    memcpy(room(w, size), text, size)
    return 0


cdef inline int write_records(Writer* w, list parts, object value, bint nullable) except -1:
    """Write records: short ones here, others as a piece of their own."""
    cdef Py_buffer view
    cdef Py_ssize_t size
    if value is None and nullable:
        return write_length(w, -1, False)
    size = len(value)
    write_length(w, size, False)
    if size > COPIED_RECORDS_MAX or not PyObject_CheckBuffer(value):
        flush(w, parts)
        parts.append(value)
        return 0
    if w.size + size > PIECE_MAX:
        flush(w, parts)
    PyObject_GetBuffer(value, &view, PyBUF_SIMPLE)
    try:
        if view.len != size:
            raise TypeError("records are counted in bytes")
        memcpy(room(w, size), view.buf, size)
    finally:
        PyBuffer_Release(&view)
    return 0


cdef inline int flush(Writer* w, list parts) except -1:
    """Hand over what was written so far as one piece."""
    if w.size:
        parts.append(PyBytes_FromStringAndSize(<const char*>w.data, w.size))
        w.size = 0
    return 0


cdef inline int close_tag(Writer* w, int tag, Py_ssize_t start) except -1:
    """Put tag and size before the content of a tagged field, which starts where it was opened."""
    cdef Py_ssize_t size = w.size - start
    cdef Py_ssize_t head
    write_uvarint(w, tag)
    write_uvarint(w, size)
    head = w.size - start - size
    # The head was written behind the content; rotate it to the front. Tags are few and small.
    cdef uint8_t kept[10]
    memcpy(kept, w.data + start + size, head)
    memmove(w.data + start + head, w.data + start, size)
    memcpy(w.data + start, kept, head)
    return 0

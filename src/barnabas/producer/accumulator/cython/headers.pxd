"""The headers of a record as `append` takes them: a list of (str, bytes or None)."""

from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_GET_SIZE
from cpython.bytes cimport PyBytes_CheckExact
from libc.stdint cimport int64_t

from barnabas.kernels.cython.builder cimport encode_headers
from barnabas.kernels.cython.fields cimport Field, borrow, give_back


cdef struct Headers:
    int64_t count
    const char* data  # as they stand in the record; belongs to what `read_headers` returns
    Py_ssize_t size
    int64_t shown_size  # what the record's metadata has: names and contents alone


cdef inline void no_headers(Headers* head) noexcept:
    head.count = head.size = 0
    head.shown_size = -1
    head.data = NULL


cdef inline bytearray read_headers(object headers, Headers* head):
    """Return headers as they stand in a record, or None if they are no pairs."""
    cdef bytearray encoded
    cdef tuple pairs
    cdef Field field
    if not isinstance(headers, (list, tuple)):
        return None
    pairs = tuple(headers)
    head.shown_size = 0 if pairs else -1
    for pair in pairs:
        if not (isinstance(pair, (tuple, list)) and len(pair) == 2):
            return None
        if not (isinstance(pair[0], str) and is_plain(pair[1])):
            return None
        borrow(pair[1], &field)
        head.shown_size += len((<str>pair[0]).encode("utf-8")) + max(field.size, 0)
        give_back(&field)
    encoded = encode_headers(pairs)
    head.count = len(pairs)
    head.size = PyByteArray_GET_SIZE(encoded)
    head.data = PyByteArray_AS_STRING(encoded)
    return encoded


cdef inline bint is_plain(object field):
    """Return whether a key, a value or the content of a header can be taken as it is."""
    return (
        field is None
        or PyBytes_CheckExact(field)
        or isinstance(field, (bytes, bytearray, memoryview))
    )

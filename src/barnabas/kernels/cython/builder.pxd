cdef bytearray encode_headers(tuple headers)

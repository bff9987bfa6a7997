from libc.stdint cimport int32_t, int64_t


cdef class ConsumerRecord:
    cdef readonly str topic
    cdef readonly int32_t partition
    cdef readonly int32_t leader_epoch
    cdef readonly int64_t offset
    cdef readonly int64_t timestamp
    cdef readonly int32_t timestamp_type
    cdef readonly int32_t serialized_key_size
    cdef readonly int32_t serialized_value_size
    cdef readonly int32_t serialized_header_size
    cdef readonly object key
    cdef readonly object value
    cdef readonly object checksum
    cdef tuple pairs

    cdef tuple astuple(self)

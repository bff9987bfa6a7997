"""The numbers of `kernels/batch_header.py` for the compiled kernels; a test compares them."""

cdef enum:
    BASE_OFFSET_AT = 0
    LENGTH_AT = 8
    PREFIX_SIZE = 12
    LEADER_EPOCH_AT = 12
    MAGIC_AT = 16
    CRC_AT = 17
    ATTRIBUTES_AT = 21
    LAST_OFFSET_DELTA_AT = 23
    BASE_TIMESTAMP_AT = 27
    MAX_TIMESTAMP_AT = 35
    PRODUCER_ID_AT = 43
    PRODUCER_EPOCH_AT = 51
    BASE_SEQUENCE_AT = 53
    COUNT_AT = 57
    HEADER_SIZE = 61
    BATCH_MAGIC = 2
    CODEC_MASK = 0x07
    APPEND_TIME_BIT = 0x08
    TRANSACTIONAL_BIT = 0x10
    CONTROL_BIT = 0x20
    DELETE_HORIZON_BIT = 0x40
    SPECIAL_MASK = 0x37

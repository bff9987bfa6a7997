"""A record that a consumer has read; see the twin in `kernels/python/consumer_record.py`."""

cimport cython
from libc.stdint cimport int32_t, int64_t

FIELDS = (
    "topic",
    "partition",
    "leader_epoch",
    "offset",
    "timestamp",
    "timestamp_type",
    "key",
    "value",
    "headers",
    "checksum",
    "serialized_key_size",
    "serialized_value_size",
    "serialized_header_size",
)


@cython.final
@cython.freelist(1024)
cdef class ConsumerRecord:
    """One record that a consumer has read: behaves like a named tuple of its fields."""

    _fields = FIELDS
    __match_args__ = FIELDS

    def __init__(
        self,
        str topic,
        int32_t partition,
        int32_t leader_epoch,
        int64_t offset,
        int64_t timestamp,
        int32_t timestamp_type,
        key,
        value,
        headers=(),
        checksum=None,
        int32_t serialized_key_size=-1,
        int32_t serialized_value_size=-1,
        int32_t serialized_header_size=-1,
    ):
        self.topic = topic
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.offset = offset
        self.timestamp = timestamp
        self.timestamp_type = timestamp_type
        self.key = key
        self.value = value
        self.pairs = tuple(headers)
        self.checksum = checksum
        self.serialized_key_size = serialized_key_size
        self.serialized_value_size = serialized_value_size
        self.serialized_header_size = serialized_header_size

    @property
    def headers(self):
        return list(self.pairs)

    cdef tuple astuple(self):
        return (
            self.topic,
            self.partition,
            self.leader_epoch,
            self.offset,
            self.timestamp,
            self.timestamp_type,
            self.key,
            self.value,
            list(self.pairs),
            self.checksum,
            self.serialized_key_size,
            self.serialized_value_size,
            self.serialized_header_size,
        )

    def _asdict(self):
        """Return the fields by name."""
        return dict(zip(FIELDS, self.astuple(), strict=True))

    def _replace(self, **changes):
        """Return a record with some fields changed."""
        return ConsumerRecord(**{**self._asdict(), **changes})

    def __len__(self):
        return len(FIELDS)

    def __getitem__(self, index):
        return self.astuple()[index]

    def __iter__(self):
        return iter(self.astuple())

    def __eq__(self, other):
        if isinstance(other, ConsumerRecord):
            return self.astuple() == (<ConsumerRecord>other).astuple()
        if isinstance(other, tuple):
            return self.astuple() == other
        return NotImplemented

    def __hash__(self):
        return hash((self.topic, self.partition, self.offset))

    def __repr__(self):
        shown = zip(FIELDS, self.astuple(), strict=True)
        return f"ConsumerRecord({', '.join(f'{name}={value!r}' for name, value in shown)})"

    def __reduce__(self):
        return ConsumerRecord, self.astuple()

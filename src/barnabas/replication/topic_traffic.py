"""What clients write to and read from the partitions of one topic on this broker."""

from __future__ import annotations

PRODUCE_FIELDS = (
    "bytes_in",
    "bytes_rejected",
    "failed_produce",
    "invalid_crc",
    "invalid_magic",
    "invalid_offset",
    "messages_in",
    "no_key",
    "produce_conversions",
    "produce_requests",
)
FETCH_FIELDS = ("bytes_out", "failed_fetch", "fetch_conversions", "fetch_requests")
FIELDS = PRODUCE_FIELDS + FETCH_FIELDS


class TopicTraffic:
    """Plain numbers, which the hot paths increase; each partition of the topic refers to it."""

    __slots__ = FIELDS

    def __init__(self) -> None:
        self.bytes_in = 0
        """Bytes appended, as clients sent them."""
        self.messages_in = 0
        self.produce_requests = 0
        """Appends that were tried: one for each partition of a request."""
        self.failed_produce = 0
        self.bytes_rejected = 0
        """Bytes of batches larger than `max.message.bytes`."""
        self.produce_conversions = 0
        """Records that had to be repacked or came in an old format."""
        self.invalid_magic = 0
        self.invalid_crc = 0
        self.invalid_offset = 0
        self.no_key = 0
        """Records without a key for a compacted topic."""
        self.bytes_out = 0
        """Bytes sent to consumers."""
        self.fetch_requests = 0
        """Reads that were tried: one for each partition of a request."""
        self.failed_fetch = 0
        self.fetch_conversions = 0

    def move(self, fields: tuple[str, ...], to: TopicTraffic) -> None:
        """Add numbers to those of another one, and begin again with zero."""
        for field in fields:
            value = getattr(self, field)
            if value:
                setattr(to, field, getattr(to, field) + value)
                setattr(self, field, 0)

"""How many records a client's request has."""

from __future__ import annotations

from barnabas.model.errors import BarnabasError
from barnabas.records.message_set import scan_entries
from barnabas.wire.codec import decode
from barnabas.wire.header import decode_request_header
from barnabas.wire.messages.produce import ProduceRequest

_PRODUCE = b"\x00\x00"


def sent_records(request: bytes) -> int:
    """Return the number of records in a request, without its size; 0 unless it is a Produce.

    Compressed messages of the formats before batches count as one. What cannot be read counts as
    nothing: to reject it is the broker's work.
    """
    if not request.startswith(_PRODUCE):
        return 0
    try:
        header, position = decode_request_header(request)
        produce, _ = decode(ProduceRequest, request, header.api_version, position)
        return sum(
            max(entry.count, 1)
            for topic in produce.topic_data
            for partition in topic.partition_data
            for entry in scan_entries(partition.records or b"")
        )
    except BarnabasError:
        return 0

"""Reads for clients that know only the old message formats."""

from __future__ import annotations

from collections.abc import Callable

from barnabas.kernels import Buffer
from barnabas.log.partition_log import PartitionLog
from barnabas.log.validation import stored_bounds
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.records.legacy import down_convert
from barnabas.records.message_set import scan_entries

CONVERTED_BYTES_MAX = 8 * 1024 * 1024
"""The limit of converted records, which are not compressed: a client fetches the rest next."""


def read_converted(
    log: PartitionLog,
    offset: int,
    end: int,
    limit: int,
    magic: int,
    at_least_one: bool,
    on_converted: Callable[[int], None] = lambda count: None,
) -> Buffer:
    """Read from an offset in an old format; batches with nothing for old readers are skipped.

    What is stored in that format or an older one is returned unchanged, as Kafka does. Raise
    UNSUPPORTED_VERSION if `message.downconversion.enable` forbids it. `on_converted` gets the
    number of records that were converted.
    """
    if not log.options.message_downconversion_enable:
        raise RequestError(ErrorCode.UNSUPPORTED_VERSION)
    position = offset
    while position < end:
        piece = log.read(position, limit, max_offset=end, at_least_one=at_least_one)
        try:
            data = piece.read()
        finally:
            piece.release()
        entries = scan_entries(data)
        if not entries:
            break
        messages = down_convert(
            data,
            magic,
            from_offset=offset,
            size_max=max(limit, CONVERTED_BYTES_MAX),
            bounds=stored_bounds(log.options),
        )
        if messages:
            unchanged = sum(each.magic <= magic for each in entries)
            if unchanged < len(entries):
                on_converted(max(len(scan_entries(messages)) - unchanged, 0))
            return messages
        position = entries[-1].next_offset
    return b""

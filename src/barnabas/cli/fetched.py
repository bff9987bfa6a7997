"""From the bytes of a Fetch answer to the records that a reader may see.

Leaves out transaction markers, records before the wanted offset (a batch is delivered whole),
and, for a reader of committed records, those of aborted transactions. Whatever is left out, the
next offset moves on.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from barnabas.kernels import Buffer, check_batch
from barnabas.records.batch import Record, read_batch, read_headers
from barnabas.records.compression import TooLargeError
from barnabas.records.control import ControlType, read_marker
from barnabas.records.conversion import to_batches

HELD_BYTES_MAX = 16 * 1024 * 1024
_RECORD_BYTES = 200  # of a record beside its key and value


class Fetched(NamedTuple):
    """Records to show, and the offset to fetch from next."""

    records: list[Record]
    next_offset: int


def visible_records(
    data: Buffer,
    offset: int,
    aborted: Iterable[tuple[int, int]] = (),
) -> Fetched:
    """Read whole batches; `aborted` has (producer id, first offset) of aborted transactions.

    Reading ends early when the records become many bytes: the rest is fetched again.
    """
    records: list[Record] = []
    next_offset, held = offset, 0
    starts = sorted(aborted, key=lambda transaction: transaction[1])
    aborting: set[int] = set()
    position = 0
    data = to_batches(data)
    for header in read_headers(data):
        check_batch(data, position)
        while starts and starts[0][1] <= header.last_offset:
            aborting.add(starts.pop(0)[0])
        if header.is_control:
            # Compaction may have emptied the batch: then nothing of the transaction is left.
            for record in read_batch(data, header, position):
                marker = read_marker(record)
                if marker is not None and marker.type is ControlType.ABORT:
                    aborting.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in aborting):
            try:
                for record in read_batch(data, header, position):
                    if record.offset >= offset:
                        records.append(record)
                        next_offset = record.offset + 1
                        held += len(record.key or b"") + len(record.value or b"") + _RECORD_BYTES
                        if held >= HELD_BYTES_MAX:
                            return Fetched(records, next_offset)
            except TooLargeError as failure:
                if records:
                    return Fetched(records, next_offset)
                raise TooLargeError(f"offset {next_offset}: {failure}") from failure
        next_offset = max(next_offset, header.next_offset)
        position += header.size
    return Fetched(records, next_offset)

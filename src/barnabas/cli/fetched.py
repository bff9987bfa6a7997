"""From the bytes of a Fetch answer to the records that a reader may see.

Leaves out transaction markers, records before the wanted offset (a batch is delivered whole),
and, for a reader of committed records, those of aborted transactions. Whatever is left out, the
next offset moves on.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from barnabas.kernels import check_batch
from barnabas.records.batch import Record, read_batch, read_headers
from barnabas.records.control import ControlType, read_marker


class Fetched(NamedTuple):
    """Records to show, and the offset to fetch from next."""

    records: list[Record]
    next_offset: int


def visible_records(
    data: memoryview | bytes,
    offset: int,
    aborted: Iterable[tuple[int, int]] = (),
) -> Fetched:
    """Read whole batches; `aborted` has (producer id, first offset) of aborted transactions."""
    records: list[Record] = []
    next_offset = offset
    starts = sorted(aborted, key=lambda transaction: transaction[1])
    aborting: set[int] = set()
    position = 0
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
            batch = read_batch(data, header, position)
            records += [record for record in batch if record.offset >= offset]
        next_offset = max(next_offset, header.next_offset)
        position += header.size
    return Fetched(records, next_offset)

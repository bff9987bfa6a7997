"""A consumer of a log, as the Java client takes its answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from barnabas.log.consumer_read import read_for_consumer
from barnabas.log.partition_log import PartitionLog
from barnabas.records.batch import Record, read_batch, read_headers

ABORT_KEY = bytes(4)  # of a marker: version 0, type 0


def answers(
    log: PartitionLog,
    start: int,
    max_bytes: Callable[[], int],
    *,
    committed: bool,
) -> Iterator[list[Record]]:
    """Yield the records that each answer gives, from an offset to the end that may be seen."""
    end = log.last_stable_offset if committed else log.high_watermark
    position = start
    while position < end:
        piece, aborted = read_for_consumer(log, position, max_bytes(), end, committed=committed)
        data = piece.read()
        piece.release()
        headers = read_headers(data)
        assert headers, f"no way on from {position}"
        assert headers[-1].last_offset < end
        given: list[Record] = []
        ahead = sorted(aborted, key=lambda each: each.first_offset)
        ongoing: set[int] = set()
        at = 0
        for header in headers:
            batch = data[at : at + header.size]
            at += header.size
            while ahead and ahead[0].first_offset <= header.last_offset:
                ongoing.add(ahead.pop(0).producer_id)
            if header.is_control:
                if header.count and next(read_batch(batch, header)).key == ABORT_KEY:
                    ongoing.discard(header.producer_id)
            elif not (header.is_transactional and header.producer_id in ongoing):
                given += [r for r in read_batch(batch, header) if r.offset >= position]
        position = headers[-1].next_offset
        yield given


def read_all(
    log: PartitionLog, start: int, max_bytes: Callable[[], int], *, committed: bool
) -> list[Record]:
    """Return all records, and hold that no answer but the last was in vain."""
    given = list(answers(log, start, max_bytes, committed=committed))
    in_vain = [number for number, records in enumerate(given) if not records]
    assert in_vain in ([], [len(given) - 1]), "only the end gives nothing"
    return [record for records in given for record in records]

"""A consumer of a log, as clients take their answers."""

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
    remembers: bool = False,
) -> Iterator[list[Record] | None]:
    """Yield the records that each answer gives, from an offset to the end that may be seen.

    None stands for an answer that only ended an aborted transaction. A client may remember
    from answer to answer which ones it was told of, or take each for itself.
    """
    end = log.last_stable_offset if committed else log.high_watermark
    position = start
    ongoing: set[int] = set()
    while position < end:
        piece, aborted = read_for_consumer(log, position, max_bytes(), end, committed=committed)
        data = piece.read()
        piece.release()
        headers = read_headers(data)
        assert headers, f"no way on from {position}"
        assert headers[-1].last_offset < end
        given: list[Record] = []
        ahead = sorted(aborted, key=lambda each: each.first_offset)
        if not remembers:
            ongoing.clear()
        earlier = {each.last_offset for each in aborted if each.first_offset < position}
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
        ends_earlier = any(header.last_offset in earlier for header in headers)
        yield None if not given and ends_earlier else given


def read_all(
    log: PartitionLog,
    start: int,
    max_bytes: Callable[[], int],
    *,
    committed: bool,
    remembers: bool = False,
) -> list[Record]:
    """Return all records, and hold that no answer but the last was in vain."""
    given = list(answers(log, start, max_bytes, committed=committed, remembers=remembers))
    in_vain = [number for number, records in enumerate(given) if records == []]
    assert in_vain in ([], [len(given) - 1]), "only the end gives nothing"
    return [record for records in given for record in records or ()]

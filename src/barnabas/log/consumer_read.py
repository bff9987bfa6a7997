"""What a consumer is given of a log: batches in which there is something for it.

Compaction leaves batches without records, transactions leave markers, and a reader of committed
records skips those of aborted transactions. A response with nothing else advances a client without
giving it a record, and librdkafka takes one of empty batches for a record that is too large. So a
read that begins with such batches continues, into later segments if necessary, and begins at the
first batch with something for the consumer. The end of an aborted transaction counts for a client
that has read its beginning. If nothing follows below the limit, it begins at the last batch: a
client must be able to reach the end. Replicas are not served in this way: they copy every byte.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import TypeAlias

from barnabas.kernels.batch_header import BatchHeader
from barnabas.log.partition_log import PartitionLog
from barnabas.log.slice import Slice
from barnabas.log.transaction_index import AbortedTransaction
from barnabas.model.errors import CorruptRecordError

WALK_BATCHES_MAX = 4096
"""How many batches are skipped before a marker or an aborted batch is returned after all: the loop
is blocked meanwhile. Batches without records do not count, because they must never
be all that is given; compaction leaves few of them."""


ConsumerRead: TypeAlias = tuple[Slice, Sequence[AbortedTransaction]]
"""A slice, and the aborted transactions that its reader must know of."""


def read_for_consumer(
    log: PartitionLog,
    offset: int,
    max_bytes: int,
    max_offset: int,
    *,
    at_least_one: bool = True,
    committed: bool = False,
) -> ConsumerRead:
    """Read as `PartitionLog.read` does, but skip what gives the consumer nothing.

    A reader of committed records gets the aborted transactions, too.
    """
    piece = log.read(offset, max_bytes, max_offset=max_offset, at_least_one=at_least_one)
    aborted = _aborted_in(piece, log, offset) if committed else ()
    if not piece.may_begin_void and not aborted:
        return piece, aborted  # nearly always

    def read(start: int) -> ConsumerRead:
        following = log.read(start, max_bytes, max_offset=max_offset, at_least_one=at_least_one)
        return following, _aborted_in(following, log, start) if committed else ()

    return _begin_with_records(piece, aborted, offset, read)


def _aborted_in(piece: Slice, log: PartitionLog, start: int) -> Sequence[AbortedTransaction]:
    """Return the aborted transactions that a slice may hold records of; on a failure release it."""
    if not piece.size or piece.first_batch_incomplete:
        return ()
    try:
        return log.aborted_transactions(start, log.upper_bound_offset(piece))
    except BaseException:
        piece.release()
        raise


def _begin_with_records(
    piece: Slice,
    aborted: Sequence[AbortedTransaction],
    offset: int,
    read: Callable[[int], ConsumerRead],
) -> ConsumerRead:
    """Return the first slice from here on that begins with something for the consumer."""
    last: int | None = None  # the last offset that was skipped
    walked = 0
    while (piece.may_begin_void or aborted) and not piece.first_batch_incomplete:
        try:
            passed, useful = _skip_useless(piece, aborted, offset)
        except BaseException:
            piece.release()
            raise
        if not passed:
            break
        piece.release()
        if useful is not None:
            return read(useful)
        last = passed[-1].last_offset
        walked += sum(1 for header in passed if header.count)
        if walked >= WALK_BATCHES_MAX and passed[-1].count:
            return read(last)
        piece, aborted = read(last + 1)
    if not piece.size and last is not None:
        return read(last)
    return piece, aborted


def _skip_useless(
    piece: Slice, aborted: Sequence[AbortedTransaction], offset: int
) -> tuple[list[BatchHeader], int | None]:
    """Return the useless batches that a slice begins with, and the last offset of the next one.

    The offset is None if the slice holds no other.
    """
    passed: list[BatchHeader] = []
    ahead = deque(sorted(aborted, key=attrgetter("first_offset")))
    begun: dict[int, AbortedTransaction] = {}  # by producer, the latest that was aborted
    for position, header in piece.headers():
        last_offset = header.last_offset
        while ahead and ahead[0].first_offset <= last_offset:
            transaction = ahead.popleft()
            begun[transaction.producer_id] = transaction
        if header.is_message:
            return passed, last_offset
        ended = begun.get(header.producer_id) if header.is_transactional else None
        if header.is_control:
            # A client that knows of the transaction may wait for its end to forget it.
            useful = (
                ended is not None
                and ended.last_offset == last_offset
                and ended.first_offset < offset
            )
        else:
            useful = (
                header.count > 0
                and (ended is None or header.base_offset > ended.last_offset)
                and (header.base_offset >= offset or _reaches(piece, position, header, offset))
            )
        if useful:
            return passed, last_offset
        passed.append(header)
    return passed, None


def _reaches(piece: Slice, position: int, header: BatchHeader, offset: int) -> bool:
    """Return whether a batch that begins before an offset has a record there or later.

    Its last records may have gone in a compaction, and its last offset stays.
    """
    if header.count > header.last_offset_delta:
        return True  # none went
    try:
        return any(record.offset >= offset for record in piece.read_batch(position, header))
    except CorruptRecordError:
        return True  # the consumer will see it, and say so

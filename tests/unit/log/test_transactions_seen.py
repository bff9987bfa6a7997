"""What a walk over a log knows of transactions: aborted batches, needed markers."""

from barnabas.kernels.batch_header import BatchHeader
from barnabas.log.transaction_index import AbortedTransaction
from barnabas.log.transactions_seen import TransactionsSeen
from barnabas.records.control import ControlType

ABORT, COMMIT = ControlType.ABORT, ControlType.COMMIT


def batch(offset, producer_id, count=1):
    return BatchHeader(offset, 100, 0, 2, 0, 0x10, count - 1, 0, 0, producer_id, 0, 0, count)


def test_batches_between_first_offset_and_marker_are_aborted():
    entry = AbortedTransaction(7, 10, 20, 21)
    seen = TransactionsSeen([entry])
    assert not seen.see_batch(batch(5, 7))
    assert not seen.see_batch(batch(10, 8))
    assert seen.see_batch(batch(9, 7, count=3)), "the offset lies in the batch"
    assert seen.see_marker(batch(20, 7), ABORT) == (True, entry)
    assert not seen.see_batch(batch(21, 7))


def test_a_marker_is_needed_while_a_batch_is_in_front_of_it():
    seen = TransactionsSeen([])
    assert seen.see_marker(batch(1, 7), COMMIT) == (False, None)
    seen.see_batch(batch(2, 7))
    assert seen.see_marker(batch(3, 8), COMMIT) == (False, None)
    assert seen.see_marker(batch(4, 7), COMMIT) == (True, None)
    assert seen.see_marker(batch(5, 7), COMMIT) == (False, None)


def test_an_abort_without_batches_is_not_needed_and_ends_the_transaction():
    entry = AbortedTransaction(7, 1, 4, 5)
    seen = TransactionsSeen([entry])
    assert seen.see_marker(batch(4, 7), ABORT) == (False, entry)
    assert not seen.see_batch(batch(5, 7))


def test_transactions_of_one_producer_follow_each_other():
    first, second = AbortedTransaction(7, 1, 3, 4), AbortedTransaction(7, 9, 12, 13)
    seen = TransactionsSeen([second, first])
    assert seen.see_batch(batch(1, 7))
    assert seen.see_marker(batch(3, 7), ABORT) == (True, first)
    assert not seen.see_batch(batch(5, 7))
    assert seen.see_marker(batch(6, 7), COMMIT) == (True, None)
    assert seen.see_batch(batch(9, 7))
    assert seen.see_marker(batch(12, 7), ABORT) == (True, second)

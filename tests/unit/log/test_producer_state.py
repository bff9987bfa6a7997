"""Who may write what next: duplicates, sequences, epochs, transactions, stable offsets."""

import pytest

from barnabas.kernels.batch_header import BatchHeader
from barnabas.log.producer_state import ProducerStates
from barnabas.log.transaction_index import AbortedTransaction
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError

TRANSACTIONAL, CONTROL = 0x10, 0x30


def header_of(producer=1, epoch=0, sequence=0, count=1, attributes=0, timestamp=1000):
    return BatchHeader(
        base_offset=0,
        size=100,
        leader_epoch=-1,
        magic=2,
        crc=0,
        attributes=attributes,
        last_offset_delta=count - 1,
        base_timestamp=0,
        max_timestamp=timestamp,
        producer_id=producer,
        producer_epoch=epoch,
        base_sequence=sequence,
        count=count,
    )


class Partition:
    """A log reduced to its end offset."""

    def __init__(self):
        self.states, self.end = ProducerStates(), 0

    def send(self, *, sequenced=True, **batch):
        header = header_of(**batch)
        duplicate = self.states.find_duplicate(header)
        if duplicate is not None:
            return duplicate
        self.states.check(header, sequenced=sequenced)
        self.states.append_data(header, self.end)
        self.end += header.count
        return None

    def mark(self, *, committed, producer=1, epoch=0, coordinator_epoch=0):
        header = header_of(producer, epoch, -1, 1, CONTROL)
        self.states.check_marker(header, coordinator_epoch)
        offset, self.end = self.end, self.end + 1
        return self.states.append_marker(
            header, offset, committed=committed, coordinator_epoch=coordinator_epoch
        )


@pytest.fixture
def partition():
    return Partition()


def refused(code):
    return pytest.raises(RequestError, check=lambda failure: failure.code is code)


def test_any_first_sequence_is_taken_of_an_unknown_producer(partition):
    partition.send(sequence=77)
    assert partition.states.get(1).last_sequence == 77


def test_the_last_five_batches_are_recognised_and_older_ones_are_not(partition):
    for sequence in range(0, 14, 2):
        partition.send(sequence=sequence, count=2)
    for sequence in range(4, 14, 2):
        found = partition.send(sequence=sequence, count=2)
        assert (found.first_offset, found.last_offset) == (sequence, sequence + 1)
    with refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
        partition.send(sequence=2, count=2)


def test_a_batch_with_only_one_equal_end_is_no_duplicate(partition):
    partition.send(sequence=0, count=3)
    with refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
        partition.send(sequence=0, count=2)


@pytest.mark.parametrize("sequence", [0, 2, 4, 100])
def test_a_gap_is_refused(partition, sequence):
    partition.send(sequence=0, count=3)
    with refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
        partition.send(sequence=sequence)
    assert partition.send(sequence=3) is None


def test_sequences_wrap_after_two_to_the_31(partition):
    partition.send(sequence=2**31 - 2, count=2)
    partition.send(sequence=0)
    assert partition.states.get(1).last_sequence == 0
    other = Partition()
    other.send(sequence=2**31 - 1, count=3)
    assert other.states.get(1).last_sequence == 1
    assert other.send(sequence=2**31 - 1, count=3).first_offset == 0


def test_a_new_epoch_starts_at_zero_and_forgets_the_old_batches(partition):
    partition.send(sequence=0)
    partition.send(sequence=1)
    with refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
        partition.send(epoch=1, sequence=2)
    assert partition.send(epoch=1, sequence=0) is None
    assert len(partition.states.get(1).batches) == 1


def test_an_old_epoch_is_fenced_even_for_a_duplicate(partition):
    partition.send(sequence=0)
    partition.send(epoch=1, sequence=0)
    with refused(ErrorCode.INVALID_PRODUCER_EPOCH):
        partition.send(epoch=0, sequence=0)


def test_after_a_marker_alone_the_first_sequence_is_zero(partition):
    partition.mark(committed=True, epoch=5)
    with refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
        partition.send(epoch=5, sequence=3)
    with refused(ErrorCode.INVALID_PRODUCER_EPOCH):
        partition.send(epoch=4, sequence=0)
    assert partition.send(epoch=5, sequence=0) is None


def test_a_coordinator_has_no_sequences_but_an_epoch(partition):
    partition.send(sequence=-1, sequenced=False)
    partition.send(sequence=-1, sequenced=False)
    assert partition.end == 2
    partition.send(sequence=-1, epoch=3, sequenced=False)
    with refused(ErrorCode.INVALID_PRODUCER_EPOCH):
        partition.send(sequence=-1, epoch=2, sequenced=False)


def test_a_plain_batch_inside_a_transaction_is_refused(partition):
    partition.send(sequence=0, attributes=TRANSACTIONAL)
    assert partition.states.has_open_transaction(1)
    with refused(ErrorCode.INVALID_TXN_STATE):
        partition.send(sequence=1)
    partition.mark(committed=True)
    assert not partition.states.has_open_transaction(1)
    assert partition.send(sequence=1) is None


def test_markers_are_fenced_by_epoch_and_coordinator(partition):
    partition.mark(committed=True, epoch=2, coordinator_epoch=5)
    with refused(ErrorCode.INVALID_PRODUCER_EPOCH):
        partition.mark(committed=True, epoch=1, coordinator_epoch=9)
    with refused(ErrorCode.TRANSACTION_COORDINATOR_FENCED):
        partition.mark(committed=True, epoch=2, coordinator_epoch=4)
    assert partition.mark(committed=False, epoch=3, coordinator_epoch=5) is None


def test_the_first_unstable_offset_waits_for_markers_to_be_replicated(partition):
    states = partition.states
    assert states.first_unstable_offset is None
    partition.send(producer=9, sequence=0, count=5)
    partition.send(producer=1, sequence=0, attributes=TRANSACTIONAL)
    partition.send(producer=2, sequence=0, attributes=TRANSACTIONAL)
    assert states.first_unstable_offset == 5
    partition.mark(producer=1, committed=True)
    assert states.first_unstable_offset == 5
    states.advance_high_watermark(7)
    assert states.first_unstable_offset == 5
    states.advance_high_watermark(8)
    assert states.first_unstable_offset == 6
    partition.mark(producer=2, committed=True)
    states.advance_high_watermark(9)
    assert states.first_unstable_offset is None


def test_an_abort_names_the_stable_offset_behind_it(partition):
    partition.send(producer=1, sequence=0, attributes=TRANSACTIONAL)
    partition.send(producer=2, sequence=0, attributes=TRANSACTIONAL)
    assert partition.mark(producer=2, committed=False) == AbortedTransaction(2, 1, 2, 0)
    assert partition.mark(producer=1, committed=False) == AbortedTransaction(1, 0, 3, 4)
    assert partition.mark(producer=1, committed=False) is None


def test_idle_producers_expire_but_open_transactions_do_not(partition):
    partition.send(producer=1, sequence=0, timestamp=1000)
    partition.send(producer=2, sequence=0, timestamp=1000, attributes=TRANSACTIONAL)
    partition.send(producer=3, sequence=0, timestamp=5000)
    assert partition.states.expire(6000, 5000) == 1
    assert [entry.producer_id for entry in partition.states] == [2, 3]
    assert len(partition.states) == 2

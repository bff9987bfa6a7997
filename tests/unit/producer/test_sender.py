"""The sender: when batches are ready, what is drained, what answers and losses lead to."""

from __future__ import annotations

import pytest
from tests.unit.producer.world import ME, NOW, World

from barnabas.client.errors import ConnectionLostError, KafkaTimeoutError, ProducerClosed
from barnabas.errors import (
    InvalidRecordError,
    MessageSizeTooLargeError,
    OutOfOrderSequenceNumberError,
)
from barnabas.model.error_codes import ErrorCode
from barnabas.producer.batch import Packing
from barnabas.producer.identity import EPOCH_MAX, NOBODY, Identity
from barnabas.producer.sender import NEVER_MS
from barnabas.wire.messages.produce import BatchIndexAndErrorMessage

LOST = ConnectionLostError("connection to 127.0.0.1:1 was lost")


def test_without_lingering_a_batch_is_ready_at_once() -> None:
    world = World()
    world.send()
    world.send()
    [batch] = world.drain()
    assert (batch.records.count, batch.sequence, batch.identity) == (2, 0, ME)
    assert world.drain() == []


def test_a_lingering_batch_waits_for_more_until_its_time_or_its_size() -> None:
    world = World(linger_ms=50)
    world.send()
    world.sender.collect(NOW)
    found = world.sender.ready(NOW)
    assert found.nodes == {}
    assert found.next_ms == NOW + 50
    world.now_ms = NOW + 49
    world.send()
    assert world.drain() == []
    world.now_ms = NOW + 50
    assert [batch.records.count for batch in world.drain()] == [2]
    world.send_batch()
    world.send()
    assert [batch.records.count for batch in world.drain()] == [1]
    assert world.drain() == []


def test_a_flush_does_not_linger() -> None:
    world = World(linger_ms=50)
    world.send()
    world.sender.flushing += 1
    assert len(world.drain()) == 1


def test_one_request_has_one_batch_of_each_partition_in_turns() -> None:
    world = World(partitions=3, request_size_max=1500)
    for partition in (0, 0, 1, 2):
        world.send_batch(partition)
    first = world.drain()
    second = world.drain()
    assert len(first) == 2
    assert len({batch.partition for batch in [*first, *second]}) == 3
    assert [b.sequence for b in [*first, *second] if b.partition.partition == 0] == [0, 1]


def test_partitions_without_a_leader_are_told() -> None:
    world = World()
    del world.leaders[0]
    world.send()
    world.sender.collect(NOW)
    found = world.sender.ready(NOW)
    assert found.leaderless
    assert found.nodes == {}


def test_an_idempotent_producer_without_an_id_sends_nothing() -> None:
    world = World()
    world.sender.identity = NOBODY
    world.send()
    assert world.drain() == []
    world.sender.become(ME)
    assert len(world.drain()) == 1


def test_answers_reach_the_futures() -> None:
    world = World()
    future = world.send()
    [batch] = world.drain()
    world.settle(batch, 0, 77)
    assert future.get(0).offset == 77
    assert world.sender.ready(NOW).next_ms == NEVER_MS
    assert not world.sender.active


def test_a_repeated_batch_counts_as_written() -> None:
    world = World()
    future = world.send()
    [batch] = world.drain()
    world.settle(batch, ErrorCode.DUPLICATE_SEQUENCE_NUMBER, -1)
    assert future.succeeded()


def test_passing_failures_are_retried_after_a_growing_pause_with_the_same_number() -> None:
    world = World()
    future = world.send()
    [batch] = world.drain()
    world.settle(batch, ErrorCode.NOT_ENOUGH_REPLICAS)
    assert world.drain() == []
    assert world.sender.ready(world.now_ms).next_ms == NOW + 100
    world.now_ms = NOW + 100
    assert world.drain() == [batch]
    world.sender.lost(batch, LOST, world.now_ms)
    world.now_ms += 199
    assert world.drain() == []
    world.now_ms += 1
    assert world.drain() == [batch]
    assert (batch.sequence, batch.attempts) == (0, 3)
    world.settle(batch)
    assert future.succeeded()


def test_retries_can_be_limited() -> None:
    world = World(retries_max=1)
    future = world.send()
    [batch] = world.drain()
    world.sender.lost(batch, LOST, world.now_ms)
    world.now_ms += 100
    assert world.drain() == [batch]
    world.sender.lost(batch, LOST, world.now_ms)
    assert future.exception is LOST


def test_failures_for_good_name_partition_broker_and_time() -> None:
    world = World()
    futures = [world.send(), world.send()]
    [batch] = world.drain()
    world.now_ms += 12
    world.settle(
        batch,
        ErrorCode.INVALID_RECORD,
        error_message="bad",
        record_errors=[
            BatchIndexAndErrorMessage(batch_index=1, batch_index_error_message="no key")
        ],
        broker=" on broker 1 (h:9092)",
    )
    assert isinstance(futures[0].exception, InvalidRecordError)
    assert str(futures[0].exception) == "t-0 on broker 1 (h:9092): bad (12 ms after send)"
    assert str(futures[1].exception) == "t-0 on broker 1 (h:9092): bad: record 1: no key"


def test_what_failed_goes_before_what_came_later() -> None:
    world = World()
    for _ in range(4):
        world.send_batch()
    batches = [world.drain()[0] for _ in range(3)]
    for batch in (batches[2], batches[0], batches[1]):
        world.sender.lost(batch, LOST, world.now_ms)
    world.now_ms += 1000
    again = [world.drain()[0] for _ in range(4)]
    assert again[:3] == batches
    assert [batch.sequence for batch in again] == [0, 1, 2, 3]


def test_with_one_request_in_flight_a_partition_waits_for_its_answer() -> None:
    world = World(in_order=True, idempotent=False)
    world.send_batch()
    world.send_batch()
    [first] = world.drain()
    assert world.drain() == []
    world.settle(first)
    [second] = world.drain()
    assert second.sequence == -1


def test_a_batch_that_is_too_large_is_halved_and_keeps_its_numbers() -> None:
    world = World()
    futures = [world.send(bytes([n]) * 30) for n in range(5)]
    later = world.send_batch()
    [batch] = world.drain()
    [following] = world.drain()
    world.settle(batch, ErrorCode.MESSAGE_TOO_LARGE)
    world.settle(following, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    world.now_ms += 1000
    parts = [world.drain()[0] for _ in range(3)]
    assert [(part.sequence, part.records.count) for part in parts] == [(0, 3), (3, 2), (5, 1)]
    assert parts[2] is following
    world.settle(parts[0], 0, 10)
    world.settle(parts[1], 0, 13)
    world.settle(parts[2], 0, 15)
    assert [future.value.offset for future in [*futures, later]] == [10, 11, 12, 13, 14, 15]
    assert world.sender.counts.splits == 1


def test_a_single_record_that_is_too_large_is_given_up() -> None:
    world = World()
    future = world.send()
    [batch] = world.drain()
    world.settle(batch, ErrorCode.MESSAGE_TOO_LARGE)
    assert isinstance(future.exception, MessageSizeTooLargeError)


def test_the_numbers_of_a_refused_batch_are_used_again_if_nobody_came_after() -> None:
    world = World()
    world.send()
    [batch] = world.drain()
    world.settle(batch, ErrorCode.INVALID_RECORD)
    world.send()
    [following] = world.drain()
    assert (following.sequence, following.identity) == (0, ME)


def test_after_a_refused_batch_the_later_ones_begin_a_new_epoch_once_all_have_landed() -> None:
    world = World()
    futures = [world.send_batch() for _ in range(3)]
    first, second, third = (world.drain()[0] for _ in range(3))
    world.settle(first, ErrorCode.INVALID_RECORD)
    assert world.sender.identity == ME
    world.settle(second, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    world.settle(third, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    assert world.sender.identity == Identity(4000, 1)
    world.now_ms += 1000
    again = [world.drain()[0], world.drain()[0]]
    assert again == [second, third]
    assert [(b.sequence, b.identity.epoch) for b in again] == [(0, 1), (1, 1)]
    packed = Packing().pack(second)
    assert int.from_bytes(packed[51:53], "big") == 1
    for batch in again:
        world.settle(batch)
    assert [future.succeeded() for future in futures] == [False, True, True]


def test_other_partitions_keep_their_epoch_until_they_have_their_answers() -> None:
    world = World()
    for partition in (0, 0, 1, 1):
        world.send_batch(partition)
    one = world.drain()
    two = world.drain()
    first, beside = sorted(one, key=lambda batch: batch.partition)
    second = next(batch for batch in two if batch.partition.partition == 0)
    world.settle(first, ErrorCode.INVALID_RECORD)
    world.settle(second, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    assert world.sender.identity.epoch == 1
    world.sender.lost(beside, LOST, world.now_ms)
    world.now_ms += 1000
    again = {batch.partition.partition: batch for batch in world.drain()}
    assert again[1] is beside
    assert (beside.identity.epoch, beside.sequence) == (0, 0)
    assert (again[0].identity.epoch, again[0].sequence) == (1, 0)


def test_a_batch_given_up_in_doubt_is_resolved_by_what_follows() -> None:
    """If it was written after all, the next number is right; no new epoch is needed."""
    world = World(delivery_timeout_ms=1000)
    lost = world.send_batch()
    [batch] = world.drain()
    world.now_ms += 500
    later = world.send_batch()
    [following] = world.drain()
    world.now_ms += 500
    assert world.sender.expire(world.now_ms) == NOW + 1500
    assert isinstance(lost.exception, KafkaTimeoutError)
    world.sender.lost(batch, LOST, world.now_ms)
    world.settle(following)
    assert later.succeeded()
    assert world.sender.identity == ME
    assert world.drain() == []


def test_a_batch_given_up_in_doubt_that_was_not_written_leads_to_a_new_epoch() -> None:
    world = World(delivery_timeout_ms=1000)
    world.send_batch()
    [batch] = world.drain()
    world.now_ms += 500
    later = world.send_batch()
    [following] = world.drain()
    world.now_ms += 500
    world.sender.expire(world.now_ms)
    world.sender.lost(batch, LOST, world.now_ms)
    world.settle(following, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    world.now_ms += 400
    assert world.drain() == [following]
    assert (following.sequence, following.identity.epoch) == (0, 1)
    world.settle(following)
    assert later.succeeded()


def test_a_broker_that_lost_acknowledged_records_is_no_secret() -> None:
    world = World()
    world.send_batch()
    [first] = world.drain()
    world.settle(first)
    future = world.send_batch()
    [second] = world.drain()
    world.settle(second, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    assert isinstance(future.exception, OutOfOrderSequenceNumberError)


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_PRODUCER_ID, ErrorCode.INVALID_PRODUCER_EPOCH])
def test_a_producer_that_brokers_forgot_goes_on_under_a_new_epoch(code: ErrorCode) -> None:
    world = World()
    future = world.send()
    [batch] = world.drain()
    world.settle(batch, code)
    world.now_ms += 100
    assert world.drain() == [batch]
    assert (batch.identity.epoch, batch.sequence) == (1, 0)
    world.settle(batch)
    assert future.succeeded()


def test_when_epochs_are_used_up_a_new_id_is_wanted() -> None:
    world = World()
    world.sender.become(Identity(4000, EPOCH_MAX))
    world.send()
    [batch] = world.drain()
    world.settle(batch, ErrorCode.UNKNOWN_PRODUCER_ID)
    assert world.sender.identity_wanted
    world.now_ms += 100
    assert world.drain() == []
    world.sender.become(Identity(4001, 0))
    assert world.drain() == [batch]
    assert batch.identity == Identity(4001, 0)


def test_batches_expire_where_they_wait_and_say_why() -> None:
    world = World(delivery_timeout_ms=1000, linger_ms=5000)
    waiting = world.send_batch(0)
    open_one = world.send(b"v", 1)
    world.sender.collect(NOW)
    del world.leaders[0]
    assert world.sender.expire(NOW) == NOW + 1000
    assert world.sender.expire(NOW + 999) == NOW + 1000
    assert world.sender.expire(NOW + 1000) == NEVER_MS
    assert "1 records for t-0 were not delivered within delivery.timeout.ms=1000" in str(
        waiting.exception
    )
    assert "(1000 ms, 0 attempts)" in str(waiting.exception)
    assert open_one.failed()


def test_a_batch_that_expired_on_its_way_stays_failed() -> None:
    world = World(delivery_timeout_ms=1000, idempotent=False)
    future = world.send()
    [batch] = world.drain()
    world.sender.lost(batch, LOST, world.now_ms)
    world.now_ms += 100
    assert world.drain() == [batch]
    world.now_ms += 900
    world.sender.expire(world.now_ms)
    assert "2 attempts): connection to 127.0.0.1:1 was lost" in str(future.exception)
    world.settle(batch, 0, 5)
    assert future.failed()
    assert world.drain() == []


def test_all_batches_can_be_given_up() -> None:
    world = World()
    futures = [world.send_batch() for _ in range(3)]
    world.drain()
    failure = ProducerClosed("closed")
    assert not world.sender.abandon(failure, in_flight=False)
    assert [future.is_done for future in futures] == [False, True, True]
    assert world.sender.abandon(failure, in_flight=True)
    assert [future.exception for future in futures] == [failure] * 3


def test_unfinished_batches_are_those_without_an_outcome() -> None:
    world = World()
    world.send_batch()
    world.send_batch()
    world.send(b"v", 1)
    [first, *_] = world.drain()
    assert len(world.sender.unfinished()) == 3
    world.settle(first)
    assert len(world.sender.unfinished()) == 2


def test_sequence_numbers_wrap() -> None:
    world = World()
    world.send()
    [batch] = world.drain()
    world.settle(batch)
    world.queue().sequences.next = (1 << 31) - 2
    for _ in range(3):
        world.send(b"v")
    [last] = world.drain()
    assert last.sequence == (1 << 31) - 2
    assert world.queue().sequences.next == 1


def test_until_a_broker_knows_the_producer_one_batch_is_on_its_way() -> None:
    """It takes any number of one that it does not know: a second batch could come before the first.

    As when a leader takes over between the two: the first is refused, the second is not.
    """
    world = World(known=False)
    for _ in range(4):
        world.send_batch()
    [first] = world.drain()
    assert world.drain() == []
    world.settle(first, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    world.now_ms += 1000
    assert world.drain() == [first]
    assert world.drain() == []
    world.settle(first, 0, 0)
    [second], [third] = world.drain(), world.drain()
    assert (second.sequence, third.sequence) == (1, 2)
    world.settle(second, ErrorCode.INVALID_RECORD)
    world.settle(third, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    world.now_ms += 1000
    assert world.drain() == [third], "under the next epoch, which no broker knows"
    assert (third.identity, third.sequence) == (ME.next_epoch(), 0)
    assert world.drain() == []
    world.settle(third, 0, 1)
    assert len(world.drain()) == 1

"""The machine as a whole: a life from loading to unloading, told request by request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from barnabas.config.broker import BrokerOptions
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.transactions.coordinator import EXPIRED_TOGETHER, TransactionCoordinator
from barnabas.transactions.enlisting import add_partitions_response
from barnabas.transactions.records import encode_record
from barnabas.transactions.state import State
from barnabas.transactions.transaction import LAST_EPOCH, Producer, Transaction
from barnabas.transactions.transactional_ids import RETRY_BACKOFF_MS
from barnabas.wire.codec import decode, encode
from barnabas.wire.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from barnabas.wire.messages.add_partitions_to_txn import AddPartitionsToTxnResponse
from barnabas.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

if TYPE_CHECKING:
    from tests.unit.transactions.conftest import Host

S = State
A, B = TopicPartition("a", 0), TopicPartition("b", 1)
OFFSETS = TopicPartition("__consumer_offsets", 12)
WEEK_MS = 604_800_000


def granted(response: Any) -> Producer:
    return Producer(response.producer_id, response.producer_epoch)


# InitProducerId


def test_a_new_id_asks_for_a_producer_id_and_gets_epoch_0(host: Host) -> None:
    request = InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=60_000)
    first = host.coordinator.handle_init_producer_id(request, 4, "token", host.now_ms)
    assert first.needs_producer_id
    assert not first.replies
    assert host.coordinator.get("tx") is None
    assert host.producer() == Producer(4_001, 0)
    assert host.state() == Transaction(4_001, 0, 60_000, host.now_ms)


def test_each_producer_that_takes_the_id_fences_the_one_before(host: Host) -> None:
    old, new = host.producer(), host.producer()
    assert new == Producer(old.producer_id, old.epoch + 1)
    assert host.add(old, A) == [90]
    assert host.add(new, A) == [0]


@pytest.mark.parametrize(("version", "code"), [(3, 47), (4, 90), (5, 90)])
def test_a_wrong_expectation_is_fenced_in_the_words_of_the_version(
    host: Host, version: int, code: int
) -> None:
    producer = host.producer()
    wrong = Producer(producer.producer_id, 9)
    response = host.init(expected=wrong, version=version)
    assert (response.error_code, granted(response)) == (code, Producer(-1, -1))


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"transactional_id": ""}, 42),
        ({"timeout_ms": 0}, 50),
        ({"timeout_ms": -1}, 50),
        ({"timeout_ms": 900_001}, 50),
        ({"expected": Producer(5, -1)}, 42),
        ({"expected": Producer(-1, 5)}, 42),
    ],
)
def test_what_makes_no_sense_is_refused(host: Host, options: dict[str, Any], code: int) -> None:
    assert host.init(**options).error_code == code
    assert host.log == []


def test_the_longest_timeout_is_allowed(host: Host) -> None:
    assert host.init(timeout_ms=900_000).error_code == 0


def test_init_aborts_an_open_transaction_before_it_gives_the_id(host: Host) -> None:
    old = host.producer()
    host.add(old, A, B)
    assert host.init().error_code == 51
    [marker] = host.markers
    assert (marker.committed, marker.producer_epoch) == (False, old.epoch + 1)
    assert host.init().error_code == 51
    assert host.end(old, committed=True).error_code == 90
    host.report()
    assert host.state().state is S.COMPLETE_ABORT
    assert host.producer() == Producer(old.producer_id, old.epoch + 2)


def test_a_producer_without_epochs_gets_a_new_id(host: Host) -> None:
    host.log = [encode_record("tx", Transaction(50, LAST_EPOCH, 60_000, 0))]
    host.started()
    assert host.producer() == Producer(4_001, 0)
    assert host.state().previous_producer_id == 50


# Partitions


def test_partitions_and_offsets_join_the_transaction(host: Host) -> None:
    producer = host.producer()
    host.now_ms = 2_000
    assert host.add(producer, B, A) == [0, 0]
    host.now_ms = 3_000
    assert host.add_offsets(producer, OFFSETS) == 0
    state = host.state()
    assert (state.state, state.start_ms, state.last_update_ms) == (S.ONGOING, 2_000, 3_000)
    assert state.partitions == {A, B, OFFSETS}
    written = len(host.log)
    assert host.add(producer, A) == [0]
    assert host.add_offsets(producer, OFFSETS) == 0
    assert len(host.log) == written


@pytest.mark.parametrize(("version", "code"), [(0, 47), (1, 47), (2, 90), (3, 90)])
def test_an_old_epoch_is_fenced_in_the_words_of_the_version(
    host: Host, version: int, code: int
) -> None:
    old = host.producer()
    host.producer()
    assert host.add(old, A, version=version) == [code]
    assert host.add_offsets(old, OFFSETS, version=version) == code
    assert host.end(old, committed=True, version=version).error_code == code


def test_a_foreign_producer_has_no_mapping(host: Host) -> None:
    producer = host.producer()
    foreign = Producer(producer.producer_id + 1, 0)
    assert host.add(foreign, A) == [49]
    assert host.add_offsets(foreign, OFFSETS) == 49
    assert host.end(foreign, committed=True).error_code == 49
    assert host.add(producer, A, transactional_id="unknown") == [49]
    assert host.add(producer, A, transactional_id="") == [42]


@pytest.mark.parametrize(("version", "absent"), [(4, 48), (5, 120)])
def test_verification_tells_of_each_partition_and_changes_nothing(
    host: Host, version: int, absent: int
) -> None:
    producer = host.producer()
    host.add(producer, A)
    written = len(host.log)

    def verify(producer: Producer, **options: Any) -> list[int]:
        return host.add(producer, A, B, version=version, verify_only=True, **options)

    assert verify(producer) == [0, absent]
    assert verify(Producer(producer.producer_id, 5)) == [90, 90]
    assert verify(Producer(1, 0)) == [49, 49]
    assert verify(producer, transactional_id="unknown") == [49, 49]
    assert verify(producer, transactional_id="") == [42, 42]
    assert len(host.log) == written
    host.end(producer, committed=True)
    assert verify(producer) == [51, 51]
    host.report()
    assert verify(producer) == [absent, absent]


# EndTxn


@pytest.mark.parametrize("committed", [True, False])
def test_an_end_is_answered_when_decided_and_complete_after_its_markers(
    host: Host, committed: bool
) -> None:
    producer = host.producer()
    host.add(producer, A, B)
    assert host.end(producer, committed=committed).error_code == 0
    assert host.state().state is (S.PREPARE_COMMIT if committed else S.PREPARE_ABORT)
    [marker] = host.markers
    assert (marker.producer_id, marker.producer_epoch) == producer
    assert (marker.committed, marker.coordinator_epoch) == (committed, 7)
    assert marker.partitions == (A, B)
    assert host.end(producer, committed=committed).error_code == 51
    assert host.end(producer, committed=not committed).error_code == 48
    assert host.add(producer, A) == [51]
    host.report()
    assert host.state().state is (S.COMPLETE_COMMIT if committed else S.COMPLETE_ABORT)
    assert host.end(producer, committed=committed).error_code == 0
    assert host.end(producer, committed=not committed).error_code == 48
    assert host.add(producer, B) == [0]


def test_every_end_of_version_5_raises_the_epoch(host: Host) -> None:
    first = host.producer()
    host.add(first, A, version=5)
    response = host.end(first, committed=True, version=5)
    second = granted(response)
    assert (response.error_code, second) == (0, Producer(first.producer_id, 1))
    [marker] = host.markers
    assert (marker.producer_epoch, marker.transaction_version) == (1, 2)
    assert host.add(second, A, version=5) == [51]
    host.report()
    again = host.end(first, committed=True, version=5)
    assert (again.error_code, granted(again)) == (0, second)
    assert host.add(second, A, version=5) == [0]
    assert host.end(first, committed=True, version=5).error_code == 90
    # An abort of what never began raises the epoch too, without markers.
    host.end(second, committed=True, version=5)
    host.report()
    third = Producer(first.producer_id, 2)
    assert granted(host.end(third, committed=False, version=5)).epoch == 3
    assert host.markers == []
    assert host.state().state is S.COMPLETE_ABORT


def test_an_end_of_version_5_at_the_last_epoch_moves_to_a_new_id_even_over_a_crash(
    host: Host,
) -> None:
    host.log = [encode_record("tx", Transaction(50, LAST_EPOCH, 60_000, 0))]
    host.started()
    last = Producer(50, LAST_EPOCH)
    host.add(last, A, version=5)
    response = host.end(last, committed=True, version=5)
    new = Producer(4_001, 0)
    assert granted(response) == new
    assert host.add(new, A, version=5) == [51]
    host.started(coordinator_epoch=8)
    [marker] = host.markers
    assert (marker.producer_id, marker.producer_epoch) == (50, 32_767)
    assert (marker.committed, marker.coordinator_epoch) == (True, 8)
    assert host.end(last, committed=True, version=5).error_code == 51
    host.report()
    host.started(coordinator_epoch=9)
    assert granted(host.end(last, committed=True, version=5)) == new
    assert host.add(new, A, version=5) == [0]
    assert host.add(last, A, version=5) == [49]


# One step at a time


def test_while_a_step_is_written_others_come_back_later_and_see_what_was(host: Host) -> None:
    producer = host.producer()
    outcome = host.ask_add(producer, A)
    assert host.state().state is S.EMPTY
    assert host.add(producer, B) == [51]
    assert host.add_offsets(producer, OFFSETS) == 51
    assert host.end(producer, committed=True).error_code == 51
    assert host.init().error_code == 51
    assert host.add(producer, A, version=5, verify_only=True) == [120]
    assert host.producer("other").epoch == 0
    host.carry_out(outcome)
    assert host.state().partitions == {A}


def test_even_the_first_step_of_an_id_is_alone(host: Host) -> None:
    outcome = host.ask_init()
    assert host.init().error_code == 51
    assert host.add(Producer(4_001, 0), A) == [51]
    assert list(host.coordinator.transactions()) == []
    host.carry_out(outcome)
    assert host.state().producer == Producer(4_001, 0)


@pytest.mark.parametrize(("error", "code"), [(19, 15), (20, 15), (7, 15), (6, 16), (10, -1)])
def test_a_failed_append_changes_nothing_and_is_told(host: Host, error: int, code: int) -> None:
    failure = ErrorCode(error)
    assert host.carry_out(host.ask_init(), failure).error_code == code
    assert host.coordinator.get("tx") is None
    producer = host.producer()
    before = host.state()
    added = host.carry_out(host.ask_add(producer, A), failure)
    assert added.topic_results[0].results_by_partition[0].partition_error_code == code
    assert host.state() == before
    host.add(producer, A)
    before = host.state()
    ended = host.carry_out(host.ask_end(producer, committed=True, version=5), failure)
    assert (ended.error_code, granted(ended)) == (code, Producer(-1, -1))
    assert host.carry_out(host.ask_init(), failure).error_code == code
    assert (host.state(), host.markers) == (before, [])
    assert host.end(producer, committed=True).error_code == 0


# Markers


def test_markers_that_failed_are_sent_again_and_only_those(host: Host) -> None:
    producer = host.producer()
    host.add(producer, A, B)
    host.end(producer, committed=True)
    [marker] = host.markers
    host.markers = []
    errors = {A: ErrorCode.NONE, B: ErrorCode.NOT_LEADER_OR_FOLLOWER}
    host.carry_out(host.coordinator.markers_written(marker, errors, host.now_ms))
    assert host.timers == {"tx": host.now_ms + RETRY_BACKOFF_MS}
    assert host.state().state is S.PREPARE_COMMIT
    host.now_ms += RETRY_BACKOFF_MS
    host.carry_out(host.coordinator.on_timer("tx", host.now_ms))
    [again] = host.markers
    assert again.partitions == (B,)
    host.report()
    assert host.state().state is S.COMPLETE_COMMIT


def test_a_late_report_does_not_end_the_next_transaction(host: Host) -> None:
    producer = host.producer()
    host.add(producer, A)
    host.end(producer, committed=True)
    [first] = host.markers
    host.report()
    host.add(producer, A)
    host.end(producer, committed=True)
    late = host.coordinator.markers_written(first, {A: ErrorCode.NONE}, host.now_ms)
    assert late.records == []
    assert host.state().state is S.PREPARE_COMMIT
    host.report()
    assert host.state().state is S.COMPLETE_COMMIT


@pytest.mark.parametrize("code", [ErrorCode(47), ErrorCode(52)])
def test_a_fenced_coordinator_leaves_the_rest_to_its_successor(host: Host, code: ErrorCode) -> None:
    producer = host.producer()
    host.add(producer, A)
    host.end(producer, committed=True)
    host.report(code)
    host.carry_out(host.coordinator.on_timer("tx", host.now_ms))
    assert (host.markers, host.timers) == ([], {})
    assert host.state().state is S.PREPARE_COMMIT
    assert host.init().error_code == 51
    host.started(coordinator_epoch=8)
    assert [marker.coordinator_epoch for marker in host.markers] == [8]
    host.report()
    assert host.state().state is S.COMPLETE_COMMIT


def test_a_completion_that_cannot_be_written_is_tried_again(host: Host) -> None:
    producer = host.producer()
    host.add(producer, A)
    host.end(producer, committed=True)
    [marker] = host.markers
    outcome = host.coordinator.markers_written(marker, {A: ErrorCode.NONE}, host.now_ms)
    host.carry_out(outcome, ErrorCode.NOT_ENOUGH_REPLICAS)
    assert host.state().state is S.PREPARE_COMMIT
    [(key, deadline_ms)] = host.timers.items()
    host.carry_out(host.coordinator.on_timer(key, deadline_ms))
    assert host.state().state is S.COMPLETE_COMMIT
    rest = host.coordinator.on_timer(key, deadline_ms + RETRY_BACKOFF_MS)
    assert (rest.records, rest.markers, rest.timers) == ([], [], [])


# Time


def test_a_transaction_that_is_open_too_long_is_aborted_and_its_producer_fenced(
    host: Host,
) -> None:
    producer = host.producer(timeout_ms=10_000)
    host.add(producer, A)
    start_ms = host.now_ms
    assert host.coordinator.abort_timed_out(start_ms + 10_000) == []
    host.now_ms = start_ms + 10_001
    [outcome] = host.coordinator.abort_timed_out(host.now_ms)
    assert outcome.replies == []
    assert host.coordinator.abort_timed_out(host.now_ms) == []
    host.carry_out(outcome)
    [marker] = host.markers
    assert (marker.committed, marker.producer_epoch) == (False, producer.epoch + 1)
    assert host.end(producer, committed=True).error_code == 90
    assert host.end(producer, committed=True, version=1).error_code == 47
    host.report()
    assert host.state().state is S.COMPLETE_ABORT
    for version in (3, 5):
        assert host.end(producer, committed=True, version=version).error_code == 90
        assert host.end(producer, committed=False, version=version).error_code == 90


def test_ids_that_nobody_uses_are_forgotten(host: Host) -> None:
    old = host.producer("old")
    host.now_ms += 1
    busy = host.producer("busy")
    host.add(busy, A, transactional_id="busy")
    host.producer("young")
    [outcome] = host.coordinator.expire(1_000 + WEEK_MS)
    assert [record.value for record in outcome.records] == [None]
    assert host.init("old").error_code == 51
    host.carry_out(outcome)
    assert host.add(old, A, transactional_id="old") == [49]
    assert [name for name, _ in host.coordinator.transactions()] == ["busy", "young"]
    host.started()
    assert [name for name, _ in host.coordinator.transactions()] == ["busy", "young"]
    assert host.producer("old").producer_id != old.producer_id


def test_many_ids_are_forgotten_in_several_appends(host: Host) -> None:
    transaction = Transaction(1, 0, 1_000, 0)
    count = EXPIRED_TOGETHER + 1
    host.log = [encode_record(f"tx{n}", transaction) for n in range(count)]
    coordinator = host.started()
    outcomes = coordinator.expire(WEEK_MS)
    assert [len(outcome.records) for outcome in outcomes] == [EXPIRED_TOGETHER, 1]
    for outcome in outcomes:
        host.carry_out(outcome)
    assert list(coordinator.transactions()) == []


# Life


@pytest.mark.parametrize("phase", ["loading", "unloaded"])
def test_nothing_is_served_while_loading_or_after_unloading(host: Host, phase: str) -> None:
    host.producer()
    host.add(Producer(4_001, 0), A)
    if phase == "loading":
        host.coordinator = TransactionCoordinator(BrokerOptions.parse({}), 8)
        for record in host.log:
            host.coordinator.replay(record)
    else:
        host.coordinator.unload()
    code = 14 if phase == "loading" else 16
    producer = Producer(4_001, 0)
    assert host.init().error_code == code
    assert host.add(producer, A) == [code]
    assert host.add(producer, A, verify_only=True, version=5) == [code]
    assert host.add_offsets(producer, OFFSETS) == code
    assert host.end(producer, committed=True).error_code == code
    assert host.coordinator.abort_timed_out(WEEK_MS) == []
    assert host.coordinator.expire(2 * WEEK_MS) == []


def test_what_waits_for_its_append_when_unloaded_ends_as_usual(host: Host) -> None:
    producer = host.producer()
    host.add(producer, A)
    outcome = host.ask_end(producer, committed=True)
    timers = host.coordinator.unload().timers
    assert timers == [("tx", None)]
    response = host.carry_out(outcome, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert response.error_code == 16
    assert host.coordinator.get("tx") is None


def test_a_decided_transaction_without_partitions_is_completed_on_loading(host: Host) -> None:
    """Kafka stores such a step; here it is complete at once."""
    decided = Transaction(9, 4, 60_000, 0, S.PREPARE_ABORT, transaction_version=2)
    host.log = [encode_record("tx", decided)]
    host.started()
    assert host.state().state is S.COMPLETE_ABORT


def test_loading_keeps_open_transactions_open(host: Host) -> None:
    producer = host.producer()
    host.add(producer, A)
    before = host.state()
    host.started(coordinator_epoch=8)
    assert host.state() == before
    assert host.coordinator.coordinator_epoch == 8
    assert host.end(producer, committed=True).error_code == 0


# The wire


def responses(host: Host, version: int) -> list[tuple[type, Any]]:
    """Collect an answer of each request, good and bad, as it is given in a version."""
    answers: list[tuple[type, Any]] = []
    good = host.producer()
    for producer in (good, Producer(1, 1)):
        init = InitProducerIdRequest(
            transactional_id="other",
            transaction_timeout_ms=1_000 if producer is good else 0,
        )
        outcome = host.coordinator.handle_init_producer_id(init, version, "t", 0, 99)
        answers.append((InitProducerIdResponse, host.carry_out(outcome)))
        result = host.carry_out(host.ask_add(producer, A, version=version))
        answers.append((AddPartitionsToTxnResponse, add_partitions_response([result], version)))
        offsets = AddOffsetsToTxnRequest(
            transactional_id="tx",
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            group_id="g",
        )
        outcome = host.coordinator.handle_add_offsets(offsets, version, OFFSETS, "t", 0)
        answers.append((AddOffsetsToTxnResponse, host.carry_out(outcome)))
        end = EndTxnRequest(
            transactional_id="tx",
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            committed=True,
        )
        outcome = host.coordinator.handle_end_txn(end, version, "t", 0)
        answers.append((EndTxnResponse, host.carry_out(outcome)))
    return answers


@pytest.mark.parametrize("version", range(InitProducerIdResponse.VERSIONS.last + 1))
def test_every_answer_can_be_sent_in_every_version(host: Host, version: int) -> None:
    codes = []
    for cls, response in responses(host, version):
        if version in cls.VERSIONS:  # type: ignore[attr-defined]
            read, end = decode(cls, encode(response, version), version)
            assert end == len(encode(response, version))
            assert read == response
            codes.append(getattr(read, "error_code", 0))
    assert 0 in codes
    assert {49, 50} & set(codes)

"""What ended transactions still wait for, and those that were aborted by their time-out."""

from __future__ import annotations

from tests.unit.transactions.conftest import Host

from barnabas.config.broker import BrokerOptions
from barnabas.metrics.instruments import Counter
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.transactions.coordinator import TransactionCoordinator
from barnabas.transactions.transactional_ids import MarkerBacklog

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
NOTHING = MarkerBacklog(0, 0, 0)


def test_markers_are_awaited_until_they_are_written(host: Host) -> None:
    producer = host.producer()
    host.add(producer, T0, T1)
    assert host.coordinator.backlog == NOTHING
    host.end(producer, committed=True)
    assert host.coordinator.backlog == MarkerBacklog(2, 0, 0)
    host.report(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert host.coordinator.backlog == MarkerBacklog(2, 2, 0)
    host.carry_out(host.coordinator.on_timer("tx", host.now_ms))
    assert host.coordinator.backlog == MarkerBacklog(2, 0, 0)
    host.report()
    assert host.coordinator.backlog == NOTHING


def test_a_completion_that_could_not_be_written_waits_too(host: Host) -> None:
    producer = host.producer()
    host.add(producer, T0)
    host.end(producer, committed=False)
    (marker,), host.markers = host.markers, []
    done = host.coordinator.markers_written(marker, {T0: ErrorCode.NONE}, host.now_ms)
    assert host.coordinator.backlog == NOTHING, "it is being written"
    host.carry_out(done, ErrorCode.NOT_ENOUGH_REPLICAS)
    assert host.coordinator.backlog == MarkerBacklog(0, 0, 1)
    host.carry_out(host.coordinator.on_timer("tx", host.now_ms))
    assert host.coordinator.backlog == NOTHING


def test_an_abort_by_time_out_is_counted_when_it_is_committed(host: Host) -> None:
    timed_out = Counter()
    host.coordinator = TransactionCoordinator(BrokerOptions.parse({}), 3, timed_out)
    host.coordinator.loaded(host.now_ms)
    producer = host.producer(timeout_ms=1000)
    host.add(producer, T0)
    host.now_ms += 1001
    (failed,) = host.coordinator.abort_timed_out(host.now_ms)
    host.carry_out(failed, ErrorCode.NOT_ENOUGH_REPLICAS)
    assert timed_out.value == 0
    (abort,) = host.coordinator.abort_timed_out(host.now_ms)
    host.carry_out(abort)
    assert timed_out.value == 1
    assert host.coordinator.abort_timed_out(host.now_ms) == []

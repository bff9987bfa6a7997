"""Why transactions were aborted, as their coordinator notes it."""

from __future__ import annotations

from tests.unit.transactions.conftest import Host
from tests.unit.transactions.test_coordinator import A, B


def test_a_transaction_times_out(host: Host) -> None:
    producer = host.producer(timeout_ms=10_000)
    host.add(producer, A, B)
    host.now_ms += 10_001
    [outcome] = host.coordinator.abort_timed_out(host.now_ms)
    [note] = outcome.notes
    assert (note.event, note.subject, note.cause) == (
        "transaction.aborted",
        "transaction:tx",
        "timeout",
    )
    assert note.data == {
        "open_ms": 10_001,
        "timeout_ms": 10_000,
        "partitions": 2,
        "producer_id": producer.producer_id,
        "epoch": producer.epoch,
    }


def test_a_new_producer_fences_the_last(host: Host) -> None:
    producer = host.producer()
    host.add(producer, A)
    [note] = host.ask_init().notes
    assert (note.cause, note.data["epoch"]) == ("fenced", producer.epoch)


def test_a_producer_aborts(host: Host) -> None:
    for version in (3, 5):
        producer = host.producer()
        host.add(producer, A)
        outcome = host.ask_end(producer, committed=False, version=version)
        assert [note.cause for note in outcome.notes] == ["client"]
        host.carry_out(outcome)
        host.report()


def test_a_commit_is_no_news(host: Host) -> None:
    producer = host.producer()
    host.add(producer, A)
    assert host.ask_end(producer, committed=True).notes == ()
    assert host.ask_init("another").notes == ()

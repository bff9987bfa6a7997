"""A fault begins and ends when its mark says so; a plan tells what never happened."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest

from barnabas.model.errors import InvalidValueError
from barnabas.testing.cluster import Cluster
from barnabas.testing.faults import FAULTS, FaultPlan, isolate, kill, partition, slow, stop


class Recorded:
    """Stands for a cluster: notes what is done to it."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.running: list[int] = [1]
        self.records_sent = 7
        self.waiting: list[tuple[int, Callable[[], None], Future[None]]] = []

    def after_records(self, count: int, act: Callable[[], None]) -> Future[None]:
        future: Future[None] = Future()
        self.waiting.append((count, act, future))
        return future

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *arguments, **named: self.calls.append((name, *arguments, *named.values()))


def cluster() -> Any:
    return Recorded()


@pytest.mark.parametrize(
    ("fault", "begin", "end"),
    [
        (kill(0), ("kill", 0), ("start", 0)),
        (stop(0), ("stop", 0), ("start", 0)),
        (isolate(1, clients_only=True), ("isolate", 1, True), ("heal", 1)),
        (partition(0, 2, one_way=True), ("partition", 0, 2, True), ("heal", 0)),
        (slow(50, 1), ("slow", 50, 1), ("slow", 0, 1)),
    ],
)
def test_a_fault_is_what_its_name_says(fault: Any, begin: Any, end: Any) -> None:
    on = cluster()
    fault.begin(on)
    fault.end(on)
    assert on.calls == [begin, end]
    assert fault.name.partition("(")[0] in FAULTS


def test_a_broker_that_the_test_has_started_is_not_started_again() -> None:
    on = cluster()
    kill(1).end(on)
    assert on.calls == []


def test_how_many_brokers_a_fault_needs() -> None:
    assert kill(2).brokers_min == 3
    assert partition(0, 1).brokers_min == 2
    assert slow(5).brokers_min == 1


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: kill(0, after_records=-1), "after_records=-1: must be at least 0"),
        (lambda: kill(0, for_s=-0.5), "for_s=-0.5: must be at least 0"),
        (lambda: kill(-1), "brokers are counted from 0"),
    ],
)
def test_wrong_numbers_are_named(make: Callable[[], object], why: str) -> None:
    with pytest.raises(InvalidValueError, match=why):
        make()


def test_a_plan_begins_at_once_and_tells_what_did_not_happen() -> None:
    on: Any = cluster()
    plan = FaultPlan(on, [isolate(1), kill(0, after_records=100)])
    assert [call[0] for call in on.calls] == ["isolate"]
    assert [count for count, _, _ in on.waiting] == [100]
    assert plan.finish() == [
        "kill(0) did not happen: clients sent 7 records, it waits for 100",
    ]
    on.waiting[0][1]()
    assert [call[0] for call in on.calls] == ["isolate"], "nothing begins after the end"


def test_what_a_fault_raises_comes_out_at_the_end() -> None:
    on: Any = cluster()
    plan = FaultPlan(on, [kill(0, after_records=1)])
    on.waiting[0][2].set_exception(OSError("no such process"))
    with pytest.raises(OSError, match="no such process"):
        plan.finish()


def test_a_fault_of_some_seconds_ends_by_itself() -> None:
    on: Any = cluster()
    plan = FaultPlan(on, [isolate(1, for_s=0)])
    for timer in plan._timers:
        timer.join(30)
    assert [call[0] for call in on.calls] == ["isolate", "heal"]
    assert plan.finish() == []


def test_the_plan_of_a_real_cluster_takes_its_methods() -> None:
    methods = ("kill", "stop", "start", "isolate", "heal", "partition", "slow", "after_records")
    assert all(callable(getattr(Cluster, name)) for name in methods)

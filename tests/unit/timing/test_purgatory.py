"""Delayed operations complete exactly once, whoever comes first, and leave nothing behind."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.timing.purgatory import DelayedOperation, Purgatory
from barnabas.timing.wheel import TimingWheel


class Operation(DelayedOperation):
    """Ready when told so; notes what happens to it."""

    def __init__(self, ready: bool = False, then: Callable[[], object] | None = None) -> None:
        super().__init__()
        self.ready = ready
        self.then = then
        self.events: list[str] = []

    def try_complete(self) -> bool:
        assert "complete" not in self.events, "a completed operation is not tried again"
        return self.ready

    def on_complete(self) -> None:
        self.events.append("complete")
        if self.then is not None:
            self.then()

    def on_expire(self) -> None:
        self.events.append("expire")


@pytest.fixture
def purgatory() -> Purgatory:
    return Purgatory("test", TimingWheel(tick_ms=1, wheel_size=8))


def test_an_operation_that_is_ready_is_answered_at_once(purgatory: Purgatory) -> None:
    operation = Operation(ready=True)
    assert purgatory.watch(operation, ["a"], 100)
    assert operation.events == ["complete"]
    assert len(purgatory) == purgatory.key_count == len(purgatory.wheel) == 0


def test_any_of_its_keys_completes_it_once_and_frees_all(purgatory: Purgatory) -> None:
    operation = Operation()
    assert not purgatory.watch(operation, ["a", "b", "c"], 100)
    assert purgatory.check("b") == 0
    operation.ready = True
    assert purgatory.check("b") == 1
    assert purgatory.check("a") == 0
    assert purgatory.expire(1_000) == 0
    assert operation.events == ["complete"]
    assert len(purgatory) == purgatory.key_count == len(purgatory.wheel) == 0


def test_the_deadline_answers_what_no_key_did(purgatory: Purgatory) -> None:
    operation = Operation()
    purgatory.watch(operation, ["a"], 100)
    assert purgatory.expire(99) == 0
    assert purgatory.expire(100) == 1
    assert operation.events == ["expire", "complete"]
    assert operation.completed
    operation.ready = True
    assert purgatory.check("a") == 0
    assert len(purgatory) == purgatory.key_count == 0


def test_what_waits_can_be_given_up(purgatory: Purgatory) -> None:
    """Each once, whatever its keys; an answer may give up others."""
    first, second = Operation(), Operation()
    first.then = second.complete
    assert not purgatory.watch(first, ["a", "b"], 100)
    assert not purgatory.watch(second, ["b"], None)
    purgatory.give_up()
    assert (first.events, second.events) == (["expire", "complete"], ["complete"])
    assert len(purgatory) == purgatory.key_count == len(purgatory.wheel) == 0


def test_without_a_deadline_it_waits_for_its_keys_alone(purgatory: Purgatory) -> None:
    operation = Operation()
    purgatory.watch(operation, ["a"], None)
    assert purgatory.expire(10**12) == 0
    operation.ready = True
    assert purgatory.check("a") == 1


def test_a_cancelled_operation_is_never_answered(purgatory: Purgatory) -> None:
    operation = Operation()
    purgatory.watch(operation, ["a"], 100)
    assert operation.cancel()
    assert not operation.cancel()
    operation.ready = True
    assert purgatory.check("a") == purgatory.expire(1_000) == 0
    assert operation.events == []
    assert len(purgatory) == purgatory.key_count == len(purgatory.wheel) == 0


def test_complete_answers_without_trying(purgatory: Purgatory) -> None:
    operation = Operation()
    purgatory.watch(operation, ["a"], 100)
    assert operation.complete()
    assert not operation.complete()
    assert operation.events == ["complete"]
    assert purgatory.key_count == 0


def test_a_key_given_twice_counts_once(purgatory: Purgatory) -> None:
    operation = Operation()
    purgatory.watch(operation, ["a", "a"], 100)
    operation.ready = True
    assert purgatory.check("a") == 1
    assert purgatory.key_count == 0


def test_an_answer_that_checks_its_own_and_other_keys(purgatory: Purgatory) -> None:
    """Each is answered once though the checks cross each other."""

    def check_all() -> None:
        for key in "abc":
            purgatory.check(key)

    operations = [Operation(then=check_all) for _ in range(6)]
    for index, operation in enumerate(operations):
        purgatory.watch(operation, ["a", "bc"[index % 2]], 100)
        operation.ready = True
    assert purgatory.check("b") == 6
    assert all(operation.events == ["complete"] for operation in operations)


def test_an_answer_that_cancels_one_that_waits_for_the_same_key(purgatory: Purgatory) -> None:
    """A connection that closes while its neighbour is answered."""
    second = Operation()
    first = Operation(then=second.cancel)
    for operation in (first, second):
        purgatory.watch(operation, ["a"], 100)
        operation.ready = True
    tried: list[str] = []
    second.try_complete = lambda: bool(tried.append("second"))  # type: ignore[method-assign]
    assert purgatory.check("a") == 1
    assert (tried, second.events) == ([], [])


def test_a_long_chain_of_answers_does_not_grow_the_stack(purgatory: Purgatory) -> None:
    """Each answer lets the next request run: as deep as there are connections, were it nested."""
    length = sys.getrecursionlimit() * 3
    operations = []
    for index in range(length):
        operation = Operation(then=lambda key=index + 1: purgatory.check(key))  # type: ignore[misc]
        purgatory.watch(operation, [index], None)
        operation.ready = True
        operations.append(operation)
    assert purgatory.check(0) == length
    assert all(operation.completed for operation in operations)


def test_an_answer_that_fails_does_not_stop_later_checks(purgatory: Purgatory) -> None:
    def fail() -> None:
        purgatory.check("b")
        raise RuntimeError("told to")

    failing, other = Operation(then=fail), Operation()
    purgatory.watch(failing, ["a"], None)
    purgatory.watch(other, ["b"], None)
    failing.ready = other.ready = True
    with pytest.raises(RuntimeError, match="told to"):
        purgatory.check("a")
    purgatory.watch(late := Operation(), ["a"], None)
    late.ready = True
    assert purgatory.check("a") == 2  # and the key that the failed answer asked for
    assert other.events == ["complete"]


def test_an_operation_that_arrives_during_a_check_of_its_key(purgatory: Purgatory) -> None:
    late = Operation()
    first = Operation(then=lambda: purgatory.watch(late, ["a"], 100))
    purgatory.watch(first, ["a"], 100)
    first.ready = True
    assert purgatory.check("a") == 1
    assert len(purgatory) == 1
    late.ready = True
    assert purgatory.check("a") == 1


def test_two_purgatories_share_a_wheel() -> None:
    wheel = TimingWheel()
    produce, fetch = Purgatory("produce", wheel), Purgatory("fetch", wheel)
    operations = [Operation(), Operation()]
    produce.watch(operations[0], ["a"], 10)
    fetch.watch(operations[1], ["a"], 20)
    assert wheel.run(20) == 2
    assert [operation.events for operation in operations] == [["expire", "complete"]] * 2
    assert len(produce) == len(fetch) == 0


def test_many_operations_on_one_key_leave_memory_flat(purgatory: Purgatory) -> None:
    """An idle partition that is fetched over and over, each fetch ending by another of its keys."""
    for index in range(100_000):
        operation = Operation()
        purgatory.watch(operation, ["idle", index], index + 500)
        operation.ready = True
        purgatory.check(index)
    assert len(purgatory) == purgatory.key_count == len(purgatory.wheel) == 0
    assert len(purgatory.wheel._queue) <= 8 * len(purgatory.wheel._levels)


@settings(max_examples=200, deadline=None)
@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(["watch", "ready", "check", "expire", "cancel"]), st.integers(0, 40)
        ),
        max_size=100,
    )
)
def test_whatever_happens_each_operation_is_answered_once_or_cancelled(
    steps: list[tuple[str, int]],
) -> None:
    purgatory = Purgatory("test", TimingWheel(wheel_size=4))
    operations: list[Operation] = []
    cancelled: set[int] = set()
    now_ms = 0
    for step, amount in steps:
        chosen = operations[amount % len(operations)] if operations else None
        if step == "watch":
            operation = Operation(then=lambda key=amount % 5: purgatory.check(key))  # type: ignore[misc]
            operations.append(operation)
            purgatory.watch(operation, [amount % 5, amount % 7], now_ms + amount)
        elif step == "check":
            purgatory.check(amount % 7)
            assert not any(
                operation.ready and not operation.completed and amount % 7 in operation._keys
                for operation in operations
            )
        elif step == "expire":
            now_ms += amount
            purgatory.expire(now_ms)
        elif chosen is not None and step == "ready":
            chosen.ready = True
        elif chosen is not None and chosen.cancel():
            cancelled.add(id(chosen))
        assert len(purgatory) == sum(not operation.completed for operation in operations)
    purgatory.expire(now_ms + 100)
    for operation in operations:
        assert operation.completed
        assert operation.events.count("complete") == (0 if id(operation) in cancelled else 1)
    assert len(purgatory) == purgatory.key_count == 0

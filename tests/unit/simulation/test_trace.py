"""A trace tells runs apart by what happened, and only by that."""

from __future__ import annotations

from barnabas.simulation.trace import TAIL_LENGTH, Trace


def test_the_digest_depends_on_events_their_order_and_their_time():
    now = 0.0
    first, second = Trace(lambda: now), Trace(lambda: now)
    assert first.digest() == second.digest()
    for trace in (first, second):
        trace.note("cut", "a", "b")
        trace.step("a", print)
    assert first.digest() == second.digest()
    assert first.count == 2
    first.note("x")
    first.note("y")
    second.note("y")
    second.note("x")
    assert first.digest() != second.digest()

    early, late = Trace(lambda: 1.0), Trace(lambda: 1.5)
    early.step("a", print)
    late.step("a", print)
    assert early.digest() != late.digest()


def test_the_tail_is_readable_and_bounded():
    trace = Trace(lambda: 2.5)
    for number in range(TAIL_LENGTH + 10):
        trace.note("event", number)
    assert len(trace.tail) == TAIL_LENGTH
    assert trace.tail[-1] == f"2.500000 event {TAIL_LENGTH + 9}"


def test_callbacks_are_named_without_their_address():
    class Callback:
        def __call__(self) -> None: ...

    one, two = Trace(lambda: 0.0), Trace(lambda: 0.0)
    one.step("host", Callback())
    two.step("host", Callback())
    assert one.digest() == two.digest()

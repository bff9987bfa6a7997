"""Failed log-ins make one wait, ever longer."""

from __future__ import annotations

from barnabas.console import failures as module
from barnabas.console.failures import FREE, PAUSE_S_MAX, WINDOW_S, Failures


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_five_are_free_and_then_the_pause_doubles() -> None:
    clock = Clock()
    failures = Failures(clock)
    for _ in range(FREE - 1):
        failures.failed("ada", "h")
        assert failures.wait_s("ada", "h") == 0
    for pause_s in (1, 2, 4, 8):
        failures.failed("ada", "h")
        assert failures.wait_s("ada", "h") == pause_s
        clock.now_s += pause_s
        assert failures.wait_s("ada", "h") <= 0
    for _ in range(20):
        failures.failed("ada", "h")
    assert failures.wait_s("ada", "h") == PAUSE_S_MAX


def test_a_name_waits_on_every_address_and_an_address_with_every_name() -> None:
    failures = Failures(Clock())
    for _ in range(FREE):
        failures.failed("ada", "h1")
    assert failures.wait_s("ada", "h2") > 0
    assert failures.wait_s("eve", "h1") > 0
    assert failures.wait_s("eve", "h2") == 0
    failures.succeeded("ada", "h1")
    assert failures.wait_s("ada", "h2") == 0
    assert failures.wait_s("eve", "h1") > 0, "the address may still be guessing"


def test_they_are_forgotten_after_a_while_and_bounded(monkeypatch: object) -> None:
    clock = Clock()
    failures = Failures(clock)
    for _ in range(FREE - 1):
        failures.failed("ada", "h")
    clock.now_s += WINDOW_S + 1
    failures.failed("ada", "h")
    assert failures.wait_s("ada", "h") == 0
    for number in range(module.TRACKED_MAX + 10):
        failures.failed(f"n{number}", f"h{number}")
    assert len(failures._counts) <= module.TRACKED_MAX

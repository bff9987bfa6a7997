"""The phases of a request that waits: every second is in exactly one of them."""

from __future__ import annotations

from barnabas.broker.network.phases import Phases


def spent(phases: Phases) -> tuple[float, float, float, float]:
    return phases.queue_s, phases.local_s, phases.remote_s, phases.send_s


def test_a_request_that_is_parked_and_answered() -> None:
    phases = Phases(10.0)
    phases.pause(12.0)
    phases.end(17.0)
    assert spent(phases) == (0, 2, 5, 0)


def test_a_request_that_runs_in_steps() -> None:
    """It waits for its handler, runs, waits for others, runs, and for its client to read."""
    phases = Phases(10.0, queue_s=1.0)
    phases.queue(11.0)
    phases.resume(13.0)
    phases.pause(16.0)
    phases.resume(20.0)
    phases.pause(25.0)
    phases.hand_over(25.5)
    phases.end(32.0)
    assert spent(phases) == (3, 9, 4.5, 6.5)


def test_a_request_that_is_answered_while_it_runs() -> None:
    phases = Phases(10.0)
    phases.queue(10.0)
    phases.resume(11.0)
    phases.end(12.0)
    assert spent(phases) == (1, 1, 0, 0)

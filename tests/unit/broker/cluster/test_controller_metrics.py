"""Times of the controller's events, by what it was doing."""

from __future__ import annotations

from barnabas.broker.cluster.controller_metrics import TIMES, ControllerMetrics
from barnabas.controller.states import ControllerState
from barnabas.metrics.catalogue import controller as catalogue
from barnabas.metrics.registry import Registry


def test_every_state_but_idle_has_a_time() -> None:
    assert set(TIMES) == set(ControllerState) - {ControllerState.IDLE}
    assert len(set(TIMES.values())) == len(TIMES)


def test_events_are_counted_and_timed() -> None:
    registry = Registry()
    metrics = ControllerMetrics(registry)
    metrics.handled(ControllerState.BROKER_CHANGE, 0.25)
    metrics.handled(ControllerState.IDLE, 0.5)
    assert metrics.events == 2
    assert registry.value(catalogue.LEADER_ELECTION_TIME) == 1
    assert registry.histogram(catalogue.LEADER_ELECTION_TIME).total == 250_000
    assert sum(registry.value(metric) for metric in TIMES.values()) == 1

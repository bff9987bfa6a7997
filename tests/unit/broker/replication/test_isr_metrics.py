"""ISR changes: counted once, by whoever leads the partition."""

from __future__ import annotations

from barnabas.broker.replication.isr_metrics import IsrMetrics
from barnabas.metrics.catalogue.replication import (
    FAILED_ISR_UPDATES,
    ISR_CHANGES,
    ISR_EXPANDS,
    ISR_SHRINKS,
)
from barnabas.metrics.registry import Registry


def counted(registry: Registry) -> tuple[float, float, float, float, float]:
    return (
        registry.value(ISR_SHRINKS),
        registry.value(ISR_EXPANDS),
        registry.value(FAILED_ISR_UPDATES),
        registry.value(ISR_CHANGES, "shrink", "lag-time"),
        registry.value(ISR_CHANGES, "expand", "caught-up"),
    )


def test_what_the_leader_proposed_has_a_cause() -> None:
    registry = Registry()
    metrics = IsrMetrics(registry)
    metrics.accepted((1, 2, 3), (1, 2))
    metrics.accepted((1, 2), (1, 2, 3))
    metrics.accepted((1, 2, 3), (1, 3, 2))
    assert counted(registry) == (1, 1, 0, 1, 1)


def test_what_the_controller_did_is_in_the_meters_only() -> None:
    registry = Registry()
    metrics = IsrMetrics(registry)
    metrics.assigned((1, 2, 3), (2, 3))
    metrics.assigned((), (2, 3))  # a new partition
    assert counted(registry) == (1, 0, 0, 0, 0)


def test_rejections_are_counted() -> None:
    registry = Registry()
    IsrMetrics(registry).rejected()
    assert counted(registry) == (0, 0, 1, 0, 0)

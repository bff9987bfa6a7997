"""Counts the ISR changes of partitions that are led here."""

from __future__ import annotations

from collections.abc import Collection

from barnabas.metrics.catalogue import replication as catalogue
from barnabas.metrics.registry import Registry

LAG_TIME, CAUGHT_UP = "lag-time", "caught-up"


class IsrMetrics:
    """Kafka's three meters, and the changes that this broker proposed, by cause.

    A change that the controller made is in the meters of the leader that learns of it; its cause is
    known, and counted, at the controller.
    """

    def __init__(self, registry: Registry) -> None:
        self._shrinks = registry.counter(catalogue.ISR_SHRINKS)
        self._expands = registry.counter(catalogue.ISR_EXPANDS)
        self._failed = registry.counter(catalogue.FAILED_ISR_UPDATES)
        self._lagged = registry.counter(catalogue.ISR_CHANGES, "shrink", LAG_TIME)
        self._caught_up = registry.counter(catalogue.ISR_CHANGES, "expand", CAUGHT_UP)

    def accepted(self, before: Collection[int], after: Collection[int]) -> None:
        """Count the effect of an accepted proposal."""
        shrunk, grown = self._count(before, after)
        if shrunk:
            self._lagged.add()
        if grown:
            self._caught_up.add()

    def assigned(self, before: Collection[int], after: Collection[int]) -> None:
        """Count the effect of a role; `before` is empty if this broker knows of no earlier ISR."""
        if before:
            self._count(before, after)

    def rejected(self) -> None:
        """Count a proposal that the controller rejected."""
        self._failed.add()

    def _count(self, before: Collection[int], after: Collection[int]) -> tuple[bool, bool]:
        old, new = set(before), set(after)
        shrunk, grown = bool(old - new), bool(new - old)
        if shrunk:
            self._shrinks.add()
        if grown:
            self._expands.add()
        return shrunk, grown

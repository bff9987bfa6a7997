"""What a controller counts of its decisions, each when it has been written to the tree."""

from __future__ import annotations

from barnabas.controller.causes import Cause
from barnabas.controller.leadership import Leadership
from barnabas.metrics.catalogue.controller import ELECTIONS, UNCLEAN_ELECTIONS
from barnabas.metrics.catalogue.replication import ISR_CHANGES
from barnabas.metrics.registry import Registry


class ControllerCounts:
    """Elections and ISR changes by cause, over all terms of one broker."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._unclean = registry.counter(UNCLEAN_ELECTIONS)

    def led(self, former: Leadership | None, present: Leadership, cause: Cause) -> None:
        """Count what a new leadership changes."""
        if former is None:
            self._elected(Cause.FIRST)
            return
        if present.leader >= 0 and present.leader != former.leader:
            is_clean = present.leader in former.isr
            self._elected(cause if is_clean else Cause.UNCLEAN)
            if not is_clean:
                self._unclean.add()
        if set(former.isr) - set(present.isr):
            self._registry.counter(ISR_CHANGES, "shrink", cause.value).add()
        if set(present.isr) - set(former.isr):
            self._registry.counter(ISR_CHANGES, "expand", cause.value).add()

    def _elected(self, cause: Cause) -> None:
        self._registry.counter(ELECTIONS, cause.value).add()

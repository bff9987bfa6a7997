"""What coordinators of groups count: offsets, and rebalances with their lengths.

One such object serves all machines of a broker. An event is counted when the machine decides it.
"""

from __future__ import annotations

from barnabas.metrics.catalogue.groups import REBALANCE_SECONDS
from barnabas.metrics.instruments import Counter
from barnabas.metrics.registry import Registry


class GroupCounts:
    """The counters; lengths are recorded in milliseconds."""

    __slots__ = (
        "classic_ms",
        "classic_rebalances",
        "consumer_ms",
        "consumer_rebalances",
        "offset_commits",
        "offset_deletions",
        "offset_expirations",
    )

    def __init__(self, registry: Registry) -> None:
        self.offset_commits = Counter()
        self.offset_expirations = Counter()
        self.offset_deletions = Counter()
        self.classic_rebalances = Counter()
        self.consumer_rebalances = Counter()
        self.classic_ms = registry.histogram(REBALANCE_SECONDS, "classic")
        self.consumer_ms = registry.histogram(REBALANCE_SECONDS, "consumer")

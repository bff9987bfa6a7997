"""Gauges of the group coordinators: groups by state, offsets, rates, loads."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Iterator
from typing import NamedTuple

from barnabas.broker.coordinators.groups import GroupHost
from barnabas.broker.monitoring.partition_series import Family
from barnabas.broker.monitoring.recent import Recent
from barnabas.groups.classic_group import ClassicGroup, State
from barnabas.metrics.catalogue import groups as catalogue
from barnabas.metrics.instruments import Counter
from barnabas.metrics.metric import label_text
from barnabas.metrics.registry import Registry
from barnabas.quotas.sampled_rate import SampledRate, Windows

RATE_WINDOWS = Windows(2, 30_000)
"""Kafka's default for metrics: metrics.num.samples and metrics.sample.window.ms."""
CONSUMER_STATES = ("Empty", "Assigning", "Reconciling", "Stable", "Dead")


class GroupTotals(NamedTuple):
    """Groups by state, and their offsets."""

    classic: Tally[State]
    consumer: Tally[str]
    offsets: int


class GroupGauges:
    """Reads the groups once for all gauges of a scrape."""

    def __init__(
        self, registry: Registry, groups: GroupHost, clock_ms: Callable[[], int]
    ) -> None:
        self._groups = groups
        self._clock_ms = clock_ms
        self._totals = totals = Recent(self._count, clock_ms)
        registry.gauge(
            catalogue.GROUPS, lambda: totals().classic.total() + totals().consumer.total()
        )
        registry.gauge(catalogue.OFFSETS, lambda: totals().offsets)
        registry.gauge(catalogue.PREPARING, lambda: totals().classic[State.PREPARING])
        registry.gauge(catalogue.COMPLETING, lambda: totals().classic[State.COMPLETING])
        registry.gauge(catalogue.STABLE, lambda: totals().classic[State.STABLE])
        registry.gauge(catalogue.EMPTY, lambda: totals().classic[State.EMPTY])
        registry.gauge(catalogue.DEAD, lambda: totals().classic[State.DEAD])
        counts = groups.counts
        self._rates: list[CounterRate] = []
        for counter, count, rate in (
            (counts.offset_commits, catalogue.COMMIT_COUNT, catalogue.COMMIT_RATE),
            (counts.offset_expirations, catalogue.EXPIRATION_COUNT, catalogue.EXPIRATION_RATE),
            (counts.offset_deletions, catalogue.DELETION_COUNT, catalogue.DELETION_RATE),
            (counts.classic_rebalances, catalogue.REBALANCE_COUNT, catalogue.REBALANCE_RATE),
            (
                counts.consumer_rebalances,
                catalogue.CONSUMER_REBALANCE_COUNT,
                catalogue.CONSUMER_REBALANCE_RATE,
            ),
        ):
            sampled = CounterRate(counter)
            self._rates.append(sampled)
            registry.gauge(count, lambda counter=counter: counter.value)
            registry.gauge(rate, lambda sampled=sampled: sampled.per_second(clock_ms()))
        times = groups.load_times
        registry.gauge(catalogue.LOAD_TIME_MAX, lambda: times.longest_ms(clock_ms()))
        registry.gauge(catalogue.LOAD_TIME_AVG, lambda: times.average_ms(clock_ms()))
        registry.add_collector(self)

    def tick(self) -> None:
        """Take the counters' samples; once a second."""
        now_ms = self._clock_ms()
        for rate in self._rates:
            rate.sample(now_ms)

    def collect(self) -> Iterator[Family]:
        """Yield the families; see `Collector`."""
        totals = self._totals()
        yield (
            catalogue.CONSUMER_GROUPS,
            [
                (label_text(("state",), (state.lower(),)), totals.consumer[state])
                for state in CONSUMER_STATES
            ],
        )
        yield (
            catalogue.GROUPS_BY_PROTOCOL,
            [
                (label_text(("protocol",), ("classic",)), totals.classic.total()),
                (label_text(("protocol",), ("consumer",)), totals.consumer.total()),
            ],
        )

    def _count(self) -> GroupTotals:
        classic: Tally[State] = Tally()
        consumer: Tally[str] = Tally()
        offsets = 0
        for shard in self._groups.loaded_shards():
            for group in shard.machine.groups.values():
                if isinstance(group, ClassicGroup):
                    classic[group.state] += 1
                else:
                    consumer[group.state_name] += 1
            offsets += sum(
                len(each.committed) for each in shard.machine.offsets.by_group.values()
            )
        return GroupTotals(classic, consumer, offsets)


class CounterRate:
    """How fast a counter grows, from samples of it."""

    def __init__(self, counter: Counter) -> None:
        self._counter = counter
        self._seen = counter.value
        self._rate = SampledRate(RATE_WINDOWS)

    def sample(self, now_ms: int) -> None:
        """Add what was counted since the last sample."""
        value = self._counter.value
        if value != self._seen:
            self._rate.record(value - self._seen, now_ms)
            self._seen = value

    def per_second(self, now_ms: int) -> float:
        """Return the rate over the last minute."""
        self.sample(now_ms)
        return self._rate.per_second(now_ms)

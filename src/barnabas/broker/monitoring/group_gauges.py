"""Gauges of the group coordinators: groups by state, offsets, rates, loads."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Iterator

from barnabas.broker.coordinators.groups import GroupHost
from barnabas.broker.monitoring.counter_rate import CounterRate
from barnabas.broker.monitoring.family import Family
from barnabas.groups.classic_group import ClassicGroup, State
from barnabas.metrics.catalogue import groups as catalogue
from barnabas.metrics.metric import label_text

CLASSIC_STATES = (
    (State.PREPARING, catalogue.PREPARING),
    (State.COMPLETING, catalogue.COMPLETING),
    (State.STABLE, catalogue.STABLE),
    (State.EMPTY, catalogue.EMPTY),
    (State.DEAD, catalogue.DEAD),
)
CONSUMER_STATES = ("Empty", "Assigning", "Reconciling", "Stable", "Dead")


class GroupGauges:
    """A collector; it reads the groups once for all numbers of a scrape."""

    def __init__(self, groups: GroupHost, clock_ms: Callable[[], int]) -> None:
        self._groups = groups
        self._clock_ms = clock_ms
        counts = groups.counts
        self._rates = [
            (counter, CounterRate(counter), count, rate)
            for counter, count, rate in (
                (counts.offset_commits, catalogue.COMMIT_COUNT, catalogue.COMMIT_RATE),
                (
                    counts.offset_expirations,
                    catalogue.EXPIRATION_COUNT,
                    catalogue.EXPIRATION_RATE,
                ),
                (counts.offset_deletions, catalogue.DELETION_COUNT, catalogue.DELETION_RATE),
                (counts.classic_rebalances, catalogue.REBALANCE_COUNT, catalogue.REBALANCE_RATE),
                (
                    counts.consumer_rebalances,
                    catalogue.CONSUMER_REBALANCE_COUNT,
                    catalogue.CONSUMER_REBALANCE_RATE,
                ),
            )
        ]

    def tick(self) -> None:
        """Take the counters' samples; once a second."""
        now_ms = self._clock_ms()
        for _, rate, _, _ in self._rates:
            rate.sample(now_ms)

    def collect(self) -> Iterator[Family]:
        """Yield the families; see `Collector`."""
        classic: Tally[State] = Tally()
        consumer: Tally[str] = Tally()
        offsets = 0
        for shard in self._groups.loaded_shards():
            for group in shard.machine.groups.values():
                if isinstance(group, ClassicGroup):
                    classic[group.state] += 1
                else:
                    consumer[group.state_name] += 1
            offsets += sum(len(each.committed) for each in shard.machine.offsets.by_group.values())
        yield catalogue.GROUPS, [("", classic.total() + consumer.total())]
        yield catalogue.OFFSETS, [("", offsets)]
        for state, metric in CLASSIC_STATES:
            yield metric, [("", classic[state])]
        yield (
            catalogue.CONSUMER_GROUPS,
            [(label_text(("state",), (name.lower(),)), consumer[name]) for name in CONSUMER_STATES],
        )
        yield (
            catalogue.GROUPS_BY_PROTOCOL,
            [
                (label_text(("protocol",), ("classic",)), classic.total()),
                (label_text(("protocol",), ("consumer",)), consumer.total()),
            ],
        )
        clock_ms = self._clock_ms()
        for counter, rate, count_metric, rate_metric in self._rates:
            yield count_metric, [("", counter.value)]
            yield rate_metric, [("", rate.per_second(clock_ms))]
        times = self._groups.load_times
        yield catalogue.LOAD_TIME_MAX, [("", times.longest_ms(clock_ms))]
        yield catalogue.LOAD_TIME_AVG, [("", times.average_ms(clock_ms))]

"""The assignors of one consumer: its list of strategies, and what it needs of each.

The option names them by name ("range"), by the name of Java's class, or gives a class or an object:
one of our own contract (`barnabas.assignment.contract.Assignor`), or one written for kafka-python
or aiokafka (`third_party_assignor`). The order is the preference; a group uses one that all members
list, so a rolling upgrade lists the old and the new one for a while.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from barnabas.assignment.contract import Assignor, Decision, Member, Share
from barnabas.assignment.random import RandomAssignor
from barnabas.assignment.range import RangeAssignor
from barnabas.assignment.round_robin import RoundRobinAssignor
from barnabas.assignment.sticky import CooperativeStickyAssignor, StickyAssignor
from barnabas.client.metadata import ClientMetadata
from barnabas.consumer.group.third_party_assignor import ThirdPartyStrategy
from barnabas.model.errors import ConfigError
from barnabas.model.ids import TopicPartition

OPTION = "partition.assignment.strategy"


class Strategy(Protocol):
    """An assignor as a consumer uses it, whatever it was written for."""

    @property
    def name(self) -> str:
        """Return the name under which members agree on it."""

    @property
    def is_cooperative(self) -> bool:
        """Return whether members keep what they own while they rejoin."""

    def user_data(
        self, topics: Sequence[str], owned: Sequence[TopicPartition], generation: int
    ) -> bytes | None:
        """Return what this member adds to its subscription."""

    def assign(self, cluster: ClientMetadata, members: Sequence[Member]) -> dict[str, Share]:
        """Decide for all members."""

    def on_assignment(self, share: Share, generation: int) -> None:
        """Receive the assignment of this member."""


class NativeStrategy:
    """An assignor of our own contract."""

    def __init__(self, assignor: Assignor) -> None:
        self._assignor = assignor
        self.name = assignor.name
        self.is_cooperative = assignor.is_cooperative

    def user_data(
        self, topics: Sequence[str], owned: Sequence[TopicPartition], generation: int
    ) -> bytes | None:
        """Return what this member adds to its subscription."""
        return self._assignor.user_data(owned, generation)

    def assign(self, cluster: ClientMetadata, members: Sequence[Member]) -> dict[str, Share]:
        """Decide for all members."""
        topics = {topic for member in members for topic in member.topics}
        counts = partition_counts(cluster, topics)
        if isinstance(self._assignor, RangeAssignor):
            assignment: Decision = self._assignor.assign(
                counts, members, replica_racks(cluster, counts)
            )
        else:
            assignment = self._assignor.assign(counts, members)
        return {
            name: given if isinstance(given, Share) else Share(given)
            for name, given in assignment.items()
        }

    def on_assignment(self, share: Share, generation: int) -> None:
        """Pass on the assignment of this member, if the assignor has a method for it."""
        notify = getattr(self._assignor, "on_assignment", None)
        if notify is None:
            return
        if len(inspect.signature(notify).parameters) > 2:
            notify(share.partitions, generation, share.user_data)
        else:
            notify(share.partitions, generation)


def partition_counts(cluster: ClientMetadata, topics: Iterable[str]) -> dict[str, int]:
    """Return the partition count of each topic; topics that do not exist are left out."""
    counts = {}
    for topic in sorted(topics):
        view = cluster.topics.get(topic)
        if view is not None and view.partitions:
            counts[topic] = len(view.partitions)
    return counts


def replica_racks(cluster: ClientMetadata, topics: Iterable[str]) -> dict[TopicPartition, set[str]]:
    """Return the racks that hold a replica of each partition, for brokers that name their racks."""
    racks = {node_id: broker.rack for node_id, broker in cluster.brokers.items() if broker.rack}
    if not racks:
        return {}
    return {
        TopicPartition(topic, number): {racks[each] for each in view.replicas if each in racks}
        for topic in topics
        for number, view in cluster.topics[topic].partitions.items()
    }


def strategies(given: object, choose: Callable[[int], int]) -> dict[str, Strategy]:
    """Create the strategies that an option's value names, in order; `choose` is a random source."""
    listed = _listed(given)
    if not listed:
        raise ConfigError(f"{OPTION} is empty: name at least one assignor")
    made: dict[str, Strategy] = {}
    for each in listed:
        strategy = _strategy(each, choose)
        if strategy.name in made:
            raise ConfigError(f"{OPTION} names {strategy.name!r} twice")
        made[strategy.name] = strategy
    return made


def is_cooperative(strategies: Mapping[str, Strategy]) -> bool:
    """Return whether a consumer rebalances incrementally: only if all its strategies can."""
    return all(strategy.is_cooperative for strategy in strategies.values())


def _listed(given: object) -> list[object]:
    if isinstance(given, str):
        return [name.strip() for name in given.split(",") if name.strip()]
    return list(given) if isinstance(given, Iterable) else [given]


def _strategy(given: object, choose: Callable[[int], int]) -> Strategy:
    if isinstance(given, str):
        return NativeStrategy(_by_name(given, choose))
    assignor: object = given() if isinstance(given, type) else given
    if callable(getattr(assignor, "metadata", None)):
        return ThirdPartyStrategy(assignor)
    for needed in ("name", "is_cooperative", "user_data", "assign"):
        if not hasattr(assignor, needed):
            raise ConfigError(f"{OPTION}: {given!r} is not an assignor: it has no {needed!r}")
    return NativeStrategy(assignor)  # type: ignore[arg-type]  # all methods were checked


def _by_name(name: str, choose: Callable[[int], int]) -> Assignor:
    known: dict[str, Callable[[], Assignor]] = {
        "range": RangeAssignor,
        "roundrobin": RoundRobinAssignor,
        "sticky": StickyAssignor,
        "cooperative-sticky": CooperativeStickyAssignor,
        "random": lambda: RandomAssignor(choose),
    }
    java = {
        "RangeAssignor": "range",
        "RoundRobinAssignor": "roundrobin",
        "StickyAssignor": "sticky",
        "CooperativeStickyAssignor": "cooperative-sticky",
    }
    short = name.rpartition(".")[2]
    make = known.get(java.get(short, name))
    if make is None:
        raise ConfigError(f"{OPTION}={name!r}: must be one of {', '.join(known)}")
    return make()

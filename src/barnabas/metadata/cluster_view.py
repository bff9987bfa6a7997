"""A broker's metadata cache: live brokers, topics, leaders.

Metadata responses come only from here. The controller sends changes to each broker; a broker never
bases a decision on this view that needs current data. Every lookup by name or id is one dictionary
access.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from barnabas.model.ids import NO_EPOCH, ZERO_UUID, Uuid


@dataclass(frozen=True, slots=True)
class PartitionView:
    """Leader and replicas of one partition."""

    leader: int
    leader_epoch: int
    isr: Sequence[int]
    replicas: Sequence[int]
    offline: Sequence[int] = ()
    """Replicas whose broker is dead or whose disk failed."""


@dataclass(frozen=True, slots=True)
class TopicView:
    """A topic, with its partitions by index."""

    name: str
    topic_id: Uuid
    partitions: Sequence[PartitionView]


@dataclass(frozen=True, slots=True)
class BrokerView:
    """A live broker; endpoints by listener name. A host of None means the dialled address."""

    broker_id: int
    endpoints: Mapping[str, tuple[str | None, int]]
    rack: str | None
    epoch: int = NO_EPOCH
    protocols: Mapping[str, int] = field(default_factory=dict)
    """The number of each listener's security protocol, as on the wire."""
    control_plane: str | None = None
    """The only listener for controller requests, if its registration names one."""


class ClusterView:
    """Live brokers, topics by name and by id, and the controller's id."""

    def __init__(self, cluster_id: str = "") -> None:
        self.cluster_id = cluster_id
        self.controller_id = -1
        self.brokers: dict[int, BrokerView] = {}
        self._topics: dict[str, TopicView] = {}
        self._by_id: dict[Uuid, TopicView] = {}
        self.names_version = 0
        """Changes with the set of topics, for those who keep something made from it."""

    @property
    def topic_names(self) -> Iterable[str]:
        """Return the names of all topics, in order of their creation."""
        return self._topics.keys()

    @property
    def topics(self) -> Iterable[TopicView]:
        """Return all topics, in order of their creation."""
        return self._topics.values()

    def topic(self, name: str) -> TopicView | None:
        """Find a topic by its name."""
        return self._topics.get(name)

    def topic_by_id(self, topic_id: Uuid) -> TopicView | None:
        """Find a topic by its id."""
        return self._by_id.get(topic_id)

    def put_topic(self, topic: TopicView) -> None:
        """Add or update a topic."""
        known = self._topics.get(topic.name)
        if known is None:
            self.names_version += 1
        if known is not None and known.topic_id != topic.topic_id:
            self._by_id.pop(known.topic_id, None)  # the topic was deleted and recreated
        self._topics[topic.name] = topic
        if topic.topic_id != ZERO_UUID:
            self._by_id[topic.topic_id] = topic

    def remove_topic(self, name: str) -> None:
        """Remove a topic."""
        topic = self._topics.pop(name, None)
        if topic is not None:
            self.names_version += 1
            self._by_id.pop(topic.topic_id, None)

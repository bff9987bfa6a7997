"""`list_topics`: the cluster as `ClusterMetadata` and its parts."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, Protocol

from barnabas.client.cluster_client import ClusterClient
from barnabas.client.metadata import ClientMetadata, PartitionView, TopicView
from barnabas.compat.confluent_kafka.error import KafkaError
from barnabas.compat.confluent_kafka.events import seconds
from barnabas.model.error_codes import ErrorCode

_DEFAULT_S = 60.0


class Caller(Protocol):
    """What runs a coroutine on a client's loop, and raises KafkaException."""

    def call(self, work: Coroutine[Any, Any, Any], timeout_s: float | None) -> Any: ...


class ClusterMetadata:
    """Brokers and topics, and who said so."""

    def __init__(self) -> None:
        self.cluster_id: str | None = None
        self.controller_id = -1
        self.brokers: dict[int, BrokerMetadata] = {}
        self.topics: dict[str, TopicMetadata] = {}
        self.orig_broker_id = -1
        self.orig_broker_name: str | None = None

    def __repr__(self) -> str:
        return f"ClusterMetadata({self.cluster_id})"

    def __str__(self) -> str:
        return str(self.cluster_id)


class BrokerMetadata:
    """One broker."""

    def __init__(self) -> None:
        self.id = -1
        self.host: str | None = None
        self.port = -1

    def __repr__(self) -> str:
        return f"BrokerMetadata({self.id}, {self.host}:{self.port})"

    def __str__(self) -> str:
        return f"{self.host}:{self.port}/{self.id}"


class TopicMetadata:
    """One topic, or its error."""

    def __init__(self) -> None:
        self.topic: str | None = None
        self.partitions: dict[int, PartitionMetadata] = {}
        self.error: KafkaError | None = None

    def __repr__(self) -> str:
        error = "" if self.error is None else f", {self.error}"
        return f"TopicMetadata({self.topic}, {len(self.partitions)} partitions{error})"

    def __str__(self) -> str:
        return str(self.topic)


class PartitionMetadata:
    """One partition, by the ids of its brokers."""

    def __init__(self) -> None:
        self.id = -1
        self.leader = -1
        self.replicas: list[int] = []
        self.isrs: list[int] = []
        self.error: KafkaError | None = None

    def __repr__(self) -> str:
        error = "" if self.error is None else f", {self.error}"
        return f"PartitionMetadata({self.id}{error})"

    def __str__(self) -> str:
        return str(self.id)


def cluster_view(
    caller: Caller, client: ClusterClient, topic: str | None, timeout: float
) -> ClusterMetadata:
    """Return the cluster's metadata: of one topic, or all."""

    async def ask() -> ClusterMetadata:
        limit_s = seconds(timeout) or _DEFAULT_S
        names = None if topic is None else [topic]
        seen = await client.retrying(lambda: client.refresh(names), timeout_ms=limit_s * 1000)
        return _cluster(seen, names)

    view: ClusterMetadata = caller.call(ask(), seconds(timeout))
    return view


def cluster_id(caller: Caller, client: ClusterClient, timeout: float) -> str:
    """Return the id of the cluster."""

    async def ask() -> str:
        if client.cluster.cluster_id is None:
            limit_s = seconds(timeout) or _DEFAULT_S
            await client.retrying(client.refresh, timeout_ms=limit_s * 1000)
        return str(client.cluster.cluster_id)

    found: str = caller.call(ask(), seconds(timeout))
    return found


def _cluster(seen: ClientMetadata, names: list[str] | None) -> ClusterMetadata:
    view = ClusterMetadata()
    view.cluster_id = seen.cluster_id
    view.controller_id = -1 if seen.controller_id is None else seen.controller_id
    for broker in seen.brokers.values():
        shown = view.brokers[broker.node_id] = BrokerMetadata()
        shown.id, shown.host, shown.port = broker.node_id, broker.host, broker.port
    origin = next(iter(view.brokers.values()), None)
    if origin is not None:
        view.orig_broker_id, view.orig_broker_name = origin.id, str(origin)
    for name in seen.topics if names is None else names:
        view.topics[name] = _topic(name, seen.topics.get(name))
    return view


def _topic(name: str, seen: TopicView | None) -> TopicMetadata:
    view = TopicMetadata()
    view.topic = name
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if seen is None else seen.error
    view.error = _error(code)
    if seen is not None:
        for index in sorted(seen.partitions):
            view.partitions[index] = _partition(seen.partitions[index])
    return view


def _partition(seen: PartitionView) -> PartitionMetadata:
    view = PartitionMetadata()
    view.id, view.leader = seen.index, seen.leader_id
    view.replicas, view.isrs = list(seen.replicas), list(seen.isr)
    view.error = _error(seen.error)
    return view


def _error(code: ErrorCode) -> KafkaError | None:
    return None if code is ErrorCode.NONE else KafkaError(int(code), retriable=code.retriable)

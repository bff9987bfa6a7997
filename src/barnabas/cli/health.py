"""Health of partitions: under-replicated, under min ISR, offline, not led by the preferred replica.

Plain functions over Metadata responses; only `min.insync.replicas` takes a request of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from barnabas.client.cluster_client import ClusterClient
from barnabas.client.metadata import PartitionView, TopicView
from barnabas.model.errors import RequestError

MIN_ISR = "min.insync.replicas"


def is_under_replicated(view: PartitionView) -> bool:
    """Return whether a replica is not in sync."""
    return len(view.isr) < len(view.replicas)


def is_unavailable(view: PartitionView, brokers: Iterable[int]) -> bool:
    """Return whether there is no leader, or the leader is not alive."""
    return view.leader_id not in brokers


def is_under_min_isr(view: PartitionView, min_isr: int) -> bool:
    """Return whether writes with acks=all are rejected."""
    return len(view.isr) < min(min_isr, len(view.replicas))


def is_imbalanced(view: PartitionView) -> bool:
    """Return whether the leader is not the preferred replica."""
    return bool(view.replicas) and view.leader_id != view.replicas[0]


async def min_isr_of(client: ClusterClient, topics: Iterable[TopicView]) -> dict[str, int]:
    """Return `min.insync.replicas` of topics; 1 if it cannot be read."""
    # Imported here: most descriptions of topics do not need it, and start faster without.
    from barnabas.admin.config_entries import ConfigResourceType, Resource
    from barnabas.admin.configs import describe_resources

    names = [topic.name for topic in topics]
    described = await describe_resources(
        client, {Resource(ConfigResourceType.TOPIC, name): [MIN_ISR] for name in names}
    )
    found = dict.fromkeys(names, 1)
    for resource, entries in described.items():
        if isinstance(entries, RequestError):
            continue  # the topic was deleted meanwhile, or its options may not be read
        for entry in entries:
            found[resource.name] = int(entry.value or 1)
    return found


def counted(
    topics: Iterable[TopicView], brokers: Iterable[int], min_isr: Mapping[str, int]
) -> dict[str, int]:
    """Count partitions by what is wrong with them."""
    present = set(brokers)
    counts = dict.fromkeys(
        (
            "topics",
            "partitions",
            "replicas",
            "under_replicated",
            "under_min_isr",
            "offline",
            "not_preferred",
        ),
        0,
    )
    for topic in topics:
        counts["topics"] += 1
        for view in topic.partitions.values():
            counts["partitions"] += 1
            counts["replicas"] += len(view.replicas)
            counts["under_replicated"] += is_under_replicated(view)
            counts["under_min_isr"] += is_under_min_isr(view, min_isr[topic.name])
            counts["offline"] += is_unavailable(view, present)
            counts["not_preferred"] += is_imbalanced(view)
    return counts

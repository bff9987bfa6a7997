"""How partitions are: fully replicated or not, able to take writes or not, led by whom they should.

Plain functions over what Metadata tells; only `min.insync.replicas` is asked for separately.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from barnabas.client.cluster_client import ClusterClient
from barnabas.client.metadata import PartitionView, TopicView
from barnabas.model.errors import RequestError

MIN_ISR = "min.insync.replicas"


def is_under_replicated(view: PartitionView) -> bool:
    """Tell whether a replica is not in sync."""
    return len(view.isr) < len(view.replicas)


def is_unavailable(view: PartitionView, brokers: Iterable[int]) -> bool:
    """Tell whether nobody leads, or the leader is gone."""
    return view.leader_id not in brokers


def is_under_min_isr(view: PartitionView, min_isr: int) -> bool:
    """Tell whether writes with acks=all are refused."""
    return len(view.isr) < min(min_isr, len(view.replicas))


def is_imbalanced(view: PartitionView) -> bool:
    """Tell whether another replica than the first one leads."""
    return bool(view.replicas) and view.leader_id != view.replicas[0]


async def min_isr_of(client: ClusterClient, topics: Iterable[TopicView]) -> dict[str, int]:
    """Return `min.insync.replicas` of topics; 1 where the broker does not tell."""
    # Here: most descriptions of topics do without, and start the faster.
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

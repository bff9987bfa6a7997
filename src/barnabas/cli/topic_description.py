"""The description of a topic, collected by several requests, as a document and as a table."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from barnabas.admin.log_dirs import describe_log_dirs
from barnabas.admin.offsets import EARLIEST, LATEST, list_offsets
from barnabas.cli.output import print_table, size_text
from barnabas.client.cluster_client import ClusterClient
from barnabas.client.errors import UnsupportedApiError
from barnabas.client.metadata import TopicView
from barnabas.model.errors import RequestError
from barnabas.model.ids import TopicPartition, uuid_text


def replication_factor(topic: TopicView) -> int:
    """Return the replication factor; the largest of all partitions during a reassignment."""
    return max((len(view.replicas) for view in topic.partitions.values()), default=0)


async def describe_topic(client: ClusterClient, topic: TopicView) -> dict[str, Any]:
    """Return a topic as a JSON document; values that no leader could report are None."""
    led = [
        TopicPartition(topic.name, index)
        for index in sorted(topic.partitions)
        if topic.partitions[index].leader_id in client.cluster.brokers
    ]
    earliest, latest, sizes = await asyncio.gather(
        list_offsets(client, dict.fromkeys(led, EARLIEST)),
        list_offsets(client, dict.fromkeys(led, LATEST)),
        _sizes(client, led),
    )
    return {
        "name": topic.name,
        "id": uuid_text(topic.topic_id),
        "internal": topic.internal,
        "replication_factor": replication_factor(topic),
        "partitions": [
            {
                "partition": view.index,
                "leader": view.leader_id if view.leader_id >= 0 else None,
                "leader_epoch": view.leader_epoch,
                "replicas": list(view.replicas),
                "isr": list(view.isr),
                "offline": list(view.offline),
                "earliest_offset": earliest[key].offset if key in earliest else None,
                "latest_offset": latest[key].offset if key in latest else None,
                "size_bytes": sizes.get(key),
            }
            for view in sorted(topic.partitions.values(), key=lambda view: view.index)
            for key in [TopicPartition(topic.name, view.index)]
        ],
    }


async def _sizes(
    client: ClusterClient, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, int]:
    """Return the sizes on the leaders; brokers that cannot report them are skipped."""
    led, _ = client.cluster.by_leader(partitions)
    sizes: dict[TopicPartition, int] = {}
    for leader, group in led.items():
        try:
            directories = await describe_log_dirs(client, leader, group)
        except (UnsupportedApiError, RequestError):
            continue
        for directory in directories:
            for replica in directory.replicas:
                if not replica.is_future:
                    sizes[replica.partition] = replica.size_bytes
    return sizes


def print_topic(document: dict[str, Any]) -> None:
    """Print the document as a table of partitions."""
    print_table(
        [
            "partition",
            "leader",
            "epoch",
            "replicas",
            "in sync",
            "offline",
            "earliest",
            "latest",
            "size",
        ],
        [
            [
                partition["partition"],
                partition["leader"],
                partition["leader_epoch"],
                ",".join(map(str, partition["replicas"])),
                ",".join(map(str, partition["isr"])),
                ",".join(map(str, partition["offline"])) or None,
                partition["earliest_offset"],
                partition["latest_offset"],
                size_text(partition["size_bytes"]),
            ]
            for partition in document["partitions"]
        ],
        title=f"topic {document['name']} (id {document['id']})",
    )

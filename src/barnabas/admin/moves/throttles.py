"""Throttles of reassignments: which replicas are throttled, and how fast brokers may copy.

The replica lists are topic options, the rates are options of every broker that takes part. Leader
throttles apply to the current replicas (any may lead), follower throttles to the added ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from barnabas.admin.config_entries import AlterConfigOp, Change, ConfigResourceType, Resource
from barnabas.admin.configs import alter_configs, describe_configs, own_source
from barnabas.admin.moves.plan import Move
from barnabas.client.cluster_client import ClusterClient

LEADER_RATE = "leader.replication.throttled.rate"
FOLLOWER_RATE = "follower.replication.throttled.rate"
DIRECTORY_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
LEADER_REPLICAS = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS = "follower.replication.throttled.replicas"


def throttled_replicas(moves: Iterable[Move]) -> dict[str, dict[str, str]]:
    """Return the options of each topic that name its throttled replicas."""
    givers: dict[str, list[str]] = {}
    takers: dict[str, list[str]] = {}
    for move in moves:
        if not move.adding:
            continue
        topic, number = move.partition
        givers.setdefault(topic, []).extend(f"{number}:{broker}" for broker in move.before)
        takers.setdefault(topic, []).extend(f"{number}:{broker}" for broker in move.adding)
    return {
        topic: {
            LEADER_REPLICAS: ",".join(givers[topic]),
            FOLLOWER_REPLICAS: ",".join(takers[topic]),
        }
        for topic in givers
    }


async def set_throttle(client: ClusterClient, moves: Iterable[Move], bytes_per_second: int) -> None:
    """Limit how fast the moves copy, before they start."""
    moves = list(moves)
    for topic, options in throttled_replicas(moves).items():
        await _set(client, Resource(ConfigResourceType.TOPIC, topic), options)
    brokers = {broker for move in moves for broker in (*move.before, *move.adding)}
    rates = dict.fromkeys((LEADER_RATE, FOLLOWER_RATE), str(bytes_per_second))
    for broker in sorted(brokers & client.cluster.brokers.keys()):
        await _set(client, Resource(ConfigResourceType.BROKER, str(broker)), rates)


async def clear_throttles(client: ClusterClient, topics: Iterable[str]) -> bool:
    """Remove all throttles of reassignments; return whether there were any."""
    found = False
    for topic in sorted(set(topics)):
        resource = Resource(ConfigResourceType.TOPIC, topic)
        found |= await _clear(client, resource, (LEADER_REPLICAS, FOLLOWER_REPLICAS))
    for broker in sorted(client.cluster.brokers):
        resource = Resource(ConfigResourceType.BROKER, str(broker))
        found |= await _clear(client, resource, (LEADER_RATE, FOLLOWER_RATE, DIRECTORY_RATE))
    return found


async def _set(client: ClusterClient, resource: Resource, options: Mapping[str, str]) -> None:
    await alter_configs(
        client,
        resource,
        [Change(AlterConfigOp.SET, name, value) for name, value in options.items()],
    )


async def _clear(client: ClusterClient, resource: Resource, names: Iterable[str]) -> bool:
    entries = await describe_configs(client, resource, names)
    own = own_source(resource)
    present = [entry.name for entry in entries if entry.source is own]
    if present:
        await alter_configs(
            client, resource, [Change(AlterConfigOp.DELETE, name) for name in present]
        )
    return bool(present)

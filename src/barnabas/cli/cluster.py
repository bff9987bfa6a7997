"""`barnabas cluster`: show its id, brokers, controller, partition health and API versions."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
from typing import Any

from barnabas.admin.cluster import ClusterDescription, api_versions, describe_cluster
from barnabas.admin.topics import describe_topics
from barnabas.cli.arguments import add_action
from barnabas.cli.health import counted, min_isr_of
from barnabas.cli.output import print_json, print_table
from barnabas.cli.session import run
from barnabas.client.cluster_client import ClusterClient
from barnabas.client.metadata import TopicView
from barnabas.client.negotiation import PeerVersions
from barnabas.wire.apis import APIS


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of all actions."""
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    describe = add_action(
        actions,
        "describe",
        "show brokers, controller, cluster id and partition health",
        _describe,
        "  barnabas cluster describe\n  barnabas cluster describe --apis --json",
    )
    describe.add_argument(
        "--apis", action="store_true", help="also show the API versions that each broker supports"
    )


@dataclass(slots=True)
class Load:
    """Replicas and leaders on one broker."""

    replicas: int = 0
    leads: int = 0
    preferred: int = 0
    """Partitions of which it is the preferred replica."""
    preferred_led_elsewhere: int = 0

    @property
    def imbalance_percent(self) -> int:
        """Return the percentage of its preferred partitions that other brokers lead."""
        return round(100 * self.preferred_led_elsewhere / self.preferred) if self.preferred else 0


@dataclass(frozen=True, slots=True)
class Description:
    """Everything that is shown of a cluster."""

    cluster: ClusterDescription
    loads: dict[int, Load]
    counts: dict[str, int]
    apis: dict[int, PeerVersions] = field(default_factory=dict)


def _describe(arguments: argparse.Namespace) -> None:
    found = run(arguments, lambda client: _gather(client, arguments.apis))
    if arguments.json:
        print_json(_document(found))
        return
    cluster = found.cluster
    print_table(
        ["broker", "host", "port", "rack", "role", "leads", "replicas", "imbalance"],
        [
            [
                broker.node_id,
                broker.host,
                broker.port,
                broker.rack,
                "controller" if broker.node_id == cluster.controller_id else "",
                load.leads,
                load.replicas,
                f"{load.imbalance_percent}%",
            ]
            for broker in cluster.brokers
            for load in [found.loads[broker.node_id]]
        ],
        title=f"cluster {cluster.cluster_id}",
    )
    print_table([name.replace("_", "-") for name in found.counts], [list(found.counts.values())])
    for broker_id, versions in found.apis.items():
        print_table(
            ["key", "api", "versions"],
            [[key, _name(key), str(span)] for key, span in sorted(versions.ranges.items())],
            title=f"APIs of broker {broker_id}",
        )


async def _gather(client: ClusterClient, with_apis: bool) -> Description:
    cluster = await describe_cluster(client)
    topics = [topic for topic in await describe_topics(client, None) if not topic.error]
    brokers = [broker.node_id for broker in cluster.brokers]
    found = Description(
        cluster, _loads(brokers, topics), counted(topics, brokers, await min_isr_of(client, topics))
    )
    if with_apis:
        for broker in brokers:
            found.apis[broker] = await api_versions(client, broker)
    return found


def _loads(brokers: list[int], topics: list[TopicView]) -> dict[int, Load]:
    loads = {broker: Load() for broker in brokers}
    for view in (view for topic in topics for view in topic.partitions.values()):
        for broker in view.replicas:
            if broker in loads:
                loads[broker].replicas += 1
        if view.leader_id in loads:
            loads[view.leader_id].leads += 1
        first = loads.get(view.replicas[0]) if view.replicas else None
        if first is not None:
            first.preferred += 1
            first.preferred_led_elsewhere += view.leader_id != view.replicas[0]
    return loads


def _document(found: Description) -> dict[str, Any]:
    brokers: list[dict[str, Any]] = []
    for broker in found.cluster.brokers:
        load = found.loads[broker.node_id]
        document: dict[str, Any] = {
            "id": broker.node_id,
            "host": broker.host,
            "port": broker.port,
            "rack": broker.rack,
            "leads": load.leads,
            "replicas": load.replicas,
            "preferred": load.preferred,
            "imbalance_percent": load.imbalance_percent,
        }
        if broker.node_id in found.apis:
            document["apis"] = [
                {"key": key, "name": _name(key), "min": span.lowest, "max": span.highest}
                for key, span in sorted(found.apis[broker.node_id].ranges.items())
            ]
        brokers.append(document)
    return {
        "cluster_id": found.cluster.cluster_id,
        "controller_id": found.cluster.controller_id,
        "brokers": brokers,
        **found.counts,
    }


def _name(key: int) -> str:
    return next((api.name for api in APIS if api.key == key), f"API {key}")

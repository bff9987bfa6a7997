"""`barnabas cluster`: show its id, brokers and controller, and what each broker can be asked."""

from __future__ import annotations

import argparse
from typing import Any

from barnabas.admin.cluster import ClusterDescription, api_versions, describe_cluster
from barnabas.cli.arguments import add_action
from barnabas.cli.output import print_json, print_table
from barnabas.cli.session import run
from barnabas.client.negotiation import PeerVersions
from barnabas.client.switchboard import Switchboard
from barnabas.wire.apis import APIS


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of all actions."""
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    describe = add_action(
        actions,
        "describe",
        "show brokers, controller and cluster id",
        _describe,
        "  barnabas cluster describe\n  barnabas cluster describe --apis --json",
    )
    describe.add_argument(
        "--apis", action="store_true", help="also the APIs and versions that each broker serves"
    )


def _describe(arguments: argparse.Namespace) -> None:
    cluster, apis = run(arguments, lambda board: _gather(board, arguments.apis))
    if arguments.json:
        print_json(_document(cluster, apis))
        return
    print_table(
        ["broker", "host", "port", "rack", "role"],
        [
            [
                broker.node_id,
                broker.host,
                broker.port,
                broker.rack,
                "controller" if broker.node_id == cluster.controller_id else "",
            ]
            for broker in cluster.brokers
        ],
        title=f"cluster {cluster.cluster_id}",
    )
    for broker_id, versions in apis.items():
        print_table(
            ["key", "api", "versions"],
            [[key, _name(key), str(span)] for key, span in sorted(versions.ranges.items())],
            title=f"APIs of broker {broker_id}",
        )


async def _gather(
    board: Switchboard, with_apis: bool
) -> tuple[ClusterDescription, dict[int, PeerVersions]]:
    cluster = await describe_cluster(board)
    apis: dict[int, PeerVersions] = {}
    if with_apis:
        for broker in cluster.brokers:
            apis[broker.node_id] = await api_versions(board, broker.node_id)
    return cluster, apis


def _document(cluster: ClusterDescription, apis: dict[int, PeerVersions]) -> dict[str, Any]:
    brokers: list[dict[str, Any]] = []
    for broker in cluster.brokers:
        document: dict[str, Any] = {
            "id": broker.node_id,
            "host": broker.host,
            "port": broker.port,
            "rack": broker.rack,
        }
        if broker.node_id in apis:
            document["apis"] = [
                {"key": key, "name": _name(key), "min": span.lowest, "max": span.highest}
                for key, span in sorted(apis[broker.node_id].ranges.items())
            ]
        brokers.append(document)
    return {
        "cluster_id": cluster.cluster_id,
        "controller_id": cluster.controller_id,
        "brokers": brokers,
    }


def _name(key: int) -> str:
    return next((api.name for api in APIS if api.key == key), f"API {key}")

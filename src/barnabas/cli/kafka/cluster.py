"""`kafka-cluster`: the id of a cluster, its endpoints, and brokers that are gone for good."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.cli.kafka.flags import BOOTSTRAP, COMMAND_CONFIG, Flag, Flags, Given, UsageError
from barnabas.cli.session import run as run_session

if TYPE_CHECKING:
    from barnabas.client.cluster_client import ClusterClient

ACTIONS = ("cluster-id", "unregister", "list-endpoints")

FLAGS = Flags(
    "cluster-id prints the id of a cluster, list-endpoints its brokers; unregister removes one.",
    (
        BOOTSTRAP._replace(aliases=("-b",)),
        Flag("--bootstrap-controller", "HOST:PORT[,...]", "as --bootstrap-server", aliases=("-C",)),
        COMMAND_CONFIG._replace(aliases=("-c",)),
        Flag("--config", "FILE", "as --command-config"),
        Flag("--id", "ID", "the broker to unregister", int, aliases=("-i",)),
        Flag("--include-fenced-brokers", help="also those that are fenced"),
    ),
    words="ACTION",
    excludes={"bootstrap-server": ("bootstrap-controller",), "config": ("command-config",)},
)


def run(given: Given) -> None:
    """Do what is asked for."""
    action = _action(given)
    config = "config" if "config" in given else "command-config"
    connection = given.connection(config)
    connection.bootstrap = connection.bootstrap or given["bootstrap-controller"]
    if not connection.bootstrap:
        raise UsageError("--bootstrap-server must be specified")

    async def work(client: ClusterClient) -> None:
        if action == "cluster-id":
            await _cluster_id(client)
        elif action == "unregister":
            await _unregister(client, given["id"])
        else:
            await _list_endpoints(client, fenced="include-fenced-brokers" in given)

    run_session(connection, work)


def _action(given: Given) -> str:
    if len(given.words) != 1 or given.words[0] not in ACTIONS:
        chosen = " ".join(given.words)
        reason = f"invalid choice: {chosen!r}" if chosen else "too few arguments"
        raise UsageError(f"{reason} (choose from {', '.join(ACTIONS)})")
    if given.words[0] == "unregister" and "id" not in given:
        raise UsageError("argument --id/-i is required")
    return given.words[0]


async def _cluster_id(client: ClusterClient) -> None:
    from barnabas.admin.cluster import describe_cluster

    cluster_id = (await describe_cluster(client)).cluster_id
    if cluster_id is None:
        print("No cluster ID found. The Kafka version is probably too old.")
    else:
        print(f"Cluster ID: {cluster_id}")


async def _unregister(client: ClusterClient, broker_id: int) -> None:
    from barnabas.admin.cluster import unregister_broker
    from barnabas.client.errors import UnsupportedApiError

    try:
        await unregister_broker(client, broker_id)
    except UnsupportedApiError:
        print("The target cluster does not support the broker unregistration API.")
    else:
        print(f"Broker {broker_id} is no longer registered.")


async def _list_endpoints(client: ClusterClient, *, fenced: bool) -> None:
    from barnabas.admin.cluster import describe_cluster

    cluster = await describe_cluster(client, fenced=fenced)
    width = max([len("HOST"), *(len(broker.host) for broker in cluster.brokers)])
    columns = ["ID", "HOST", "PORT", "RACK", *(["STATE"] if fenced else []), "ENDPOINT_TYPE"]
    rows = [columns]
    for broker in cluster.brokers:
        state = "fenced" if broker.node_id in cluster.fenced else "unfenced"
        row = [str(broker.node_id), broker.host, str(broker.port), broker.rack or "null"]
        rows.append([*row, *([state] if fenced else []), "broker"])
    widths = [10, width, 10, max(len(row[3]) for row in rows), *([10] if fenced else []), 15]
    for row in rows:
        print(" ".join(cell.ljust(size) for cell, size in zip(row, widths, strict=True)))

"""`kafka-log-dirs`: what is in the data directories of brokers, as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from barnabas.cli.kafka.flags import BOOTSTRAP, COMMAND_CONFIG, Flag, Flags, Given
from barnabas.cli.session import run as run_session
from barnabas.model.errors import InvalidValueError, RequestError

if TYPE_CHECKING:
    from barnabas.admin.log_dirs import LogDirectory
    from barnabas.client.cluster_client import ClusterClient

FAILURE = ""


def _ids(text: str) -> list[int]:
    return list(dict.fromkeys(int(part) for part in text.split(",") if part))


def _names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


FLAGS = Flags(
    "Show the data directories of brokers: partitions, sizes, failures.",
    (
        BOOTSTRAP._replace(required=True),
        COMMAND_CONFIG,
        Flag("--describe", help="show them", required=True),
        Flag("--topic-list", "TOPIC[,...]", "only these topics", _names),
        Flag("--broker-list", "ID[,...]", "only these brokers", _ids),
    ),
)


def run(given: Given) -> int:
    """Do what is asked for."""

    async def work(client: ClusterClient) -> int:
        return await _describe(client, given["broker-list"] or [], given["topic-list"] or [])

    return run_session(given.connection(), work)


async def _describe(client: ClusterClient, wanted: list[int], topics: list[str]) -> int:
    from barnabas.admin.log_dirs import describe_log_dirs_of

    present = sorted(client.cluster.brokers)
    missing = [broker for broker in wanted if broker not in present]
    if missing:
        raise InvalidValueError(
            "ERROR: The given brokers do not exist from --broker-list: "
            f"{','.join(map(str, missing))}. Current existent brokers: "
            f"{','.join(map(str, present))}"
        )
    brokers = wanted or present
    print("Querying brokers for log directories information", flush=True)
    found = await describe_log_dirs_of(client, brokers)
    print(f"Received log directory information from brokers {','.join(map(str, brokers))}")
    documents = []
    for broker, directories in found.items():
        if isinstance(directories, RequestError):
            raise directories
        documents.append(
            {"broker": broker, "logDirs": [_document(each, topics) for each in directories]}
        )
    print(json.dumps({"brokers": documents, "version": 1}, separators=(",", ":")))
    return 0


def _document(directory: LogDirectory, topics: list[str]) -> dict[str, Any]:
    return {
        "partitions": [
            {
                "partition": f"{replica.partition.topic}-{replica.partition.partition}",
                "size": replica.size_bytes,
                "offsetLag": replica.offset_lag,
                "isFuture": replica.is_future,
            }
            for replica in directory.replicas
            if not topics or replica.partition.topic in topics
        ],
        "error": None if directory.error is None else type(directory.error).__name__,
        "logDir": directory.path,
    }

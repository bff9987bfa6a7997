"""`kafka-replica-verification`: compare the replicas of partitions, batch by batch."""

from __future__ import annotations

import re
from functools import partial

from barnabas.cli.kafka.flags import Flag, Flags, Given, UsageError
from barnabas.cli.kafka.integers import whole_number

FAILURE = ""

FLAGS = Flags(
    "Compare the replicas of partitions up to their high watermarks, until it is stopped.",
    (
        Flag("--broker-list", "HOST:PORT[,...]", "brokers to connect to", required=True),
        Flag("--topics-include", "REGEX", "topics to compare", default=".*"),
        Flag("--topic-white-list", "REGEX", "deprecated: use --topics-include"),
        Flag("--time", "TIME", "where to begin: ms since 1970, -1 end, -2 start", whole_number, -1),
        Flag("--fetch-size", "BYTES", "bytes of a request for a partition", whole_number, 1 << 20),
        Flag("--max-wait-ms", "MS", "how long a request waits for records", whole_number, 1000),
        Flag("--report-interval-ms", "MS", "between two reports", whole_number, 30_000),
    ),
)


def run(given: Given) -> int:
    """Compare until a signal arrives, or replicas have different offsets."""
    pattern = given["topics-include"]
    if "topics-include" not in given and "topic-white-list" in given:
        pattern = given["topic-white-list"]
    try:
        topics = re.compile(pattern.strip().replace(",", "|").replace(" ", "").strip("\"'"))
    except re.error as failure:
        raise UsageError(f"{pattern} is an invalid regex") from failure
    from argparse import Namespace

    from barnabas.cli import session
    from barnabas.cli.command_config import CommandConfig
    from barnabas.cli.kafka.replica_comparison import compare

    connection = Namespace(
        bootstrap=given["broker-list"], command_config=CommandConfig(None), timeout=30, json=False
    )
    return session.run(connection, partial(compare, topics, given))

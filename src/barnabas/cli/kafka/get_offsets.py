"""`kafka-get-offsets`: the offsets of partitions at a time, as `topic:partition:offset`."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from barnabas.cli.kafka.flags import BOOTSTRAP, COMMAND_CONFIG, Flag, Flags, Given, UsageError

if TYPE_CHECKING:
    from barnabas.client.cluster_client import ClusterClient

FAILURE = "Error occurred: "

FLAGS = Flags(
    "Print the offsets of partitions at a time.",
    (
        BOOTSTRAP,
        Flag("--broker-list", "HOST:PORT[,...]", "deprecated: use --bootstrap-server"),
        COMMAND_CONFIG,
        Flag(
            "--topic-partitions",
            "PATTERN[,...]",
            "topics (a regex) with partitions: t, t:1, t:0-2 (2 excluded), t:5-, t:-3, :0",
        ),
        Flag("--topic", "REGEX", "topics; without it, all"),
        Flag("--partitions", "N[,...]", "partitions; without it, all"),
        Flag(
            "--time",
            "TIME",
            "milliseconds since 1970, -1 or latest, -2 or earliest, -3 or max-timestamp, -4 or "
            "earliest-local, -5 or latest-tiered",
            default="latest",
        ),
        Flag("--exclude-internal-topics", help="without internal topics"),
    ),
)

NAMES = {
    "latest": -1,
    "earliest": -2,
    "max-timestamp": -3,
    "earliest-local": -4,
    "latest-tiered": -5,
    "earliest-pending-upload": -6,
}
RULE = re.compile(r"([^:,]*)(?::(?:([0-9]*)|([0-9]*)-([0-9]*)))?")

Rule = Callable[[str, int], bool]
"""Returns whether a topic's partition is wanted."""


def run(given: Given) -> int:
    """Check the arguments, look the offsets up, and print those that there are."""
    if "bootstrap-server" not in given:
        if "broker-list" not in given:
            raise UsageError('Missing required argument "[bootstrap-server]"')
        given.values["bootstrap-server"] = given["broker-list"]
    if "topic-partitions" in given and ("topic" in given or "partitions" in given):
        raise UsageError("--topic-partitions cannot be used with --topic or --partitions")
    timestamp = _timestamp(given["time"])
    if "topic-partitions" in given:
        rules = [_rule(text) for text in given["topic-partitions"].split(",")]
    else:
        rules = [_plain_rule(given["topic"] or ".*", given["partitions"] or "")]
    from barnabas.cli import session

    exclude = "exclude-internal-topics" in given
    return session.run(given.connection(), partial(_print, rules, timestamp, exclude))


def _timestamp(text: str) -> int:
    if text in NAMES:
        return NAMES[text]
    if not re.fullmatch(r"[-+]?\d{1,19}", text, re.ASCII):
        raise UsageError(
            f"Malformed time argument {text}. Please use -1 or latest / -2 or earliest / -3 or "
            "max-timestamp / -4 or earliest-local / -5 or latest-tiered, or a specified long "
            "format timestamp"
        )
    return int(text)


def _rule(text: str) -> Rule:
    found = RULE.fullmatch(text)
    if found is None:
        raise UsageError(f"Invalid rule specification: {text}")
    name, one, lowest, end = found.groups()
    topics = _pattern(name or ".*")

    def wanted(number: int) -> bool:
        if one:
            return number == int(one)
        return int(lowest or 0) <= number and (not end or number < int(end))

    return lambda topic, number: bool(topics.fullmatch(topic)) and wanted(number)


def _plain_rule(pattern: str, numbers: str) -> Rule:
    topics = _pattern(pattern)
    try:
        wanted = {int(number) for number in numbers.split(",")} if numbers else None
    except ValueError:
        raise UsageError(
            "--partitions expects a comma separated list of numeric partition ids, but received: "
            f"{numbers}"
        ) from None
    return lambda topic, number: (
        bool(topics.fullmatch(topic)) and (number < 0 or wanted is None or number in wanted)
    )


def _pattern(text: str) -> re.Pattern[str]:
    """Compile a pattern of topics, in which `,` stands for `|`, as in Kafka's lists."""
    try:
        return re.compile(text.strip().replace(",", "|").replace(" ", "").strip("\"'"))
    except re.error as failure:
        raise UsageError(f"{text} is an invalid regex: {failure}") from failure


async def _print(
    rules: list[Rule], timestamp: int, exclude_internal: bool, client: ClusterClient
) -> int:
    from barnabas.admin.offsets import find_offsets
    from barnabas.admin.topics import describe_topics
    from barnabas.model.errors import InvalidValueError, RequestError
    from barnabas.model.ids import TopicPartition

    partitions = [
        TopicPartition(topic.name, number)
        for topic in await describe_topics(client, None)
        if not (topic.internal and exclude_internal)
        for number in sorted(topic.partitions)
        if any(rule(topic.name, number) for rule in rules)
    ]
    if not partitions:
        raise InvalidValueError("Could not match any topic-partitions with the specified filters")
    found = await find_offsets(client, dict.fromkeys(partitions, timestamp))
    for key in sorted(partitions, key=str):
        outcome = found[key]
        if isinstance(outcome, RequestError):
            print(
                f"Skip getting offsets for topic-partition {key} due to error: {outcome}",
                file=sys.stderr,
            )
        elif outcome.offset >= 0:
            print(f"{key.topic}:{key.partition}:{outcome.offset}")
    return 0

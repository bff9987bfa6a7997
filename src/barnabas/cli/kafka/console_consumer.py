"""`kafka-console-consumer`: print the records of topics."""

from __future__ import annotations

import random
import sys
from typing import TYPE_CHECKING, Any

from barnabas.cli.kafka.flags import BOOTSTRAP, Flag, Flags, Given, UsageError

if TYPE_CHECKING:
    from barnabas import KafkaConsumer
    from barnabas.cli.kafka.record_formatters import Formatter

TOOL = "kafka-console-consumer"
DEFAULT_FORMATTER = "org.apache.kafka.tools.consumer.DefaultMessageFormatter"
POLL_MS = 1000.0
RECORDS_MAX = 500

FLAGS = Flags(
    "Read data from topics and print it on standard output.",
    (
        BOOTSTRAP._replace(required=True),
        Flag("--topic", "TOPIC", "topic to read"),
        Flag("--include", "REGEX", "topics to read: those whose whole names match"),
        Flag("--whitelist", "REGEX", "older name of --include"),
        Flag("--partition", "N", "partition to read, from its end unless --offset is given", int),
        Flag("--offset", "OFFSET", "offset to read from: a number, earliest or latest (default)"),
        Flag("--group", "GROUP", "consumer group to read in"),
        Flag("--from-beginning", help="start at the beginning where the group has no offset"),
        Flag("--max-messages", "N", "records to read (default: all that arrive)", int),
        Flag("--timeout-ms", "MS", "end when no record has arrived for so long", int),
        Flag("--isolation-level", "LEVEL", "read_committed or read_uncommitted (default)"),
        Flag("--skip-message-on-error", help="skip records that cannot be printed"),
        Flag("--enable-systest-events", help="print shutdown_complete at the end"),
        Flag("--formatter", "CLASS", "how records are printed", default=DEFAULT_FORMATTER),
        Flag("--property", "NAME=VALUE", "property of the formatter: print.key, …", many=True),
        Flag("--formatter-property", "NAME=VALUE", "the same", many=True),
        Flag("--formatter-config", "FILE", "properties of the formatter"),
        Flag("--key-deserializer", "CLASS", "how keys are read"),
        Flag("--value-deserializer", "CLASS", "how values are read"),
        Flag("--consumer-property", "NAME=VALUE", "property of the consumer", many=True),
        Flag("--command-property", "NAME=VALUE", "the same", many=True),
        Flag("--consumer.config", "FILE", "properties of the consumer"),
        Flag("--command-config", "FILE", "the same"),
        Flag("--new-consumer", inert="there is no other one"),
    ),
)
ALIKE = (
    ("property", "formatter-property"),
    ("consumer-property", "command-property"),
    ("consumer.config", "command-config"),
)


def run(given: Given) -> int:
    """Print records until there are enough, or none has arrived for the timeout."""
    from barnabas.cli.kafka.record_formatters import formatter_named

    check(given)
    options = consumer_options(given)
    formatter = formatter_named(given["formatter"], formatter_properties(given))
    from barnabas import KafkaConsumer
    from barnabas.cli.interruption import INTERRUPTION
    from barnabas.cli.kafka.client_properties import connecting

    count = Count()
    file = given["consumer.config"] or given["command-config"]
    with connecting(file, "--command-config"):
        consumer = KafkaConsumer(**options)
    try:
        with consumer:
            start(consumer, given)
            print_records(consumer, formatter, given, count)
    finally:
        print(f"Processed a total of {count.processed} messages", file=sys.stderr)
        INTERRUPTION.closed()
        if given["enable-systest-events"]:
            print("shutdown_complete", flush=True)
    return 0


class Count:
    """How many records were processed."""

    processed = 0


def check(given: Given) -> None:
    """Raise UsageError for flags that do not go together."""
    for older, newer in ALIKE:
        if older in given and newer in given:
            raise UsageError(f"Options --{older} and --{newer} cannot be specified together.")
    topics = ("topic" in given) + ("include" in given or "whitelist" in given)
    if topics != 1:
        raise UsageError("Exactly one of --include/--topic is required.")
    if "partition" in given:
        if "topic" not in given:
            raise UsageError("The topic is required when partition is specified.")
        if given["from-beginning"] and "offset" in given:
            raise UsageError("Options from-beginning and offset cannot be specified together.")
    elif "offset" in given:
        raise UsageError("The partition is required when offset is specified.")
    _offset(given)


def _offset(given: Given) -> int | str:
    """Return where to begin in the partition: an offset, earliest or latest."""
    text = given["offset"]
    if text is None:
        return "earliest" if given["from-beginning"] else "latest"
    if text.lower() in ("earliest", "latest"):
        return str(text.lower())
    if not text.isdecimal():
        raise UsageError(
            f"The provided offset value '{text}' is incorrect. Valid values are "
            "'earliest', 'latest', or a non-negative long."
        )
    return int(text)


def consumer_options(given: Given) -> dict[str, Any]:
    """Return the options of the consumer; raise UsageError where they contradict each other."""
    from barnabas.cli.kafka.client_properties import assignments, read_file, understood
    from barnabas.config.clients.consumer import ConsumerOptions

    file = {
        **read_file("--consumer.config", given["consumer.config"]),
        **read_file("--command-config", given["command-config"]),
    }
    own = {
        **assignments("--consumer-property", given["consumer-property"]),
        **assignments("--command-property", given["command-property"]),
    }
    groups = dict.fromkeys(
        group for group in (given["group"], file.get("group.id"), own.get("group.id")) if group
    )
    if len(groups) > 1:
        names = ", ".join(f"'{group}'" for group in groups)
        raise UsageError(
            "The group ids provided in different places (directly using '--group', via "
            "'--consumer-property', or via '--consumer.config') do not match. "
            f"Detected group ids: {names}"
        )
    if groups and "partition" in given:
        raise UsageError("Options group and partition cannot be specified together.")
    properties = {**file, **own, "bootstrap.servers": given["bootstrap-server"]}
    reset = properties.get("auto.offset.reset")
    if reset not in (None, "earliest") and given["from-beginning"]:
        raise UsageError(
            "Can't simultaneously specify --from-beginning and "
            f"'auto.offset.reset={reset}', please remove one option"
        )
    if reset is None:
        properties["auto.offset.reset"] = "earliest" if given["from-beginning"] else "latest"
    properties.setdefault("client.id", "console-consumer")
    if "isolation-level" in given:
        properties["isolation.level"] = given["isolation-level"]
    if groups:
        properties["group.id"] = next(iter(groups))
    else:
        properties["group.id"] = f"console-consumer-{random.randrange(100_000)}"
        properties.setdefault("enable.auto.commit", "false")
    return dict(understood(TOOL, ConsumerOptions, properties))


def formatter_properties(given: Given) -> dict[str, str]:
    """Return the properties of the formatter: those of the file, then the flags'."""
    from barnabas.cli.kafka.client_properties import assignments, read_file

    properties = read_file("--formatter-config", given["formatter-config"])
    for flag in ("key-deserializer", "value-deserializer"):
        if given[flag]:
            properties[flag.replace("-", ".")] = given[flag]
    own = given["property"] + given["formatter-property"]
    return {**properties, **assignments("--property", own)}


def start(consumer: KafkaConsumer, given: Given) -> None:
    """Subscribe to the topics, or assign the partition."""
    if "partition" not in given:
        if "topic" in given:
            consumer.subscribe([given["topic"]])
        else:
            consumer.subscribe(pattern=given["include"] or given["whitelist"])
        return
    from barnabas import TopicPartition
    from barnabas.model.errors import InvalidValueError

    topic, number = given["topic"], given["partition"]
    known = consumer.partitions_for_topic(topic)
    if number not in known:
        raise InvalidValueError(
            f"topic {topic!r} has no partition {number}" if known else f"no topic {topic!r}"
        )
    partition = TopicPartition(topic, number)
    consumer.assign([partition])
    offset = _offset(given)
    if offset == "earliest":
        consumer.seek_to_beginning(partition)
    elif offset == "latest":
        consumer.seek_to_end(partition)
    else:
        consumer.seek(partition, int(offset))


def print_records(
    consumer: KafkaConsumer, formatter: Formatter, given: Given, count: Count
) -> None:
    """Print what arrives, and count it."""
    most = given["max-messages"]
    most = None if most is None or most < 0 else most
    timeout_ms = given["timeout-ms"]
    timeout_ms = None if timeout_ms is None or timeout_ms < 0 else timeout_ms
    out = sys.stdout.buffer
    while most is None or count.processed < most:
        left = RECORDS_MAX if most is None else min(RECORDS_MAX, most - count.processed)
        found = consumer.poll(POLL_MS if timeout_ms is None else timeout_ms, max_records=left)
        if not found and timeout_ms is not None:
            print(f"No record has arrived for {timeout_ms} ms (--timeout-ms)", file=sys.stderr)
            return
        for records in found.values():
            for record in records:
                count.processed += 1
                try:
                    text = formatter(record)
                except Exception as failure:
                    if not given["skip-message-on-error"]:
                        out.flush()
                        raise
                    print(f"Error processing message, skipping: {failure}", file=sys.stderr)
                    continue
                out.write(text)
        out.flush()

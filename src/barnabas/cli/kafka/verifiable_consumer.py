"""`kafka-verifiable-consumer`: read in a group, and print what happens to it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from barnabas.cli.kafka.flags import BOOTSTRAP, Flag, Flags, Given, UsageError
from barnabas.cli.kafka.verifiable_events import print_event

if TYPE_CHECKING:
    from barnabas import KafkaConsumer, TopicPartition
    from barnabas.kernels import ConsumerRecord

TOOL = "kafka-verifiable-consumer"
POLL_MS = 1000.0
RECORDS_MAX = 500
RANGE = "org.apache.kafka.clients.consumer.RangeAssignor"

FLAGS = Flags(
    "Consume a topic in a group, and print its events as JSON.",
    (
        BOOTSTRAP,
        Flag("--broker-list", "HOST:PORT[,...]", "older name of --bootstrap-server"),
        Flag("--topic", "TOPIC", "topic to read", required=True),
        Flag("--group-id", "GROUP", "consumer group", required=True),
        Flag("--group-instance-id", "ID", "id of a static member"),
        Flag("--group-protocol", "PROTOCOL", "classic or consumer", default="classic"),
        Flag("--group-remote-assignor", "NAME", "assignor of the coordinator"),
        Flag("--max-messages", "N", "records to read; -1: until it is stopped", int, default=-1),
        Flag("--session-timeout", "MS", "session timeout of the member", int, default=30_000),
        Flag("--verbose", help="print each record"),
        Flag("--enable-autocommit", help="commit offsets periodically"),
        Flag("--reset-policy", "POLICY", "earliest, latest or none", default="earliest"),
        Flag("--assignment-strategy", "CLASS", "how members share partitions", default=RANGE),
        Flag("--consumer.config", "FILE", "properties of the consumer"),
        Flag("--command-config", "FILE", "the same"),
    ),
    helps_alone=True,
    ignores_words=False,
)


def run(given: Given) -> int:
    """Read until there are enough records, or it is stopped."""
    options = consumer_options(given)
    from barnabas import KafkaConsumer
    from barnabas.cli.interruption import INTERRUPTION
    from barnabas.cli.kafka.client_properties import connecting

    with connecting(given["consumer.config"] or given["command-config"], "--command-config"):
        consumer = KafkaConsumer(**options)
    try:
        print_event("startup_complete")
        consumer.subscribe([given["topic"]], listener=_listener())
        Reading(given).run(consumer)
    finally:
        consumer.close()
        print_event("shutdown_complete")
        INTERRUPTION.closed()
    return 0


def consumer_options(given: Given) -> dict[str, Any]:
    """Return the options of the consumer: those of the file, overridden by the flags."""
    from barnabas.cli.kafka.client_properties import read_file, understood
    from barnabas.config.clients.consumer import ConsumerOptions

    bootstrap = given["bootstrap-server"] or given["broker-list"]
    if not bootstrap:
        raise UsageError('Missing required argument "[bootstrap-server]"')
    if "consumer.config" in given and "command-config" in given:
        raise UsageError("Options --consumer.config and --command-config are mutually exclusive.")
    properties = {
        **read_file("--consumer.config", given["consumer.config"]),
        **read_file("--command-config", given["command-config"]),
        "bootstrap.servers": bootstrap,
        "group.id": given["group-id"],
        "enable.auto.commit": "true" if given["enable-autocommit"] else "false",
        "auto.offset.reset": given["reset-policy"],
        "max.poll.records": str(RECORDS_MAX),
    }
    if given["group-instance-id"]:
        properties["group.instance.id"] = given["group-instance-id"]
    if given["group-protocol"].lower() == "consumer":
        properties["group.protocol"] = "consumer"
        if given["group-remote-assignor"]:
            properties["group.remote.assignor"] = given["group-remote-assignor"]
    else:
        properties["partition.assignment.strategy"] = given["assignment-strategy"]
        properties["session.timeout.ms"] = str(given["session-timeout"])
    return dict(understood(TOOL, ConsumerOptions, properties))


class Reading:
    """Counts the records, and commits their offsets."""

    def __init__(self, given: Given) -> None:
        most = given["max-messages"]
        self._most = None if most < 0 else most
        self._verbose = given["verbose"]
        self._commits = not given["enable-autocommit"]
        self._read = 0

    def run(self, consumer: KafkaConsumer) -> None:
        """Read, print and commit until there are enough."""
        while self._most is None or self._read < self._most:
            left = RECORDS_MAX if self._most is None else min(RECORDS_MAX, self._most - self._read)
            found = consumer.poll(POLL_MS, max_records=left)
            if not found:
                continue
            offsets = self._print(found)
            if self._commits:
                self._commit(consumer, offsets)

    def _print(
        self, found: dict[TopicPartition, list[ConsumerRecord]]
    ) -> dict[TopicPartition, int]:
        """Print what was read, and return the offsets after it."""
        summaries = []
        offsets = {}
        for partition, records in found.items():
            if self._verbose:
                for record in records:
                    print_event(
                        "record_data",
                        key=_text(record.key),
                        value=_text(record.value),
                        topic=record.topic,
                        partition=record.partition,
                        offset=record.offset,
                    )
            summaries.append(
                {
                    **_document(partition),
                    "count": len(records),
                    "minOffset": records[0].offset,
                    "maxOffset": records[-1].offset,
                }
            )
            offsets[partition] = records[-1].offset + 1
            self._read += len(records)
        count = sum(len(records) for records in found.values())
        print_event("records_consumed", count=count, partitions=summaries)
        return offsets

    def _commit(self, consumer: KafkaConsumer, offsets: dict[TopicPartition, int]) -> None:
        from barnabas import OffsetAndMetadata
        from barnabas.errors import FencedInstanceIdError
        from barnabas.model.errors import BarnabasError

        error = None
        try:
            consumer.commit(
                {each: OffsetAndMetadata(offset, "", -1) for each, offset in offsets.items()}
            )
        except FencedInstanceIdError:
            raise
        except BarnabasError as failure:
            error = str(failure)
        committed = [{**_document(each), "offset": offset} for each, offset in offsets.items()]
        fields: dict[str, object] = {"offsets": committed}
        if error is not None:
            fields["error"] = error
        print_event("offsets_committed", **fields, success=error is None)


def _listener() -> Any:
    from barnabas import ConsumerRebalanceListener

    class Listener(ConsumerRebalanceListener):
        def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
            print_event("partitions_revoked", partitions=_documents(revoked))

        def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
            print_event("partitions_assigned", partitions=_documents(assigned))

    return Listener()


def _documents(partitions: Iterable[TopicPartition]) -> list[dict[str, Any]]:
    return [_document(partition) for partition in sorted(partitions)]


def _document(partition: TopicPartition) -> dict[str, Any]:
    return {"topic": partition.topic, "partition": partition.partition}


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode(errors="replace")

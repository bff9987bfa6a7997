"""`kafka-consumer-perf-test`: measure how fast records are read."""

from __future__ import annotations

import random
import re
import time
from typing import TYPE_CHECKING, Any

from barnabas.cli.kafka.flags import BOOTSTRAP, Flag, Flags, Given, UsageError

if TYPE_CHECKING:
    from barnabas import KafkaConsumer

TOOL = "kafka-consumer-perf-test"
POLL_MS = 100.0
MB = 1024 * 1024
MORE_COLUMNS = ", rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
COLUMNS = "data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec" + MORE_COLUMNS

FLAGS = Flags(
    "Verify the performance of consumers.",
    (
        BOOTSTRAP,
        Flag("--broker-list", "HOST:PORT[,...]", "older name of --bootstrap-server"),
        Flag("--topic", "TOPIC", "topic to read"),
        Flag("--include", "REGEX", "topics to read: those whose whole names match"),
        Flag("--group", "GROUP", "consumer group (default: perf-consumer- and a number)"),
        Flag("--messages", "N", "number of records to read", int),
        Flag("--num-records", "N", "the same", int),
        Flag("--fetch-size", "BYTES", "data of a partition in a request", int, default=MB),
        Flag("--from-latest", help="start at the end where the group has no offset"),
        Flag("--socket-buffer-size", "BYTES", "receive buffer of sockets", int, default=2 * MB),
        Flag("--consumer.config", "FILE", "properties of the consumer"),
        Flag("--command-config", "FILE", "the same"),
        Flag("--command-property", "NAME=VALUE", "property of the consumer", many=True),
        Flag("--print-metrics", help="print the consumer's metrics at the end"),
        Flag("--show-detailed-stats", help="print statistics of each interval"),
        Flag("--reporting-interval", "MS", "time between reports", int, default=5000),
        Flag("--timeout", "MS", "end when no record arrives for so long", int, default=10_000),
        Flag("--date-format", "PATTERN", "how times are shown", default="yyyy-MM-dd HH:mm:ss:SSS"),
        Flag("--hide-header", help="do not print the header"),
        Flag("--num-fetch-threads", "N", inert="there is one consumer"),
        Flag("--threads", "N", inert="there is one consumer"),
        Flag("--new-consumer", inert="there is no other one"),
    ),
)


def run(given: Given) -> int:
    """Read the records, and print one line of statistics."""
    check(given)
    options = consumer_options(given)
    detailed = given["show-detailed-stats"]
    if not given["hide-header"]:
        first = "time, threadId, " if detailed else "start.time, end.time, "
        print(first + COLUMNS, flush=True)
    from barnabas import KafkaConsumer
    from barnabas.cli.kafka.client_properties import connecting

    with connecting(given["consumer.config"] or given["command-config"], "--command-config"):
        consumer = KafkaConsumer(**options)
    with consumer:
        began_ms = _now_ms()
        reading = Reading(given, began_ms)
        reading.read(consumer)
        ended_ms = _now_ms()
        metrics = consumer.metrics() if given["print-metrics"] else {}
    if not detailed:
        print(reading.line(began_ms, ended_ms))
    if metrics:
        from barnabas.cli.kafka.metric_lines import metric_lines

        print("\n".join(metric_lines(metrics)))
    return 0


def check(given: Given) -> None:
    """Raise UsageError for what is missing or contradicts itself."""
    if "messages" in given and "num-records" in given:
        raise UsageError("Exactly one of --messages/--num-records is required.")
    if "messages" not in given and "num-records" not in given:
        raise UsageError('Missing required argument "[messages]"')
    if ("topic" in given) == ("include" in given):
        raise UsageError("Exactly one of --topic/--include is required.")
    if not (given["bootstrap-server"] or given["broker-list"]):
        raise UsageError('Missing required argument "[bootstrap-server]"')
    if given["reporting-interval"] <= 0:
        raise UsageError("Reporting interval must be greater than 0.")


def consumer_options(given: Given) -> dict[str, Any]:
    """Return the options of the consumer: those of the file, overridden by the flags."""
    from barnabas.cli.kafka.client_properties import assignments, read_file, understood
    from barnabas.config.clients.consumer import ConsumerOptions

    properties = {
        **read_file("--consumer.config", given["consumer.config"]),
        **read_file("--command-config", given["command-config"]),
        **assignments("--command-property", given["command-property"]),
        "bootstrap.servers": given["bootstrap-server"] or given["broker-list"],
        "group.id": given["group"] or f"perf-consumer-{random.randrange(100_000)}",
        "receive.buffer.bytes": str(given["socket-buffer-size"]),
        "max.partition.fetch.bytes": str(given["fetch-size"]),
        "auto.offset.reset": "latest" if given["from-latest"] else "earliest",
        "check.crcs": "false",
    }
    properties.setdefault("client.id", "perf-consumer-client")
    return dict(understood(TOOL, ConsumerOptions, properties))


class Reading:
    """What was read, and how long the group took to assign partitions."""

    def __init__(self, given: Given, began_ms: int) -> None:
        self._given = given
        self.records = 0
        self.bytes = 0
        self.joining_ms = 0
        self._round_ms = 0
        self._join_began_ms = began_ms
        self._assigned: set[object] = set()

    def read(self, consumer: KafkaConsumer) -> None:
        """Read until there are enough records, or none arrives for the timeout."""
        given = self._given
        wanted = given["messages"] if "messages" in given else given["num-records"]
        timeout_ms, interval_ms = given["timeout"], given["reporting-interval"]
        listener = _listener(self)
        if given["topic"]:
            consumer.subscribe([given["topic"]], listener=listener)
        else:
            consumer.subscribe(pattern=given["include"], listener=listener)
        now_ms = last_ms = report_ms = _now_ms()
        last_records = last_bytes = 0
        while self.records < wanted and now_ms - last_ms <= timeout_ms:
            found = consumer.poll(POLL_MS, max_records=500)
            now_ms = _now_ms()
            if not found:
                continue
            last_ms = now_ms
            for records in found.values():
                self.records += len(records)
                self.bytes += sum(
                    len(record.key or b"") + len(record.value or b"") for record in records
                )
            if now_ms - report_ms >= interval_ms:
                if given["show-detailed-stats"]:
                    print(
                        self._interval_line(
                            self.records - last_records, self.bytes - last_bytes, report_ms, now_ms
                        ),
                        flush=True,
                    )
                self._round_ms = 0
                report_ms, last_records, last_bytes = now_ms, self.records, self.bytes
        if self.records < wanted:
            print(
                "WARNING: Exiting before consuming the expected number of messages: timeout "
                f"({timeout_ms} ms) exceeded. You can use the --timeout option to increase the "
                "timeout."
            )

    def revoked(self, partitions: set[Any]) -> None:
        """Handle partitions that are revoked: without any, joining begins."""
        self._assigned -= partitions
        if not self._assigned:
            self._join_began_ms = _now_ms()

    def assigned(self, partitions: set[Any]) -> None:
        """Handle partitions that are assigned: joining has ended."""
        if not self._assigned:
            took_ms = _now_ms() - self._join_began_ms
            self.joining_ms += took_ms
            self._round_ms += took_ms
        self._assigned |= partitions

    def line(self, began_ms: int, ended_ms: int) -> str:
        """Return the line of all that was read."""
        shown = self._given["date-format"]
        seconds = (ended_ms - began_ms) / 1000
        fetching_ms = ended_ms - began_ms - self.joining_ms
        megabytes = self.bytes / MB
        return (
            f"{date(began_ms, shown)}, {date(ended_ms, shown)}, {megabytes:.4f}, "
            f"{_rate(megabytes, seconds):.4f}, {self.records}, "
            f"{_rate(self.records, seconds):.4f}, {self.joining_ms}, {fetching_ms}, "
            f"{_rate(megabytes, fetching_ms / 1000):.4f}, "
            f"{_rate(self.records, fetching_ms / 1000):.4f}"
        )

    def _interval_line(self, records: int, size: int, began_ms: int, ended_ms: int) -> str:
        seconds = (ended_ms - began_ms) / 1000
        fetching_ms = ended_ms - began_ms - self._round_ms
        megabytes = size / MB
        fetched_s = max(fetching_ms, 0) / 1000
        return (
            f"{date(ended_ms, self._given['date-format'])}, 0, {self.bytes / MB:.4f}, "
            f"{_rate(megabytes, seconds):.4f}, {self.records}, {_rate(records, seconds):.4f}, "
            f"{self._round_ms}, {fetching_ms}, {_rate(megabytes, fetched_s):.4f}, "
            f"{_rate(records, fetched_s):.4f}"
        )


def _listener(reading: Reading) -> Any:
    from barnabas import ConsumerRebalanceListener

    class Listener(ConsumerRebalanceListener):
        def on_partitions_revoked(self, revoked: set[Any]) -> None:
            reading.revoked(revoked)

        def on_partitions_assigned(self, assigned: set[Any]) -> None:
            reading.assigned(assigned)

    return Listener()


def _rate(amount: float, seconds: float) -> float:
    return amount / seconds if seconds > 0 else 0.0


def _now_ms() -> int:
    return int(time.time() * 1000)


_LETTERS = {
    "yyyy": "%Y",
    "yy": "%y",
    "MM": "%m",
    "dd": "%d",
    "HH": "%H",
    "mm": "%M",
    "ss": "%S",
    "Z": "%z",
}


def date(time_ms: int, pattern: str) -> str:
    """Return a local time in the letters of Java's SimpleDateFormat that are common."""

    def replaced(match: re.Match[str]) -> str:
        letters = match.group()
        if letters == "SSS":
            return f"{time_ms % 1000:03d}"
        if letters.startswith("'"):
            return letters[1:-1] or "'"
        if letters not in _LETTERS:
            raise UsageError(f"--date-format {pattern}: {letters} is not understood")
        return time.strftime(_LETTERS[letters], time.localtime(time_ms / 1000))

    return re.sub(r"'[^']*'|([A-Za-z])\1*", replaced, pattern)

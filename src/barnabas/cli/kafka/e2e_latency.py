"""`kafka-e2e-latency`: measure how long a record takes to its consumer, one at a time."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

from barnabas.cli.kafka.flags import Flag, Flags, Given, UsageError

if TYPE_CHECKING:
    from barnabas.cli.perf.plan import Plan

TOOL = "kafka-e2e-latency"
USAGE = (
    "USAGE: kafka-e2e-latency broker_list topic num_messages producer_acks message_size_bytes "
    "[optional] properties_file"
)

FLAGS = Flags(
    "Send one record after another, and measure until it is read.",
    (
        Flag("--bootstrap-server", "HOST:PORT[,...]", "brokers to connect to"),
        Flag("--topic", "TOPIC", "topic to use; it is created if it does not exist"),
        Flag("--num-records", "N", "number of records"),
        Flag("--producer-acks", "ACKS", "1 or all"),
        Flag("--record-size", "BYTES", "size of each record"),
        Flag("--command-config", "FILE", "properties of both clients"),
    ),
    words="[BROKERS TOPIC RECORDS ACKS BYTES [FILE]]",
)
NAMES = ("bootstrap-server", "topic", "num-records", "producer-acks", "record-size")


def run(given: Given) -> int:
    """Send and read the records; print every thousandth latency, and the percentiles."""
    words = words_of(given)
    plan = plan_of(words)
    options = words[5] if len(words) > 5 else None
    from barnabas.cli.kafka.client_properties import connecting
    from barnabas.cli.perf.round_trips import measure_round_trips

    latencies = Latencies()
    with connecting(options, "--command-config"):
        _create_topic(plan)
        measure_round_trips(plan, latencies, threading.Event())
    latencies.print_totals()
    return 0


def words_of(given: Given) -> list[str]:
    """Return the arguments in the order of the older form: all positions, or all flags."""
    words = list(given.words)
    if not words:
        words = [given[name] for name in NAMES if given[name] is not None]
        if len(words) == len(NAMES) and given["command-config"]:
            words.append(given["command-config"])
    if len(words) not in (5, 6):
        raise UsageError(USAGE)
    if words[3] not in ("1", "all"):
        raise UsageError(
            "Latency testing requires synchronous acknowledgement. Please use 1 or all"
        )
    for name, word in (("num_messages", words[2]), ("message_size_bytes", words[4])):
        if not word.isdecimal() or int(word) < 1:
            raise UsageError(f"{name} {word!r}: must be a whole number of at least 1")
    return words


def plan_of(words: list[str]) -> Plan:
    """Return what is to be measured."""
    from barnabas.cli.kafka.client_properties import read_file, understood
    from barnabas.cli.perf.plan import Plan
    from barnabas.cli.perf.round_trips import MARK_SIZE
    from barnabas.config.clients.common import CommonOptions

    brokers, topic, count, acks, size = words[:5]
    if int(size) < MARK_SIZE:
        raise UsageError(f"message_size_bytes {size}: must be at least {MARK_SIZE}")
    properties = read_file("--command-config", words[5] if len(words) > 5 else None)
    properties["bootstrap.servers"] = brokers
    shared = understood(TOOL, CommonOptions, properties)
    return Plan(
        "latency",
        topic,
        options={**shared, "acks": acks},
        records=int(count),
        record_size=int(size),
    )


def _create_topic(plan: Plan) -> None:
    from barnabas import KafkaAdminClient

    options: dict[str, Any] = {k: v for k, v in plan.options.items() if k != "acks"}
    with KafkaAdminClient(**options) as admin:
        if plan.topic in admin.list_topics():
            return
        print(
            f'Topic "{plan.topic}" does not exist. Will create topic with 1 partition(s) and '
            "replication factor = 1"
        )
        admin.create_topics({plan.topic: {"num_partitions": 1, "replication_factor": 1}})


class Latencies:
    """Kafka's statistics of round trips: whole milliseconds, but for the average."""

    def __init__(self) -> None:
        self._latencies_ms: list[int] = []
        self._total_s = 0.0

    def begin(self) -> None:
        """Nothing is timed but the records."""

    def end(self) -> None:
        """Nothing is timed but the records."""

    def succeeded(self, started_s: float, size: int, _: object = None) -> None:
        """Count a record that was read."""
        took_s = time.perf_counter() - started_s
        if len(self._latencies_ms) % 1000 == 0:
            print(f"{len(self._latencies_ms)}\t{took_s * 1000}", flush=True)
        self._latencies_ms.append(int(took_s * 1000))
        self._total_s += took_s

    def failed(self, failure: object) -> None:
        """A record that was not written raises where it is waited for."""

    def print_totals(self) -> None:
        """Print the average and the percentiles."""
        latencies = sorted(self._latencies_ms)
        count = len(latencies)
        at = [latencies[int(count * share)] for share in (0.5, 0.99, 0.999)]
        print(f"Avg latency: {self._total_s * 1000 / count:.4f} ms")
        print(f"Percentiles: 50th = {at[0]}, 99th = {at[1]}, 99.9th = {at[2]}")

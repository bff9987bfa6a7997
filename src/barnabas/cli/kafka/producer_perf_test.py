"""`kafka-producer-perf-test`: measure how fast records are sent."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from barnabas.cli.kafka.flags import Flag, Flags, Given, UsageError

if TYPE_CHECKING:
    from barnabas.cli.perf.plan import Plan

TOOL = "kafka-producer-perf-test"
TRANSACTION_MS = 3000
SAMPLES_MAX = 500_000

FLAGS = Flags(
    "Verify the performance of producers.",
    (
        Flag("--topic", "TOPIC", "topic to produce to", required=True),
        Flag("--num-records", "N", "number of records to produce", int, required=True),
        Flag("--record-size", "BYTES", "size of each record", int),
        Flag("--payload-file", "FILE", "file with payloads, which are chosen at random"),
        Flag("--payload-monotonic", help="payloads are the numbers from 0 on"),
        Flag("--payload-delimiter", "TEXT", "what separates payloads in the file", default="\\n"),
        Flag("--throughput", "N", "records per second; -1: no limit", float, required=True),
        Flag("--bootstrap-server", "HOST:PORT[,...]", "brokers to connect to"),
        Flag("--producer-props", "NAME=VALUE...", "properties of the producer", several=True),
        Flag("--command-property", "NAME=VALUE", "property of the producer", many=True),
        Flag("--producer.config", "FILE", "properties of the producer"),
        Flag("--command-config", "FILE", "the same"),
        Flag("--print-metrics", help="print the producer's metrics at the end"),
        Flag("--transactional-id", "ID", "transactional id to use"),
        Flag("--transaction-duration-ms", "MS", "length of each transaction (default: 3000)", int),
        Flag("--warmup-records", "N", "records that the steady state leaves out", int, default=0),
        Flag("--reporting-interval", "MS", "time between reports", int, default=5000),
    ),
    helps_alone=True,
    ignores_words=False,
    one_of=(("record-size", "payload-file", "payload-monotonic"),),
)


def run(given: Given) -> int:
    """Send the records, print a line every five seconds, and the totals."""
    check(given)
    plan = plan_of(given)
    if plan.payload_file is not None:
        from barnabas.cli.perf.payloads import read_payloads

        print(f"Reading payloads from: {Path(plan.payload_file).absolute()}")
        count = len(read_payloads(plan.payload_file, plan.payload_delimiter))
        print(f"Number of messages read: {count}")
    warmup = given["warmup-records"]
    if warmup > 0:
        print(
            f"Warmup first {warmup} records. Steady state results will print after the complete "
            "test summary."
        )
    from barnabas.cli.kafka.client_properties import connecting
    from barnabas.cli.perf.producers import BarnabasProducer, send_all

    with connecting(given["producer.config"] or given["command-config"], "--command-config"):
        producer = BarnabasProducer(plan)
    stats = ProducerStats(given["num-records"], warmup, given["reporting-interval"])
    try:
        send_all(producer, plan, stats, threading.Event())
        stats.print_totals()
        if given["print-metrics"]:
            from barnabas.cli.kafka.metric_lines import metric_lines

            print("\n".join(metric_lines(producer.client.metrics())))
    finally:
        producer.close()
    return 0


def check(given: Given) -> None:
    """Raise UsageError for numbers that make no test, and for flags that exclude each other."""
    if given["num-records"] <= 0:
        raise UsageError("--num-records should be greater than zero.")
    if given["warmup-records"] >= given["num-records"]:
        raise UsageError(
            "The value for --warmup-records must be strictly fewer than the number of records in "
            "the test, --num-records."
        )
    if given["record-size"] is not None and given["record-size"] <= 0:
        raise UsageError("--record-size should be greater than zero.")
    if given["transaction-duration-ms"] is not None and given["transaction-duration-ms"] <= 0:
        raise UsageError("--transaction-duration-ms should be greater than zero.")
    if given["reporting-interval"] <= 0:
        raise UsageError("--reporting-interval should be greater than zero.")
    if "command-property" in given and "producer-props" in given:
        raise UsageError("--command-property and --producer-props cannot be specified together.")
    if "command-config" in given and "producer.config" in given:
        raise UsageError("--command-config and --producer.config cannot be specified together.")
    sources = (
        *("bootstrap-server", "producer-props", "command-property"),
        *("producer.config", "command-config"),
    )
    if not any(source in given for source in sources):
        raise UsageError("Either --producer-props or --producer.config must be specified.")


def plan_of(given: Given) -> Plan:
    """Return what is to be sent, with which options."""
    from barnabas.cli.kafka.client_properties import assignments, read_file, understood
    from barnabas.cli.perf.plan import Plan
    from barnabas.config.clients.producer import ProducerOptions

    properties = {
        **read_file("--producer.config", given["producer.config"]),
        **read_file("--command-config", given["command-config"]),
        **assignments("--producer-props", given["producer-props"]),
        **assignments("--command-property", given["command-property"]),
    }
    if given["bootstrap-server"]:
        properties["bootstrap.servers"] = given["bootstrap-server"]
    properties.setdefault("client.id", "perf-producer-client")
    if given["transactional-id"]:
        properties["transactional.id"] = given["transactional-id"]
    transaction_ms = given["transaction-duration-ms"]
    if "transactional.id" in properties:
        transaction_ms = transaction_ms or TRANSACTION_MS
    elif transaction_ms is not None:
        from uuid import uuid4

        properties["transactional.id"] = f"performance-producer-{uuid4()}"
    delimiter = given["payload-delimiter"]
    return Plan(
        "produce",
        given["topic"],
        options=understood(TOOL, ProducerOptions, properties),
        records=given["num-records"],
        throughput=given["throughput"] if given["throughput"] > 0 else None,
        from_intended=False,
        record_size=given["record-size"] or 0,
        payload_file=given["payload-file"],
        payload_delimiter="\n" if delimiter == "\\n" else delimiter,
        monotonic=given["payload-monotonic"],
        transaction_ms=transaction_ms,
    )


class ProducerStats:
    """Kafka's statistics, in whole milliseconds: of all records, the steady state, and windows."""

    def __init__(self, records: int, warmup: int, interval_ms: int) -> None:
        self._every = Totals(records)
        self._steady = Totals(records - warmup) if warmup > 0 else None
        self._warmup = warmup
        self._interval_s = interval_ms / 1000
        self._window = Totals(1)
        self._said_steady = False

    def begin(self) -> None:
        """Start the clocks."""
        self._every.begin()
        self._window.begin()

    def end(self) -> None:
        """Stop the clocks."""
        self._every.end()
        if self._steady is not None:
            self._steady.end()

    def succeeded(self, started_s: float, size: int, _: object = None) -> None:
        """Count a record that was written; print a window that is over."""
        now_s = time.perf_counter()
        latency_ms = int((now_s - started_s) * 1000)
        self._every.add(latency_ms, size)
        if self._steady is not None and self._every.count > self._warmup:
            if not self._steady.count:
                self._steady.begin()
            self._steady.add(latency_ms, size)
        self._window.add(latency_ms, size)
        if now_s - self._window.began_s >= self._interval_s:
            if self._steady is not None and self._steady.count and not self._said_steady:
                self._said_steady = True
                print("In steady state.")
            print(self._window.window_line(), flush=True)
            self._window = Totals(1)
            self._window.begin()

    def failed(self, failure: object) -> None:
        """Report a record that was not written: it does not count."""
        print(failure, file=sys.stderr)

    def print_totals(self) -> None:
        """Print the last lines."""
        print(self._every.line())
        if self._steady is not None:
            print(self._steady.line(" steady state"))


class Totals:
    """Counts of some records; latencies are sampled."""

    def __init__(self, records: int) -> None:
        self._sampling = max(records // min(records, SAMPLES_MAX), 1)
        self._samples: list[int] = []
        self.count = 0
        self.bytes = 0
        self.total_ms = 0
        self.max_ms = 0
        self.began_s = 0.0
        self._ended_s: float | None = None

    def begin(self) -> None:
        """Start the clock."""
        self.began_s = time.perf_counter()

    def end(self) -> None:
        """Stop the clock."""
        self._ended_s = time.perf_counter()

    def add(self, latency_ms: int, size: int) -> None:
        """Count a record."""
        if self.count % self._sampling == 0:
            self._samples.append(latency_ms)
        self.count += 1
        self.bytes += size
        self.total_ms += latency_ms
        self.max_ms = max(self.max_ms, latency_ms)

    def _rates(self) -> tuple[float, float]:
        ended_s = time.perf_counter() if self._ended_s is None else self._ended_s
        seconds = max(ended_s - self.began_s, 0.001)
        return self.count / seconds, self.bytes / seconds / (1024 * 1024)

    def window_line(self) -> str:
        """Return the line of a window."""
        records, megabytes = self._rates()
        return (
            f"{self.count} records sent, {records:.1f} records/sec ({megabytes:.2f} MB/sec), "
            f"{self._mean():.1f} ms avg latency, {self.max_ms:.1f} ms max latency."
        )

    def line(self, state: str = "") -> str:
        """Return the line of the totals."""
        records, megabytes = self._rates()
        samples = sorted(self._samples) or [0]
        percentiles: list[Any] = [
            samples[min(int(share * len(samples)), len(samples) - 1)]
            for share in (0.5, 0.95, 0.99, 0.999)
        ]
        return (
            f"{self.count}{state} records sent, {records:f} records/sec ({megabytes:.2f} MB/sec), "
            f"{self._mean():.2f} ms avg latency, {self.max_ms:.2f} ms max latency, "
            "{} ms 50th, {} ms 95th, {} ms 99th, {} ms 99.9th.".format(*percentiles)
        )

    def _mean(self) -> float:
        return self.total_ms / self.count if self.count else 0.0

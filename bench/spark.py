"""Our Spark source and sink beside Spark's own Kafka connector, in one session, on one broker.

    python -m bench.spark [--quick] [--markdown] [--only TEXT] [--rows N] [--repetitions N]

Both connectors do the same jobs in turn, and who begins changes. CPU is that of the JVM and of all
Python processes under it; planning a query is part of it. Every job's answer is checked, so a rate
counts only if all rows were there. Latency is that of small batches: the time that Spark notes for
a trigger, and from a `send` until a reader of the topic that the stream writes has the record.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.pair import create_topic
from bench.report import Report, machine
from bench.spark_jobs import (
    AMOUNTS,
    JOBS,
    OURS,
    PARTITIONS,
    ROWS,
    SIZES,
    SPARKS,
    Connector,
    Workshop,
)
from bench.spark_meter import TreeMeter
from tools import spark_connector
from tools.processes import start_barnabas

from barnabas import KafkaConsumer, KafkaProducer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RESULTS = Path(__file__).resolve().parent / "results"
ROOT = Path(__file__).resolve().parent.parent
KEYS = 1000
STATES = ("open", "blocked", "closed")
LATENCY = "latency: small batches"


@dataclass(frozen=True)
class Scale:
    """How much of everything a run does."""

    rows: int
    small_batches: int
    warm_turns: int
    repetitions: int

    @classmethod
    def full(cls) -> Scale:
        return cls(3_000_000, 40, 2, 5)

    @classmethod
    def quick(cls) -> Scale:
        return cls(500_000, 10, 1, 1)


@dataclass
class Bench:
    """Every job with both connectors."""

    shop: Workshop
    scale: Scale
    report: Report
    only: str
    totals: dict[str, int]

    def run(self) -> None:
        gateway: Any = self.shop.spark.sparkContext._jvm
        jvm = int(gateway.java.lang.ProcessHandle.current().pid())
        for turn in range(self.scale.warm_turns + self.scale.repetitions):
            warming = turn < self.scale.warm_turns
            for name in JOBS:
                if self.only not in name:
                    continue
                for connector in self._order(turn):
                    say(f"{'warm-up' if warming else 'turn'} {turn}: {name}, {connector.name}")
                    self._measure(name, connector, jvm, warming)
            if self.only in LATENCY and not warming:
                for connector in self._order(turn):
                    say(f"turn {turn}: {LATENCY}, {connector.name}")
                    self._wait(connector)

    def _order(self, turn: int) -> list[Connector]:
        return [OURS, SPARKS] if turn % 2 else [SPARKS, OURS]

    def _measure(self, name: str, connector: Connector, jvm: int, warming: bool) -> None:
        job, total = JOBS[name]
        with TreeMeter(jvm) as meter:
            look = job(self.shop, connector)
        found = look()
        if found != self.totals[total]:
            raise RuntimeError(
                f"{name}, {connector.name}: {found:,} of {self.totals[total]:,} {total}"
            )
        rate, cost = self.scale.rows / meter.wall_s, meter.cpu_s * 1e6 / self.scale.rows
        say(f"    {rate:,.0f} rows/s, {cost:.2f} CPU s per million")
        if not warming:
            self.report.add(name, "rows/s", "higher", connector.name, rate)
            self.report.add(name, "CPU s per million", "lower", connector.name, cost)

    def _wait(self, connector: Connector) -> None:
        """Send a few records, wait until they are in the target topic, and again."""
        shop = self.shop
        source, target = shop.new_topic(), shop.new_topic()
        servers = shop.broker.bootstrap
        rows = shop.stream(connector, subscribe=source).load().select("key", "value")
        writer = rows.writeStream.format(connector.format).option("topic", target)
        query = (
            writer.option("kafka.bootstrap.servers", servers)
            .option("checkpointLocation", str(shop.scratch / source))
            .start()
        )
        waits = []
        with (
            KafkaProducer(bootstrap_servers=servers, linger_ms=0) as producer,
            KafkaConsumer(
                target, bootstrap_servers=servers, auto_offset_reset="earliest"
            ) as consumer,
        ):
            for _ in range(self.scale.small_batches + 3):
                began_s = time.perf_counter()
                for number in range(10):
                    producer.send(source, b"%d" % number, key=b"k", partition=number % PARTITIONS)
                producer.flush()
                seen = 0
                while seen < 10:
                    seen += sum(map(len, consumer.poll(timeout_ms=1000).values()))
                    if (failure := query.exception()) is not None:
                        raise failure
                waits.append((time.perf_counter() - began_s) * 1000)
        triggers = [
            each["durationMs"]["triggerExecution"]
            for each in query.recentProgress
            if each["numInputRows"]
        ]
        query.stop()
        shop.arrived(source), shop.arrived(target)
        add = self.report.add
        for metric, found in (("trigger p50 ms", triggers), ("send to read p50 ms", waits)):
            add(LATENCY, metric, "lower", connector.name, statistics.median(found[3:]))


def fill(bootstrap: str, topic: str, rows: int) -> dict[str, int]:
    """Write the topic that jobs read, and return what is in it."""
    import pyarrow as pa

    sizes = amounts = 0
    step = 50_000
    with KafkaProducer(bootstrap_servers=bootstrap) as producer:
        for first in range(0, rows, step):
            numbers = range(first, min(first + step, rows))
            values = [
                b'{"id": %d, "account": "account-%08d", "amount": %d, "state": "%s", "note": "%s"}'
                % (each, each % 77_777, each % 997, STATES[each % 3].encode(), b"x" * (each % 20))
                for each in numbers
            ]
            sizes += sum(map(len, values))
            amounts += sum(each % 997 for each in numbers)
            table = pa.table(
                {
                    "key": [b"key-%06d" % (each * 7919 % KEYS) for each in numbers],
                    "value": values,
                    "partition": pa.array([each // 100 % PARTITIONS for each in numbers], "int32"),
                }
            )
            producer.send_arrow(topic, table)
        producer.flush()
    return {ROWS: rows, SIZES: sizes, AMOUNTS: amounts}


@contextmanager
def session(theirs: spark_connector.Connector, scratch: Path) -> Iterator[SparkSession]:
    """A session that knows both connectors, with Spark's defaults where speed is concerned."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = str(ROOT)  # for the workers, which import the user's functions
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.jars", theirs.setting)
        .config("spark.driver.memory", "2g")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    try:
        yield spark
    finally:
        spark.stop()


@contextmanager
def workshop(
    theirs: spark_connector.Connector, rows: int
) -> Iterator[tuple[Workshop, dict[str, int]]]:
    """A broker, a filled topic and a session."""
    with tempfile.TemporaryDirectory(prefix="barnabas-bench-") as directory:
        scratch = Path(directory)
        broker = start_barnabas(scratch / "data")
        try:
            create_topic(broker, "rows", PARTITIONS)
            totals = fill(broker.bootstrap, "rows", rows)
            with session(theirs, scratch) as spark:
                yield Workshop(spark, broker, "rows", scratch), totals
        finally:
            broker.stop()


def say(what: str) -> None:
    """Tell on stderr what is going on; the result alone goes to stdout."""
    print(what, file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Our connector for Spark beside Spark's own.")
    parser.add_argument("--quick", action="store_true", help="a few minutes, one repetition")
    parser.add_argument("--markdown", action="store_true", help="print Markdown, not a table")
    parser.add_argument("--repetitions", type=int, help="how often each job is measured")
    parser.add_argument("--rows", type=int, help="how many rows the topic has")
    parser.add_argument("--only", default="", help="jobs whose names contain this")
    args = parser.parse_args(arguments)
    scale = Scale.quick() if args.quick else Scale.full()
    changed = {"repetitions": args.repetitions, "rows": args.rows}
    scale = Scale(**{**vars(scale), **{name: each for name, each in changed.items() if each}})
    theirs = spark_connector.fetch()
    report = Report(
        [
            machine(),
            f"PySpark {version('pyspark')}, Spark's connector {theirs.version}, local[2], one"
            " session for both; the broker is ours, in a process of its own",
            f"{scale.rows:,} rows of about 100 bytes with keys of 10 bytes ({KEYS:,} of them) in"
            f" {PARTITIONS} partitions; {scale.repetitions} repetitions, connectors in turn, after"
            f" {scale.warm_turns} unmeasured turns",
            "Python: ours runs the function with `transform`, Spark's connector is followed by"
            " mapInArrow; streams run with AvailableNow",
        ]
    )
    with workshop(theirs, scale.rows) as (shop, totals):
        Bench(shop, scale, report, args.only, totals).run()
    if args.markdown:
        print(report.markdown())
    else:
        report.show()
    say(f"every value is in {report.save(RESULTS, 'spark')}")


if __name__ == "__main__":
    main()

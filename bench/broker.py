"""Our broker beside Apache Kafka, under the same load, in one run.

Throughput and CPU of produce and fetch, latency at a fixed rate, cost per request from 1 to 1,000
partitions, time to the first acknowledged record, idle memory. The brokers take turns inside every
repetition, so that a machine whose speed drifts drifts for both. CPU is the broker's own (user and
system, all threads): on a machine that the load shares it says more than the rate does.

    python -m bench.broker [--quick] [--markdown] [--repetitions N] [--only barnabas|apache]
                           [--against CHECKOUT]
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench import requests
from bench.load import Load
from bench.pair import Pair, Starter, create_topic, starters
from bench.report import Report, machine
from tools.processes import RunningBroker, free_port

RESULTS = Path(__file__).resolve().parent / "results"
RECORD_BYTES = 100
PARTITIONS = 8
IN_FLIGHT = 5
RATE = 1000


@dataclass(frozen=True)
class Scale:
    """How much of everything a run does."""

    warm_turns: int
    repetitions: int
    batched: int
    unbatched: int
    latency_s: float
    starts: int
    request_s: float

    @classmethod
    def full(cls) -> Scale:
        return cls(3, 5, 1_000_000, 10_000, 5.0, 5, 1.5)

    @classmethod
    def quick(cls) -> Scale:
        return cls(2, 1, 300_000, 2_500, 1.0, 1, 0.3)


@dataclass
class Bench:
    """The scenarios, each measuring one broker once and noting what it saw."""

    pair: Pair
    load: Load
    scale: Scale
    report: Report

    def run(self) -> None:
        """Give each scenario to each broker in turn, several times, and drop the warm-up turns.

        A JVM compiles what it runs: its first turns at exactly these scenarios cost a multiple of
        the later ones. Both brokers get the same unmeasured turns.
        """
        scenarios: list[Callable[[RunningBroker], None]] = [
            self.produce_batched,
            self.produce_unbatched,
            self.fetch,
            self.latency,
            self.partitions,
        ]
        kept = self.report
        for turn in range(self.scale.warm_turns + self.scale.repetitions):
            warming = turn < self.scale.warm_turns
            self.report = Report([]) if warming else kept
            # Who goes first changes, so neither broker always runs on the other's heels.
            order = self.pair.brokers if turn % 2 == 0 else self.pair.brokers[::-1]
            for scenario in scenarios:
                for broker in order:
                    what = "warm-up" if warming else f"turn {turn - self.scale.warm_turns + 1}"
                    say(f"{what}: {scenario.__name__}, {broker.name}")
                    scenario(broker)

    def produce_batched(self, broker: RunningBroker) -> None:
        for acks in ("1", "all"):
            topic = self.pair.new_topic(broker, PARTITIONS)
            self._throughput(
                f"produce, 16 KB batches, acks={acks} (1 client, {IN_FLIGHT} in flight)",
                broker,
                "produce",
                topic,
                PARTITIONS,
                1,
                self.scale.batched,
                RECORD_BYTES,
                acks=acks,
                batch_size=16384,
                linger_ms=5,
                max_in_flight=IN_FLIGHT,
            )
            self.pair.delete(broker, topic)

    def produce_unbatched(self, broker: RunningBroker) -> None:
        for acks in ("1", "all"):
            topic = self.pair.new_topic(broker, PARTITIONS)
            self._throughput(
                f"produce, 1 record a request, acks={acks} (4 clients, {IN_FLIGHT} in flight each)",
                broker,
                "produce",
                topic,
                PARTITIONS,
                4,
                self.scale.unbatched,
                RECORD_BYTES,
                acks=acks,
                linger_ms=0,
                batch_num_messages=1,
                max_in_flight=IN_FLIGHT,
            )
            self.pair.delete(broker, topic)

    def fetch(self, broker: RunningBroker) -> None:
        topic = self.pair.new_topic(broker, PARTITIONS)
        count = 3 * self.scale.batched
        self.load.run(
            "produce", broker.bootstrap, topic, PARTITIONS, 1, count, RECORD_BYTES,
            acks=1, batch_size=16384, linger_ms=5,
        )  # fmt: skip
        for consumers in (1, 8):
            self._throughput(
                f"fetch, {consumers} consumer{'s' * (consumers > 1)} of {PARTITIONS} partitions",
                broker,
                "consume",
                topic,
                PARTITIONS,
                consumers,
                count,
            )
        self.pair.delete(broker, topic)

    def latency(self, broker: RunningBroker) -> None:
        topic = self.pair.new_topic(broker)
        cpu = broker.cpu_seconds()
        seen = self.load.run(
            "latency", broker.bootstrap, topic, RATE, self.scale.latency_s, RECORD_BYTES,
            acks="all", linger_ms=0,
        )  # fmt: skip
        used = broker.cpu_seconds() - cpu
        scenario = f"latency at {RATE:,} records/s, acks=all, linger 0"
        for metric, key in (
            ("acknowledged p50 ms", "ack_p50_ms"),
            ("acknowledged p99 ms", "ack_p99_ms"),
            ("received p50 ms", "receive_p50_ms"),
            ("received p99 ms", "receive_p99_ms"),
        ):
            self.report.add(scenario, metric, "lower", broker.name, seen[key])
        share = used / seen["seconds"] * 100
        self.report.add(scenario, "broker CPU, % of a core", "lower", broker.name, share)
        self.pair.delete(broker, topic)

    def partitions(self, broker: RunningBroker) -> None:
        """The cost of a request in a topic of many partitions, over raw sockets."""
        for partitions in (1, 100, 1000):
            topic = self.pair.new_topic(broker, partitions)
            asked = {
                "Fetch of 1 empty partition": requests.fetch(topic),
                "Fetch of all, empty": requests.fetch(topic, partitions),
                "Produce of 1 record": requests.produce(topic),  # last: it fills the topic
            }
            for name, request in asked.items():
                rate = requests.measure(
                    broker, request, connections=4, depth=8, seconds=self.scale.request_s
                )
                scenario = f"topic of {partitions:,} partitions (4 connections, 8 in flight each)"
                metric = f"{name}, broker CPU µs"
                self.report.add(scenario, metric, "lower", broker.name, rate.cpu_us)
            self.pair.delete(broker, topic)

    def _throughput(
        self, scenario: str, broker: RunningBroker, act: str, *arguments: object, **settings: object
    ) -> None:
        cpu = broker.cpu_seconds()
        seen = self.load.run(act, broker.bootstrap, *arguments, **settings)
        used = broker.cpu_seconds() - cpu
        millions = seen["records"] / 1e6
        rate = seen["records"] / seen["seconds"]
        self.report.add(scenario, "records/s", "higher", broker.name, rate)
        self.report.add(
            scenario, "broker CPU s per million records", "lower", broker.name, used / millions
        )


def measure_starts(report: Report, found: dict[str, Starter], times: int) -> None:
    """Time from the process's start to the first acknowledged record, and what it then occupies.

    The topic exists from an earlier start, so no run pays for making it; each start is a clean one.
    """
    directory = Path(tempfile.mkdtemp(prefix="barnabas-bench-"))
    ports = {name: free_port() for name in found}
    try:
        for name, start in found.items():
            say(f"starting {name} once, to make its topic")
            broker = start(directory / name, port=ports[name])
            create_topic(broker, "first")
            broker.stop()
        for _ in range(times):
            for name, start in found.items():
                say(f"timing a start of {name}")
                _measure_start(report, start, directory / name, ports[name])
    finally:
        shutil.rmtree(directory)


def _measure_start(report: Report, start: Starter, data_dir: Path, port: int) -> None:
    began = time.monotonic()
    broker = start(data_dir, port=port, wait=False)
    try:
        seconds = requests.first_acknowledged(broker.bootstrap, "first") - began
        if broker.process.poll() is not None:
            raise RuntimeError(f"{broker.name} ended: another process answered on its port")
        scenario = "start"
        report.add(scenario, "first acknowledged record, s", "lower", broker.name, seconds)
        report.add(scenario, "CPU s until then", "lower", broker.name, broker.cpu_seconds())
        for metric, size in broker.memory_mb().items():
            report.add(scenario, f"idle memory, {metric} MB", "lower", broker.name, size)
    finally:
        broker.stop()


def say(what: str) -> None:
    """Tell on stderr what is going on; the result alone goes to stdout."""
    print(what, file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Our broker beside Apache Kafka.")
    parser.add_argument("--quick", action="store_true", help="about a minute, one repetition")
    parser.add_argument("--markdown", action="store_true", help="print Markdown, not a table")
    parser.add_argument("--repetitions", type=int, help="how often each scenario is measured")
    parser.add_argument("--only", choices=["barnabas", "apache"], help="measure one broker alone")
    parser.add_argument(
        "--against",
        type=Path,
        metavar="CHECKOUT",
        help="measure this tree beside another checkout of it, not beside Apache Kafka",
    )
    args = parser.parse_args(arguments)
    scale = Scale.quick() if args.quick else Scale.full()
    repetitions = args.repetitions or scale.repetitions
    scale = Scale(**{**vars(scale), "repetitions": repetitions, "starts": repetitions})
    load = Load.build()
    found, missing = starters(args.only, args.against)
    report = Report(
        [
            machine(),
            f"load: {load.name}; records of {RECORD_BYTES} bytes; {repetitions} repetitions,"
            f" brokers in turn, after {scale.warm_turns} unmeasured turns of everything",
            "each broker with its own defaults, one process (Apache Kafka with a heap of 1 GB);"
            " nothing is flushed to disk before it is acknowledged",
            *([missing] if missing else []),
        ]
    )
    measure_starts(report, found, scale.starts)
    with Pair.start(only=args.only, load=load, against=args.against) as pair:
        Bench(pair, load, scale, report).run()
    if args.markdown:
        print(report.markdown())
    else:
        report.show()
    say(f"every value is in {report.save(RESULTS)}")


if __name__ == "__main__":
    main()

"""Our clients beside confluent-kafka, aiokafka and kafka-python, against one broker of ours.

    python -m bench.clients [--quick] [--markdown] [--only TEXT] [--repetitions N]
                            [--against CHECKOUT]

Each measurement is a child process of its own, so memory and CPU are that client's alone. All
clients take turns within a scenario, scenarios within a turn, and who begins changes: a machine
that drifts drifts for all. The ratio is between our plain client and confluent-kafka; where
confluent-kafka has no such call, the scenario says what it does instead. kafka-python and aiokafka
get a tenth of the records, since they would take all the time otherwise. With `--against` our
clients of this tree and of another checkout are measured, and the ratio is between those.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from bench import client_readers, client_senders
from bench.pair import create_topic
from bench.report import Better, Report, machine
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient  # type: ignore[attr-defined]
from tools.processes import RunningBroker, environment_of, start_barnabas

RESULTS = Path(__file__).resolve().parent / "results"
ROOT = Path(__file__).resolve().parent.parent
CLIENTS = ("barnabas", "confluent-kafka", "barnabas.aio", "aiokafka", "kafka-python")
OURS = ("barnabas", "barnabas.aio")
OTHER = " of the other checkout"
"""Marks our clients of another checkout."""
SLOW = {"aiokafka", "kafka-python"}
SLOWER = 10
METRICS: dict[str, Better] = {
    "records/s": "higher",
    "CPU s per million": "lower",
    "peak memory MB": "lower",
    "p50 µs": "lower",
    "p99 µs": "lower",
}


@dataclass(frozen=True)
class Scale:
    """How much of everything a run does."""

    records: int
    waits: int
    warm_turns: int
    repetitions: int

    @classmethod
    def full(cls) -> Scale:
        return cls(1_000_000, 3000, 1, 5)

    @classmethod
    def quick(cls) -> Scale:
        return cls(200_000, 300, 0, 1)


class CheckoutReport(Report):
    """Figures of our clients in two checkouts, and the ratio for each client."""

    def rows(self) -> Iterable[list[str]]:
        for cells, figure in zip(super().rows(), self.figures, strict=True):
            yield [*cells, *(figure.ratio(client, client + OTHER) for client in OURS)]

    def headings(self) -> list[str]:
        return [*super().headings(), *(f"{client} is better" for client in OURS)]


class ClientReport(Report):
    """Figures by client, and ours against confluent-kafka's."""

    def rows(self) -> Iterable[list[str]]:
        for cells, figure in zip(super().rows(), self.figures, strict=True):
            yield [*cells, figure.ratio("barnabas", "confluent-kafka")]

    def headings(self) -> list[str]:
        return [*super().headings(), "barnabas is better than confluent-kafka"]

    def brokers(self) -> list[str]:
        found = super().brokers()
        return [client for client in CLIENTS if client in found]


@dataclass
class Bench:
    """Every scenario, with every client that has a way to do it."""

    broker: RunningBroker
    scale: Scale
    report: Report
    only: str
    against: Path | None = None

    def run(self) -> None:
        scenarios = client_senders.WAYS | client_readers.WAYS
        chosen = {name: ways for name, ways in scenarios.items() if self.only in name}
        self._fill()
        for turn in range(self.scale.warm_turns + self.scale.repetitions):
            warming = turn < self.scale.warm_turns
            for scenario, ways in chosen.items():
                clients = [*ways]
                if self.against is not None:
                    ours = [name for name in OURS if name in ways]
                    clients = [f"{name}{tree}" for name in ours for tree in ("", OTHER)]
                first = turn % len(clients)
                order = clients[first:] + clients[:first]
                for client in order:
                    say(f"{'warm-up' if warming else 'turn'} {turn}: {scenario}, {client}")
                    found = self._measure(scenario, client)
                    if not warming:
                        self._note(scenario, client, found)

    def _measure(self, scenario: str, client: str) -> dict[str, float]:
        count = self.scale.records // (SLOWER if client in SLOW else 1)
        if scenario in client_readers.WAYS:
            return self._run_child(scenario, client, "filled", count)
        if scenario == client_senders.WAIT:
            count = self.scale.waits
        create_topic(self.broker, "sent")
        try:
            found = self._run_child(scenario, client, "sent", count)
            self._check(count + 1)  # and the first record, which made the client ready
            return found
        finally:
            admin = AdminClient({"bootstrap.servers": self.broker.bootstrap})
            admin.delete_topics(["sent"])["sent"].result(60)

    def _run_child(self, scenario: str, client: str, topic: str, count: int) -> dict[str, float]:
        checkout = self.against if client.endswith(OTHER) else None
        name = client.removesuffix(OTHER)
        return run_child(scenario, name, self.broker.bootstrap, topic, count, checkout)

    def _check(self, count: int) -> None:
        """Look into the topic: a rate counts only if everything has arrived."""
        options = {"bootstrap.servers": self.broker.bootstrap, "group.id": "check"}
        with closing(Consumer(options)) as consumer:
            _, end = consumer.get_watermark_offsets(TopicPartition("sent", 0), timeout=60)
        if end != count:
            raise RuntimeError(f"{end:,} records have arrived of {count:,}")

    def _note(self, scenario: str, client: str, found: dict[str, float]) -> None:
        for metric, better in METRICS.items():
            if metric in found and not (scenario == client_senders.WAIT and metric == "records/s"):
                self.report.add(scenario, metric, better, client, found[metric])

    def _fill(self) -> None:
        """Write what readers read, in batches as confluent-kafka makes them."""
        create_topic(self.broker, "filled")
        found = run_child(
            client_senders.FORGET,
            "confluent-kafka",
            self.broker.bootstrap,
            "filled",
            self.scale.records,
        )
        say(f"filled a topic at {found['records/s']:,.0f} records/s")


def run_child(
    scenario: str,
    client: str,
    bootstrap: str,
    topic: str,
    count: int,
    checkout: Path | None = None,
) -> dict[str, float]:
    """Run one way in a process of its own."""
    arguments = [scenario, client, bootstrap, topic, str(count)]
    ran = subprocess.run(
        [sys.executable, "-m", "bench.client_child", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        env=environment_of(checkout),
    )
    if ran.returncode:
        raise RuntimeError(f"{scenario}, {client}: {ran.stderr[-2000:]}")
    found: dict[str, float] = json.loads(ran.stdout)
    return found


@contextmanager
def running_broker() -> Iterator[RunningBroker]:
    with tempfile.TemporaryDirectory(prefix="barnabas-bench-") as directory:
        broker = start_barnabas(Path(directory) / "data")
        try:
            yield broker
        finally:
            broker.stop()


def say(what: str) -> None:
    """Tell on stderr what is going on; the result alone goes to stdout."""
    print(what, file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Our clients beside others.")
    parser.add_argument("--quick", action="store_true", help="a few minutes, one repetition")
    parser.add_argument("--markdown", action="store_true", help="print Markdown, not a table")
    parser.add_argument("--repetitions", type=int, help="how often each scenario is measured")
    parser.add_argument("--only", default="", help="scenarios whose names contain this")
    parser.add_argument(
        "--against",
        type=Path,
        metavar="CHECKOUT",
        help="measure our clients beside those of another checkout, not beside other libraries",
    )
    args = parser.parse_args(arguments)
    scale = Scale.quick() if args.quick else Scale.full()
    if args.repetitions:
        scale = Scale(**{**vars(scale), "repetitions": args.repetitions})
    others = ", ".join(f"{name} {version(name)}" for name in CLIENTS if "barnabas" not in name)
    report = (CheckoutReport if args.against else ClientReport)(
        [
            machine(),
            f"{others}; the broker is ours, in a process of its own",
            f"{scale.records:,} records (aiokafka and kafka-python: a tenth) with values of 100 and"
            f" keys of 10 bytes, one partition; {scale.repetitions} repetitions, clients in turn,"
            f" each in a new process, after {scale.warm_turns} unmeasured turns",
            "senders: acks=all, idempotent, linger.ms=5, all else as each client has it; send and"
            " wait: linger.ms=0. Asyncio clients run on uvloop",
        ]
    )
    against = args.against.resolve() if args.against else None
    with running_broker() as broker:
        Bench(broker, scale, report, args.only, against).run()
    if args.markdown:
        print(report.markdown())
    else:
        report.show()
    say(f"every value is in {report.save(RESULTS, 'clients')}")


if __name__ == "__main__":
    main()

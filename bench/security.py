"""What security costs: ours beside Apache Kafka, and our plain path with it on and off.

Beside Apache Kafka, in turns and under the same load: produce and fetch over TLS 1.3 with the same
cipher and certificate, TLS handshakes, and logins by PLAIN and SCRAM. Then our broker alone and
without encryption: security off, 10,000 ACLs, quotas, both. The times of that part need a quiet
machine; `bench.instructions` counts the same where there is none.

    python -m bench.security [--quick] [--markdown] [--repetitions N]
                             [--only barnabas|apache|plain] [--against CHECKOUT]

With `--against` the plain path is also compared with that of another checkout, with security off.
"""

from __future__ import annotations

import argparse
import itertools
import shutil
import ssl
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from bench import logins, requests
from bench.broker import IN_FLIGHT, PARTITIONS, RECORD_BYTES, RESULTS, say
from bench.certificates import CIPHER, Certificates
from bench.load import Load
from bench.pair import create_topic, delete_topic
from bench.report import Better, Report, machine
from bench.secured import ACLS, Secured, start_plain, start_secured
from tools.apache_kafka import Distribution, Unavailable
from tools.processes import RunningBroker

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
THREADS = 4
OFF = "security off"
BASE = "compared with"


@dataclass(frozen=True)
class Scale:
    """How much of everything a run does."""

    warm_turns: int
    repetitions: int
    batched: int
    unbatched: int
    seconds: float

    @classmethod
    def full(cls) -> Scale:
        return cls(3, 5, 1_000_000, 10_000, 2.0)

    @classmethod
    def quick(cls) -> Scale:
        return cls(1, 1, 200_000, 2_000, 0.5)


@dataclass
class Turns:
    """Scenarios that several brokers go through in turn, some times, after unmeasured ones."""

    scale: Scale

    def run(
        self,
        scenarios: Sequence[Callable[[str], None]],
        names: Sequence[str],
        measured: Callable[[bool], None],
    ) -> None:
        """Call each scenario with each name; say before each turn whether it is measured."""
        for turn in range(self.scale.warm_turns + self.scale.repetitions):
            warming = turn < self.scale.warm_turns
            measured(not warming)
            what = "warm-up" if warming else f"turn {turn - self.scale.warm_turns + 1}"
            # Who goes first changes, so none always runs on another's heels.
            order = names if turn % 2 == 0 else names[::-1]
            for scenario in scenarios:
                for name in order:
                    say(f"{what}: {scenario.__name__}, {name}")
                    scenario(name)


@dataclass
class Encrypted:
    """TLS and SASL, each scenario measuring one broker once."""

    brokers: dict[str, Secured]
    certificates: Certificates
    load: Load
    scale: Scale
    report: Report
    _context: ssl.SSLContext = field(init=False)
    _noted: Report = field(init=False)
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        self._context = self.certificates.client_context()

    def run(self) -> None:
        for name, secured in self.brokers.items():
            chosen = logins.shake_hands(secured.tls, self._context)
            assert chosen == f"TLSv1.3 {CIPHER}", f"{name} chose {chosen}"
        Turns(self.scale).run(
            [
                self.produce_batched,
                self.produce_unbatched,
                self.fetch,
                self.handshakes,
                self.logins,
            ],
            list(self.brokers),
            self._measured,
        )

    def _measured(self, counts: bool) -> None:
        self._noted = self.report if counts else Report([])

    def produce_batched(self, name: str) -> None:
        self._produce(
            f"produce over TLS, 16 KB batches (1 client, {IN_FLIGHT} in flight)",
            name,
            1,
            self.scale.batched,
            batch_size=16384,
            linger_ms=5,
        )

    def produce_unbatched(self, name: str) -> None:
        self._produce(
            f"produce over TLS, 1 record a request (4 clients, {IN_FLIGHT} in flight each)",
            name,
            4,
            self.scale.unbatched,
            linger_ms=0,
            batch_num_messages=1,
        )

    def fetch(self, name: str) -> None:
        secured, topic = self.brokers[name], self._new_topic(name)
        count = 2 * self.scale.batched
        plain = secured.broker.bootstrap
        self.load.run(
            "produce", plain, topic, PARTITIONS, 1, count, RECORD_BYTES,
            acks=1, batch_size=16384, linger_ms=5,
        )  # fmt: skip
        for consumers in (1, 4):
            self._throughput(
                f"fetch over TLS, {consumers} consumer{'s' * (consumers > 1)}"
                f" of {PARTITIONS} partitions",
                name,
                "consume",
                topic,
                PARTITIONS,
                consumers,
                count,
            )
        delete_topic(secured.broker, topic)

    def handshakes(self, name: str) -> None:
        act = partial(logins.shake_hands, self.brokers[name].tls, self._context)
        self._repeated("TLS handshake and one request", name, lambda: void(act()))

    def logins(self, name: str) -> None:
        for mechanism in MECHANISMS:
            act = partial(logins.log_in, self.brokers[name].sasl, mechanism)
            self._repeated(f"{mechanism} login, without TLS", name, act)

    def _produce(
        self, scenario: str, name: str, clients: int, records: int, **settings: object
    ) -> None:
        topic = self._new_topic(name)
        self._throughput(
            scenario,
            name,
            "produce",
            topic,
            PARTITIONS,
            clients,
            records,
            RECORD_BYTES,
            acks=1,
            max_in_flight=IN_FLIGHT,
            **settings,
        )
        delete_topic(self.brokers[name].broker, topic)

    def _throughput(
        self, scenario: str, name: str, act: str, *arguments: object, **settings: object
    ) -> None:
        secured = self.brokers[name]
        note_throughput(
            self._noted,
            scenario,
            name,
            secured.over_tls,
            partial(self.load.run, security_protocol="ssl"),
            act,
            *arguments,
            ssl_ca_location=self.certificates.authority,
            **settings,
        )

    def _repeated(self, scenario: str, name: str, act: Callable[[], None]) -> None:
        broker = self.brokers[name].broker
        rate = logins.measure(broker, act, THREADS, self.scale.seconds)
        scenario = f"{scenario} ({THREADS} clients)"
        self._noted.add(scenario, "connections/s", "higher", name, rate.per_second)
        self._noted.add(scenario, "broker CPU µs for each", "lower", name, rate.cpu_us)

    def _new_topic(self, name: str) -> str:
        topic = f"bench-{next(self._numbers)}"
        create_topic(self.brokers[name].broker, topic, PARTITIONS)
        return topic


@dataclass
class Plain:
    """Our broker without encryption, in variants; each is compared with the one before security."""

    brokers: dict[str, RunningBroker]
    bases: dict[str, str]
    """What a variant is compared with, by its name."""
    load: Load
    scale: Scale
    report: Report
    _counts: bool = False
    _numbers: itertools.count[int] = field(default_factory=itertools.count)
    _values: dict[tuple[str, str], dict[str, list[float]]] = field(default_factory=dict)

    def run(self) -> None:
        Turns(self.scale).run(
            [self.produce_batched, self.requests], list(self.brokers), self._measured
        )
        for (scenario, metric), values in self._values.items():
            better: Better = "higher" if metric == "records/s" else "lower"
            for variant, base in self.bases.items():
                title = f"{scenario}: {variant}, compared with {base}"
                for heading, name in (("Barnabas", variant), (BASE, base)):
                    for value in values[name]:
                        self.report.add(title, metric, better, heading, value)

    def _measured(self, counts: bool) -> None:
        self._counts = counts

    def produce_batched(self, name: str) -> None:
        broker, topic = self.brokers[name], f"bench-{next(self._numbers)}"
        create_topic(broker, topic, PARTITIONS)
        noted = Report([])
        note_throughput(
            noted,
            "produce, 16 KB batches",
            name,
            broker,
            self.load.run,
            "produce",
            topic,
            PARTITIONS,
            1,
            self.scale.batched,
            RECORD_BYTES,
            acks=1,
            batch_size=16384,
            linger_ms=5,
            max_in_flight=IN_FLIGHT,
        )
        for figure in noted.figures:
            self._note(figure.scenario, figure.metric, name, figure.values[name][0])
        delete_topic(broker, topic)

    def requests(self, name: str) -> None:
        broker, topic = self.brokers[name], f"bench-{next(self._numbers)}"
        create_topic(broker, topic)
        asked = {
            "Fetch of nothing new": requests.fetch(topic),
            "Produce of 1 record": requests.produce(topic),  # last: it fills the topic
        }
        for scenario, request in asked.items():
            rate = requests.measure(
                broker, request, connections=4, depth=8, seconds=self.scale.seconds
            )
            self._note(scenario, "broker CPU µs", name, rate.cpu_us)
        delete_topic(broker, topic)

    def _note(self, scenario: str, metric: str, name: str, value: float) -> None:
        if self._counts:
            found = self._values.setdefault((scenario, metric), {})
            found.setdefault(name, []).append(value)


def note_throughput(
    report: Report,
    scenario: str,
    name: str,
    broker: RunningBroker,
    run: Callable[..., dict[str, float]],
    act: str,
    *arguments: object,
    **settings: object,
) -> None:
    """Run a load to its end and note the records a second, and what they cost the broker."""
    cpu = broker.cpu_seconds()
    seen = run(act, broker.bootstrap, *arguments, **settings)
    used = broker.cpu_seconds() - cpu
    report.add(scenario, "records/s", "higher", name, seen["records"] / seen["seconds"])
    millions = seen["records"] / 1e6
    report.add(scenario, "broker CPU s per million records", "lower", name, used / millions)


def void(_: object) -> None:
    """Drop a value."""


def measure_encrypted(
    directory: Path, load: Load, scale: Scale, only: str | None, conditions: list[str]
) -> Report:
    """Start the brokers with TLS and SASL, measure them, and stop them."""
    report = Report(
        [*conditions, f"TLSv1.3 {CIPHER}, ECDSA on P-256, no client certificate, no resumption"]
    )
    kinds = {"barnabas": False, "apache": True}
    if only is not None:
        kinds = {only: kinds[only]}
    if "apache" in kinds:
        try:
            Distribution.fetch("3.9")
        except Unavailable as why:
            del kinds["apache"]
            report.conditions.append(f"Apache Kafka was not measured: {why}")
    certificates = Certificates.write(directory)
    started: dict[str, Secured] = {}
    try:
        for kind, apache in kinds.items():
            say(f"starting {kind}")
            secured = start_secured(directory / kind, certificates, apache)
            started[secured.broker.name] = secured
        Encrypted(started, certificates, load, scale, report).run()
    finally:
        for secured in started.values():
            secured.broker.stop()
    return report


def measure_plain(
    directory: Path, load: Load, scale: Scale, against: Path | None, conditions: list[str]
) -> Report:
    """Start our broker in each variant, measure, and stop them."""
    acls, quotas = f"{ACLS:,} ACLs", "quotas on"
    both = f"{acls}, {quotas}"
    starts: dict[str, Callable[[Path], RunningBroker]] = {
        OFF: start_plain,
        acls: partial(start_plain, acls=True),
        quotas: partial(start_plain, quotas=True),
        both: partial(start_plain, acls=True, quotas=True),
    }
    bases = {acls: OFF, quotas: OFF, both: OFF}
    if against is not None:
        checkout = against.resolve()
        starts[checkout.name] = partial(start_plain, checkout=checkout)
        bases = {OFF: checkout.name, **bases}
    report = Report(
        [*conditions, "our broker without encryption; a limit of every quota that nobody reaches"]
    )
    started: dict[str, RunningBroker] = {}
    try:
        for number, (name, start) in enumerate(starts.items()):
            say(f"starting Barnabas: {name}")
            started[name] = start(directory / f"plain-{number}")
        Plain(started, bases, load, scale, report).run()
    finally:
        for broker in started.values():
            broker.stop()
    return report


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="What security costs a broker.")
    parser.add_argument("--quick", action="store_true", help="some minutes, one repetition")
    parser.add_argument("--markdown", action="store_true", help="print Markdown, not a table")
    parser.add_argument("--repetitions", type=int, help="how often each scenario is measured")
    parser.add_argument(
        "--only",
        choices=["barnabas", "apache", "plain"],
        help="measure TLS and logins of one broker alone, or only our plain path",
    )
    parser.add_argument(
        "--against",
        type=Path,
        metavar="CHECKOUT",
        help="compare the plain path with that of another checkout of this tree, too",
    )
    args = parser.parse_args(arguments)
    scale = Scale.quick() if args.quick else Scale.full()
    scale = Scale(**{**vars(scale), "repetitions": args.repetitions or scale.repetitions})
    load = Load.build()
    conditions = [
        machine(),
        f"load: {load.name}; records of {RECORD_BYTES} bytes; {scale.repetitions} repetitions,"
        f" brokers in turn, after {scale.warm_turns} unmeasured turns of everything",
    ]
    directory = Path(tempfile.mkdtemp(prefix="barnabas-bench-"))
    reports: dict[str, Report] = {}
    try:
        if args.only != "plain":
            reports["security"] = measure_encrypted(directory, load, scale, args.only, conditions)
        if args.only != "apache":
            reports["security-plain"] = measure_plain(
                directory, load, scale, args.against, conditions
            )
    finally:
        shutil.rmtree(directory)
    for name, report in reports.items():
        if args.markdown:
            print(report.markdown(), end="\n\n")
        else:
            report.show()
        say(f"every value is in {report.save(RESULTS, name)}")


if __name__ == "__main__":
    main()

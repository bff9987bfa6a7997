"""The log's life beside Apache Kafka: compaction, recovery, starts with many partitions, look-ups.

Both brokers get the same bytes and the same settings, and are timed from the outside alike: a
compaction from the moment the topic's policy is set to the moment the cleaner's checkpoint has
reached the active segment, a start from the process's beginning to the first acknowledged record.
The rate of a compaction counts the records before compression, so that codecs can be compared.

    python -m bench.storage [--quick] [--markdown] [--repetitions N] [--only barnabas|apache]
                            [--scenario latency]
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import struct
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

from bench import requests
from bench.filling import (
    checkpointed,
    fill,
    keyed_batches,
    segment_sizes,
    timed_batches,
    wait_until,
)
from bench.load import Load
from bench.pair import Starter, starters
from bench.report import Report, machine
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
)
from tools.processes import RunningBroker, free_port

RESULTS = Path(__file__).resolve().parent / "results"
MEGABYTE = 1_000_000
RATE = 1000
SCENARIOS = ("recovery", "many", "compaction", "latency", "lookups")
OPTIONS = {
    # Look for work soon, and write down soon what is flushed: waiting is not what is measured.
    "log.cleaner.backoff.ms": "20",
    "log.flush.offset.checkpoint.interval.ms": "200",
}
COMPACT = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
NOTICEABLE_S = 0.05
"""Two starts that differ by less say nothing of a rate."""

CHECKED = re.compile(r"was not closed cleanly: recovered \d+ logs in ([\d.]+) s")
WALKED = re.compile(r"recovered up to offset \d+: .*? (\d+) bytes checked")

RECOVERED = "recovery"
MANY = "many"


@dataclass(frozen=True)
class Scale:
    """How much of everything a run does."""

    repetitions: int
    keys: int
    overwrites: int
    codecs: tuple[str, ...]
    busy_partitions: int
    latency_s: float
    recovery_bytes: int
    partitions: int
    segments: int
    lookups: int

    @classmethod
    def full(cls) -> Scale:
        codecs = ("none", "lz4", "zstd")
        return cls(3, 300_000, 10, codecs, 4, 4.0, 1000 * MEGABYTE, 1000, 400, 20_000)

    @classmethod
    def quick(cls) -> Scale:
        return cls(1, 100_000, 8, ("none", "lz4"), 2, 1.0, 200 * MEGABYTE, 200, 100, 3_000)


@dataclass
class Data:
    """The batches of a run: made once, sent to both brokers."""

    scale: Scale
    keyed: dict[str, list[bytes]] = field(default_factory=dict)

    def of(self, codec: str) -> list[bytes]:
        """Return one batch after another with every key once."""
        if codec not in self.keyed:
            say(f"making batches, {codec}")
            self.keyed[codec] = keyed_batches(self.scale.keys, codec)
        return self.keyed[codec]


@dataclass
class Bench:
    """The scenarios, each measuring one broker once and noting what it saw."""

    scale: Scale
    data: Data
    load: Load
    report: Report
    number: Iterator[int] = field(default_factory=lambda: iter(range(1_000_000)))

    # -- compaction -----------------------------------------------------------------------------

    def compaction(self, broker: RunningBroker) -> None:
        for codec in self.scale.codecs:
            topic = self._dirty_topic(broker, codec, 1)
            ends = self._settled(broker, topic, 1)
            cpu, began = broker.cpu_seconds(), time.monotonic()
            configure(broker, topic, COMPACT)
            wait_until(lambda: compacted(broker, topic, ends), "compaction", 300)  # noqa: B023
            seconds, used = time.monotonic() - began, broker.cpu_seconds() - cpu
            plain = sum(map(len, self.data.of("none"))) * self.scale.overwrites
            share = ends[0] / (self.scale.keys * self.scale.overwrites)
            megabytes = plain * share / MEGABYTE
            scenario = f"compaction of {plain / MEGABYTE:.0f} MB, codec {codec}"
            self.report.add(scenario, "MB/s", "higher", broker.name, megabytes / seconds)
            self.report.add(
                scenario, "broker CPU s per GB", "lower", broker.name, used / megabytes * 1000
            )
            sizes = segment_sizes(broker.log_dir / f"{topic}-0")
            left = sum(size for base, size in sizes.items() if base < ends[0])
            stored = sum(map(len, self.data.of(codec))) * self.scale.overwrites * share
            self.report.add(scenario, "% that stays", "lower", broker.name, 100 * left / stored)
            delete(broker, topic)

    def latency(self, broker: RunningBroker) -> None:
        """Latency of another topic beside a large dirty one, before and while that is compacted."""
        count = self.scale.busy_partitions
        dirty = self._dirty_topic(broker, "none", count)
        ends = self._settled(broker, dirty, count)
        os.sync()  # the kernel has written out what was filled in, for both measurements
        for busy in (False, True):
            topic = self._new_topic(broker, 1, {})
            if busy:
                configure(broker, dirty, COMPACT)
            seen = self.load.run(
                "latency", broker.bootstrap, topic, RATE,
                self.scale.latency_s, 100, acks="all", linger_ms=0,
            )  # fmt: skip
            when = "while a compaction runs" if busy else "without compaction"
            scenario = f"produce at {RATE:,} records/s, {when}"
            for name in ("p50", "p99"):
                value = seen[f"ack_{name}_ms"]
                self.report.add(scenario, f"acknowledged {name} ms", "lower", broker.name, value)
            delete(broker, topic)
        if compacted(broker, dirty, ends):
            say(f"{broker.name}: the compaction ended before the measurement did")
        wait_until(lambda: compacted(broker, dirty, ends), "compaction", 300)
        delete(broker, dirty)

    def _dirty_topic(self, broker: RunningBroker, codec: str, partitions: int) -> str:
        """Make a topic in which every key is written over many times, not compacted yet."""
        batches = self.data.of(codec)
        size = sum(map(len, batches)) * self.scale.overwrites
        topic = self._new_topic(
            broker,
            partitions,
            {"cleanup.policy": "delete", "segment.bytes": str(max(size // 10, 1 << 20))},
        )
        for partition in range(partitions):
            times = range(self.scale.overwrites)
            fill(broker, topic, ((partition, batch) for _ in times for batch in batches))
        return topic

    def _settled(self, broker: RunningBroker, topic: str, partitions: int) -> list[int]:
        """Wait until all closed segments are flushed; return where the active ones begin."""
        ends = []
        file = broker.log_dir / "recovery-point-offset-checkpoint"
        for partition in range(partitions):
            end = max(segment_sizes(broker.log_dir / f"{topic}-{partition}"))
            wait_until(lambda: checkpointed(file, topic, partition) >= end, "flush")  # noqa: B023
            ends.append(end)
        return ends

    # -- look-ups -------------------------------------------------------------------------------

    def lookups(self, broker: RunningBroker) -> None:
        """Offsets by timestamp, at random, in a topic of many small segments."""
        batches, first_ms = timed_batches(16 * self.scale.segments, 16, 1000, 2)
        topic = self._new_topic(broker, 1, {"segment.bytes": str(16 * len(batches[0]))})
        fill(broker, topic, ((0, batch) for batch in batches))
        random, last = Random(2), 16 * len(batches)
        wanted = [random.randrange(last) for _ in range(self.scale.lookups)]
        frames = [list_offsets(topic, first_ms + 2 * offset) for offset in wanted]
        connection = requests.Connection(broker.bootstrap)
        with connection.socket:
            for offset, frame in zip(wanted[:200], frames, strict=False):
                found = found_offset(connection.ask(frame), topic)
                assert found == offset, f"ListOffsets: {found}, not {offset}"
            for warming in (True, False):
                cpu, began = broker.cpu_seconds(), time.monotonic()
                for start in range(0, len(frames), 8):
                    burst = frames[start : start + 8]
                    connection.send(b"".join(burst))
                    connection.swallow(len(burst))
                seconds, used = time.monotonic() - began, broker.cpu_seconds() - cpu
                if warming:
                    continue
                count = len(segment_sizes(broker.log_dir / f"{topic}-0"))
                scenario = f"offsets by timestamp, about {round(count, -2)} segments"
                rate = len(frames) / seconds
                self.report.add(scenario, "look-ups/s (8 in flight)", "higher", broker.name, rate)
                each = used / len(frames) * 1e6
                self.report.add(scenario, "broker CPU µs each", "lower", broker.name, each)
        delete(broker, topic)

    def _new_topic(self, broker: RunningBroker, partitions: int, config: dict[str, str]) -> str:
        topic = f"storage-{next(self.number)}"
        create(broker, topic, partitions, config)
        return topic

    # -- starts ---------------------------------------------------------------------------------

    def recovery(self, start: Starter, place: Path) -> None:
        """Kill a broker over a log that nobody flushed, and start it.

        A killed broker may wait for its old session to end before it serves, whatever its log:
        what a start after a kill takes with a log of next to nothing is therefore taken off.
        """
        port, batches = free_port(), self.data.of("none")
        broker = start(place, port=port)
        create(broker, RECOVERED, 4, {})
        fill(broker, RECOVERED, [(number, batches[0]) for number in range(4)])
        kill(broker)
        small_s, small_cpu = self._start(
            start, place, port, RECOVERED, "start after a kill, empty log"
        )
        broker = start(place, port=port, wait=False)
        requests.first_acknowledged(broker.bootstrap, RECOVERED)
        chosen: list[tuple[int, bytes]] = []
        sent = 0
        while sent < self.scale.recovery_bytes:
            chosen.append((len(chosen) % 4, batches[len(chosen) % len(batches)]))
            sent += len(chosen[-1][1])
        fill(broker, RECOVERED, chosen)
        kill(broker)
        megabytes = sent / MEGABYTE
        scenario = f"start after a kill, {megabytes:.0f} MB not flushed"
        full_s, full_cpu = self._start(start, place, port, RECOVERED, scenario)
        used = (full_cpu - small_cpu) / megabytes * 1000
        metric = "CPU s per GB, beyond the start with an empty log"
        self.report.add(scenario, metric, "lower", broker.name, used)
        if full_s - small_s > NOTICEABLE_S:
            rate = megabytes / (full_s - small_s)
            metric = "MB/s, beyond the start with an empty log"
            self.report.add(scenario, metric, "higher", broker.name, rate)
        told = told_recovery(place.with_name(place.name + ".out"))
        if told is not None:
            self.report.add(
                scenario, "s per GB, by the broker's own log", "lower", broker.name, told
            )
        shutil.rmtree(place)

    def many(self, start: Starter, place: Path) -> None:
        """Start a broker of many partitions that was stopped cleanly."""
        port, count = free_port(), self.scale.partitions
        broker = start(place, port=port)
        create(broker, MANY, count, {})
        batch = self.data.of("none")[0]
        fill(broker, MANY, ((number, batch) for number in range(count)))
        broker.stop(120)
        for _ in range(self.scale.repetitions):
            self._start(start, place, port, MANY, f"start with {count:,} partitions, closed")
        shutil.rmtree(place)

    def _start(
        self, start: Starter, place: Path, port: int, topic: str, scenario: str
    ) -> tuple[float, float]:
        began = time.monotonic()
        broker = start(place, port=port, wait=False)
        try:
            seconds = requests.first_acknowledged(broker.bootstrap, topic) - began
            used = broker.cpu_seconds()
            assert broker.process.poll() is None, f"{broker.name} ended"
            self.report.add(scenario, "first acknowledged record, s", "lower", broker.name, seconds)
            self.report.add(scenario, "CPU s until then", "lower", broker.name, used)
        finally:
            broker.stop(120)
        return seconds, used


def kill(broker: RunningBroker) -> None:
    """End a broker without warning."""
    broker.process.send_signal(signal.SIGKILL)
    broker.process.wait()


def told_recovery(output: Path) -> float | None:
    """Return how many seconds per GB our broker says recovery took; the other one is mute."""
    if not output.exists():
        return None
    text = output.read_text(errors="replace")
    seconds = sum(float(found) for found in CHECKED.findall(text))
    size = sum(int(found) for found in WALKED.findall(text))
    assert seconds * size, f"{output} does not say what was recovered"
    return seconds / size * 1e9


def list_offsets(topic: str, timestamp: int) -> bytes:
    """A ListOffsets v6 request for one timestamp in partition 0."""
    partition = struct.pack(">iiq", 0, -1, timestamp) + b"\0"
    topics = requests.count(1) + requests.compact(topic) + requests.count(1) + partition + b"\0"
    return requests.frame(2, 6, struct.pack(">ib", -1, 0) + topics + b"\0")


def found_offset(answer: bytes, topic: str) -> int:
    """Return the offset in a ListOffsets v6 answer."""
    at = 5 + 4 + 1 + 1 + len(topic) + 1
    _, code, _, offset = struct.unpack_from(">ihqq", answer, at)
    assert code == 0, f"ListOffsets: error {code}"
    return int(offset)


def create(broker: RunningBroker, topic: str, partitions: int, config: dict[str, str]) -> None:
    """Create a topic and wait until every partition of it has a leader."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(topic, partitions, 1, config=config)])[topic].result(60)
    while True:
        found = admin.list_topics(topic, timeout=60).topics[topic].partitions
        if len(found) == partitions and all(each.leader >= 0 for each in found.values()):
            return


def delete(broker: RunningBroker, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.delete_topics([topic])[topic].result(60)


def configure(broker: RunningBroker, topic: str, config: dict[str, str]) -> None:
    """Change a topic's config."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        for name, value in config.items()
    ]
    resource = ConfigResource("topic", topic, incremental_configs=entries)
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(60)


def compacted(broker: RunningBroker, topic: str, ends: Sequence[int]) -> bool:
    """Tell whether the cleaner has been over all closed segments."""
    file = broker.log_dir / "cleaner-offset-checkpoint"
    return all(checkpointed(file, topic, number) >= end for number, end in enumerate(ends))


def say(what: str) -> None:
    """Tell on stderr what is going on; the result alone goes to stdout."""
    print(what, file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="The log's life beside Apache Kafka.")
    parser.add_argument("--quick", action="store_true", help="a minute or two, one repetition")
    parser.add_argument("--markdown", action="store_true", help="print Markdown, not a table")
    parser.add_argument("--repetitions", type=int, help="how often each scenario is measured")
    parser.add_argument("--only", choices=["barnabas", "apache"], help="measure one broker alone")
    parser.add_argument(
        "--scenario", choices=SCENARIOS, action="append", help="measure this; may come again"
    )
    args = parser.parse_args(arguments)
    scale = Scale.quick() if args.quick else Scale.full()
    scale = replace(scale, repetitions=args.repetitions or scale.repetitions)
    chosen = args.scenario or SCENARIOS
    found, missing = starters(args.only)
    report = Report(
        [
            machine(),
            f"{scale.repetitions} repetitions, brokers in turn, after one unmeasured turn of"
            " everything but the starts",
            "one cleaner thread each and no limit to its rate, the other options at their defaults"
            " (Apache Kafka with a heap of 1 GB)",
            *([missing] if missing else []),
        ]
    )
    bench = Bench(scale, Data(scale), Load.build(), report)
    directory = Path(tempfile.mkdtemp(prefix="barnabas-bench-"))
    brokers: list[RunningBroker] = []
    try:
        for _ in range(scale.repetitions if "recovery" in chosen else 0):
            for name, start in found.items():
                say(f"recovery, {name}")
                bench.recovery(start, directory / name)
        for name, start in found.items() if "many" in chosen else ():
            say(f"start with many partitions, {name}")
            bench.many(start, directory / name)
        for name, start in found.items():
            brokers.append(start(directory / f"{name}-run", port=free_port(), options=OPTIONS))
        for turn in range(1 + scale.repetitions):
            bench.report = report if turn else Report([])
            for wanted in chosen:
                if wanted in ("recovery", "many"):
                    continue  # measured above
                scenario = getattr(bench, wanted)
                for broker in brokers if turn % 2 == 0 else brokers[::-1]:
                    say(f"turn {turn}: {wanted}, {broker.name}")
                    scenario(broker)
    finally:
        for broker in brokers:
            broker.stop()
        shutil.rmtree(directory)
    if args.markdown:
        print(report.markdown())
    else:
        report.show()
    say(f"every value is in {report.save(RESULTS, 'storage')}")


if __name__ == "__main__":
    main()

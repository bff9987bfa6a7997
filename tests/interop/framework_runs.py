"""A framework at work: records go in, a process is killed, what comes out is counted.

The killed process is in the middle: half of the records are sent before, and it is killed when some
of its results are there; the other half follows, and another process takes over.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest
from tools.apache_kafka import ROOT, Unavailable
from tools.frameworks import SOURCES, fetch

from barnabas import KafkaAdminClient, KafkaConsumer, KafkaProducer
from barnabas.admin import NewTopic

KEYS = 10
HALF = 500
TOTAL = 2 * HALF
PARTITIONS = 4
DEADLINE_S = 240.0

Results = Mapping[str, Sequence[Any]]
"""The values of each key, in order."""


def fetched(part: str) -> Path:
    """Return the folder of a part of tools/frameworks.py, or skip the test with the reason."""
    try:
        return fetch(part)
    except Unavailable as why:
        pytest.skip(str(why))


class Program:
    """A process of a framework, whose output goes to a file."""

    def __init__(
        self,
        command: Sequence[str | Path],
        log: Path,
        environment: Mapping[str, str] | None = None,
        directory: Path | None = None,
    ) -> None:
        self.log = log
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                [str(word) for word in command],
                stdout=output,
                stderr=output,
                stdin=subprocess.DEVNULL,
                cwd=directory,
                env={**os.environ, **(environment or {})},
            )

    def check(self) -> None:
        """Fail the test if the process has ended."""
        if self.process.poll() is not None:
            pytest.fail(f"exited with {self.process.returncode}:\n{self.said()}", pytrace=False)

    def said(self) -> str:
        """Return the end of what it printed."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-40:])

    def kill(self) -> None:
        """Kill it, as a crash would."""
        self.process.kill()
        self.process.wait()

    def __enter__(self) -> Program:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.kill()


def python_program(script: str, log: Path, *arguments: object) -> Program:
    """Start a script of frameworks/python in its environment."""
    python = fetched("python") / "venv" / "bin" / "python"
    command = [python, SOURCES / "python" / script, *map(str, arguments)]
    environment = {"PYTHONPATH": str(ROOT / "src"), "PYTHONUNBUFFERED": "1"}
    return Program(command, log, environment, log.parent)


def create_topics(bootstrap: str, *names: str, partitions: int = PARTITIONS) -> None:
    """Create topics."""
    with KafkaAdminClient(bootstrap_servers=bootstrap) as admin:
        admin.create_topics([NewTopic(name, num_partitions=partitions) for name in names])


def send(bootstrap: str, topic: str, numbers: range) -> None:
    """Send a JSON object with an id for each number; ids with the same last digit have one key."""
    with KafkaProducer(bootstrap_servers=bootstrap) as producer:
        for number in numbers:
            value = json.dumps({"id": number}).encode()
            producer.send(topic, value, key=b"key-%d" % (number % KEYS))
        producer.flush()


class Reader:
    """Reads a topic as it grows, committed records only."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._consumer = KafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=None,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            metadata_max_age_ms=1000,
        )
        self.values: dict[str, list[Any]] = defaultdict(list)
        self.count = 0

    def until(self, done: Callable[[], bool], *programs: Program) -> None:
        """Read until something is so; fail if a program exits before, or at the deadline."""
        deadline = time.monotonic() + DEADLINE_S
        while not done():
            for program in programs:
                program.check()
            if time.monotonic() > deadline:
                said = "\n".join(program.said() for program in programs)
                pytest.fail(f"{self.count} results within {DEADLINE_S} s:\n{said}", pytrace=False)
            self.poll()

    def poll(self, timeout_ms: int = 100) -> None:
        """Read what is there."""
        for records in self._consumer.poll(timeout_ms=timeout_ms).values():
            for record in records:
                key = (record.key or b"").decode(errors="replace")
                value = None if record.value is None else record.value.decode()
                self.values[key].append(json.loads(value) if value is not None else None)
                self.count += 1

    @property
    def ids(self) -> Counter:
        """How often each id is among the results."""
        return Counter(value["id"] for values in self.values.values() for value in values)

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *about: object) -> None:
        self._consumer.close()


def run_and_kill(
    bootstrap: str, source: str, target: str, start: Callable[[str], Program], *, total: int = TOTAL
) -> Reader:
    """Run a program over `total` records, one of its processes killed; return what came out.

    The reader is closed, and has read until every id was there, and a moment longer.
    """
    half = total // 2
    send(bootstrap, source, range(half))
    with Reader(bootstrap, target) as reader:
        with start("first") as first:
            reader.until(lambda: reader.count >= half // 10, first)
            first.kill()
        send(bootstrap, source, range(half, total))
        with start("second") as second:
            reader.until(lambda: len(reader.ids) >= total, second)
            for _ in range(10):  # what comes twice comes now
                reader.poll()
        return reader


def assert_counted_once(reader: Reader, total: int = TOTAL) -> None:
    """Assert that each record has one result, and that each key was counted without a gap."""
    repeated = {number: times for number, times in reader.ids.items() if times != 1}
    missing = set(range(total)) - set(reader.ids)
    assert (repeated, missing) == ({}, set())
    for key, values in reader.values.items():
        assert [value["seen"] for value in values] == list(range(1, total // KEYS + 1)), key


def assert_counted_at_least_once(reader: Reader, total: int = TOTAL) -> None:
    """Assert that no record is missing, and that only what the killed process had is repeated."""
    assert set(reader.ids) == set(range(total))
    repeated = {number for number, times in reader.ids.items() if times > 1}
    assert repeated <= set(range(total // 2))
    assert max(reader.ids.values()) <= 2

"""What tests of mirrors share: records of every shape, a mirror as a process, logs read back."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from barnabas import KafkaAdminClient, KafkaConsumer, TopicPartition
from barnabas.admin.topics import NewTopic
from barnabas.aio import AIOKafkaProducer
from barnabas.client.retry import Backoff
from barnabas.mirror.client_options import ClientOptions
from barnabas.mirror.engine import MirrorOptions
from barnabas.mirror.mirror import Mirror
from barnabas.mirror.provenance import HEADER, origin_offset
from barnabas.mirror.replication_policy import TopicFilter
from barnabas.mirror.rounds import TaskRunner, task_engine
from barnabas.mirror.sending import send_rows
from barnabas.mirror.tasks import CopyResult, CopyTask, copy_shards

DEADLINE_S = 300.0


class Shape(NamedTuple):
    """A record without its place."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp: int


def some_shapes(random: Random, count: int) -> list[Shape]:
    """Return records with and without keys, values and headers, at all kinds of times."""

    def some_bytes(size_max: int) -> bytes:
        return random.randbytes(random.randrange(size_max))

    return [
        Shape(
            *random.choices(
                [
                    (some_bytes(20), some_bytes(200)),
                    (None, some_bytes(200)),
                    (some_bytes(20), None),
                    (None, None),
                ],
                [60, 20, 19, 1],
            )[0],
            tuple(
                (f"h{number}", random.choice([None, b"", random.randbytes(5)]))
                for number in range(random.choice([0, 0, 0, 1, 3]))
            ),
            random.randrange(1_600_000_000_000, 1_700_000_000_000),
        )
        for _ in range(count)
    ]


def create(bootstrap: str, name: str, partitions: int, **configs: str) -> None:
    """Create a topic; options with underscores for dots. Old records are not deleted."""
    dotted = {option.replace("_", "."): value for option, value in configs.items()}
    with closing(KafkaAdminClient(bootstrap_servers=bootstrap)) as admin:
        admin.create_topics([NewTopic(name, partitions, 1, {}, {"retention.ms": "-1"} | dotted)])


def send(bootstrap: str, topic: str, partition: int, shapes: Sequence[Shape]) -> None:
    """Write records to a partition."""

    async def write() -> None:
        async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
            rows = [(each.key, each.value, each.headers, each.timestamp) for each in shapes]
            await send_rows(producer, topic, partition, rows)
            await producer.flush()

    asyncio.run(write())


class Read(NamedTuple):
    """Records of a partition, and where each of them came from."""

    shapes: list[Shape]
    origins: list[int | None]
    offsets: list[int]


def read(bootstrap: str, topic: str, partition: int, source_id: str = "") -> Read:
    """Read what is committed of a partition; stamps are taken out of the headers."""
    place = TopicPartition(topic, partition)
    found = Read([], [], [])
    with closing(
        KafkaConsumer(
            bootstrap_servers=bootstrap,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
        )
    ) as consumer:
        consumer.assign([place])
        [end] = consumer.end_offsets([place]).values()
        deadline_s = time.monotonic() + DEADLINE_S
        while consumer.position(place) < end:
            assert time.monotonic() < deadline_s, f"{place} was not read up to {end}"
            for record in consumer.poll(200).get(place, ()):
                headers = tuple(pair for pair in record.headers if pair[0] != HEADER)
                found.shapes.append(Shape(record.key, record.value, headers, record.timestamp))
                found.origins.append(origin_offset(record.headers, source_id))
                found.offsets.append(record.offset)
    return found


def written(bootstrap: str, topic: str, partitions: int) -> int:
    """Return how many offsets a topic has used, those of open transactions included."""
    with closing(KafkaConsumer(bootstrap_servers=bootstrap)) as consumer:
        if topic not in consumer.topics():
            return 0
        there = consumer.partitions_for_topic(topic) or ()
        places = [TopicPartition(topic, index) for index in range(partitions) if index in there]
        return sum(consumer.end_offsets(places).values())


def cluster_id(bootstrap: str) -> str:
    with closing(KafkaAdminClient(bootstrap_servers=bootstrap)) as admin:
        found: str = admin.describe_cluster()["cluster_id"]
        return found


def own_option(bootstrap: str, topic: str, option: str) -> str | None:
    """Return what an option of a topic was set to."""
    told = subprocess.run(
        [sys.executable, *f"-m barnabas.cli configs describe --topic {topic} --json".split()],
        env={**os.environ, "BARNABAS_BOOTSTRAP": bootstrap},
        capture_output=True,
        check=True,
    )
    found = json.loads(told.stdout)
    return next((each["value"] for each in found if each["name"] == option), None)


def command(source: str, target: str, *words: str) -> list[str]:
    """Return a mirror's command line."""
    head = [sys.executable, "-m", "barnabas.cli", "mirror"]
    return [*head, "--source", source, "--target", target, *words]


def mirror(source: str, target: str, *words: str) -> dict[str, Any]:
    """Copy until caught up; return the last report."""
    done = subprocess.run(
        command(source, target, "--until-caught-up", "--json", *words),
        capture_output=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    report: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return report


@contextmanager
def running(words: Sequence[str], said: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a mirror, which is killed in the end if it still runs."""
    with said.open("ab") as output:
        process = subprocess.Popen(words, stdout=output, stderr=output)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@contextmanager
def closing(client: Any) -> Iterator[Any]:
    try:
        yield client
    finally:
        client.close()


class Here:
    """Runs tasks in this process, and keeps them."""

    def __init__(self) -> None:
        self.tasks: list[CopyTask] = []

    def capacity(self) -> int:
        return 2

    async def run(self, tasks: Sequence[CopyTask]) -> list[CopyResult]:
        self.tasks += tasks
        return [await copy_shards(task) for task in tasks]

    def cancel(self) -> None:
        raise AssertionError("tasks in this process end by themselves")


def in_rounds(clusters: tuple[str, str], topic: str, runner: TaskRunner) -> Mirror:
    """Return what copies a topic until caught up, by tasks; the mirror has the topic's name."""
    source, target = (ClientOptions({"bootstrap.servers": each}) for each in clusters)
    options = MirrorOptions(
        source,
        target,
        TopicFilter([re.escape(topic)]),
        name=topic,
        until_caught_up=True,
        commit_interval_ms=50,
    )
    return Mirror(
        options,
        task_engine(runner),
        backoff=Backoff(lambda: 0.5, initial_ms=1, max_ms=10),
        timeout_ms=60_000,
        notify=lambda text: None,
        now_ms=asyncio.get_running_loop().time() * 1000,
    )


def copy_in_rounds(clusters: tuple[str, str], topic: str, runner: TaskRunner) -> Mirror:
    """Copy a topic by tasks, and return the mirror."""

    async def run() -> Mirror:
        made = in_rounds(clusters, topic, runner)
        await made.run()
        return made

    return asyncio.run(run())

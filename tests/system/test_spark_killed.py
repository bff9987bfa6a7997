"""Whoever dies, at whatever step: a stream with `exactlyOnce` writes every record once.

In seeded order a Python worker, an executor, the driver or the broker is killed between two steps
of a batch; what is dead is started again. In the end the target has, in each partition, the records
of the source, one by one and in their order.

`BARNABAS_CHAOS_KILLS` says how many there are: half of them with Spark in one process, half on a
standalone Spark. Unless it is set there are three, one of each kind, in one process. The seed is
`BARNABAS_CHAOS_SEED`, or is drawn, and printed.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.system.standalone import CONF, Process, Standalone, driver

from barnabas import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from barnabas.admin import NewTopic
from barnabas.testing import Cluster

pytest.importorskip("pyspark", reason="pip install 'barnabas[spark]'")

from tests.system.stopping_sink import COMMIT_STEPS, TASK_STEPS

KILLS = int(os.environ.get("BARNABAS_CHAOS_KILLS", "0"))

pytestmark = [
    pytest.mark.system,
    pytest.mark.xdist_group("spark"),
    pytest.mark.timeout(900 + 90 * KILLS),
]

ONE_PROCESS = "local[2,4]"  # two tasks at once, four attempts at each
PARTITIONS, BATCH = 4, 40
GROUP = "killed-readers"
DEADLINE_S = 300.0
"""For the next sign of life: a kill, or a batch that is done."""

PROGRAM = """
import json, sys
from pyspark.sql import SparkSession
from tests.system.stopping_sink import StoppingSource

master, bootstrap, directory, limit, conf = sys.argv[1:]
builder = SparkSession.builder.master(master)
for name, value in json.loads(conf).items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
spark.dataSource.register(StoppingSource)
servers = {"kafka.bootstrap.servers": bootstrap}
rows = (
    spark.readStream.format("barnabas").options(**servers)
    .options(subscribe="killed-source", startingOffsets="earliest", includeHeaders="true")
    .options(offsetGroup="killed-readers", maxOffsetsPerTrigger=limit).load()
)
query = (
    rows.select("key", "value", "partition", "timestamp", "headers")
    .writeStream.format("barnabas-stopping").options(**servers)
    .options(topic="killed-target", exactlyOnce="true", stops=directory)
    .option("checkpointLocation", directory + "/checkpoint")
    .trigger(availableNow=True).start()
)
query.awaitTermination()
spark.stop()
"""


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """A broker that can be killed."""
    with Cluster(process=True) as running:
        yield running


def planned(seed: int, count: int, victims: Sequence[str]) -> list[dict[str, Any]]:
    """Return the kills of a run: one in a batch, from the second on; all kinds in turn."""
    chance = random.Random(seed)
    pairs = [
        *itertools.product(TASK_STEPS, victims),
        *((step, victim) for step in COMMIT_STEPS for victim in victims if victim != "executor"),
    ]
    chance.shuffle(pairs)
    chosen = []
    for victim in itertools.islice(itertools.cycle(victims), count):
        # The longest unused step of this kind.
        pair = next(each for each in pairs if each[1] == victim)
        pairs.remove(pair)
        pairs.append(pair)
        chosen.append(pair)
    chance.shuffle(chosen)
    return [
        {"number": number, "batch": number + 1, "step": step, "victim": victim}
        for number, (step, victim) in enumerate(chosen)
    ]


class Run:
    """A query from its first start to its end, however often it is killed in between."""

    def __init__(self, master: str, cluster: Cluster, directory: Path) -> None:
        self._words = [master, cluster.bootstrap, str(directory), str(BATCH), json.dumps(CONF)]
        self._cluster = cluster
        self._directory = directory
        self._lives = 0

    def finish(self, kills: list[dict[str, Any]]) -> int:
        """Run until the query is done; return how many drivers it took."""
        (self._directory / "stops.json").write_text(json.dumps(kills))
        left = list(kills)
        program, begun_before = self._start(), 0
        signs, deadline_s = 0, 0.0
        try:
            while program.code != 0:
                for kill in [each for each in left if self._has("reached", each)]:
                    left.remove(kill)
                    if kill["victim"] == "driver":
                        program.end()
                    else:
                        self._cluster.kill()
                        self._cluster.start()
                    (self._directory / f"go-{kill['number']}").touch()
                begun = sum(self._has("begun", each) for each in kills)
                if program.code not in (None, 0):
                    # It was killed, or its query failed with what was killed.
                    assert begun > begun_before, program.text()[-4000:]
                    begun_before = begun
                    program.end()
                    program = self._start()
                done = len(list(self._directory.glob("checkpoint/commits/*")))
                if begun + done + self._lives != signs:
                    signs, deadline_s = begun + done + self._lives, time.monotonic() + DEADLINE_S
                assert time.monotonic() < deadline_s, program.text()[-4000:]
                time.sleep(0.02)
        finally:
            program.end()
        return self._lives

    def _has(self, name: str, kill: dict[str, Any]) -> bool:
        return (self._directory / f"{name}-{kill['number']}").exists()

    def _start(self) -> Process:
        self._lives += 1
        return driver(PROGRAM, self._words, self._directory / f"driver-{self._lives}.log")


def committed(bootstrap: str, topic: str) -> dict[int, list[Any]]:
    """Return the committed records of a topic, partition by partition."""
    places = [TopicPartition(topic, index) for index in range(PARTITIONS)]
    with KafkaConsumer(bootstrap_servers=bootstrap, isolation_level="read_committed") as consumer:
        consumer.assign(places)
        consumer.seek_to_beginning()
        ends = consumer.end_offsets(places)
        found: dict[int, list[Any]] = {place.partition: [] for place in places}
        while any(consumer.position(place) < ends[place] for place in places):
            for place, records in consumer.poll(timeout_ms=100).items():
                found[place.partition] += [
                    (each.key, each.value, each.timestamp, tuple(each.headers)) for each in records
                ]
        return found


def test_every_record_is_written_once(cluster: Cluster, tmp_path: Path) -> None:
    kills_spoil_nothing(ONE_PROCESS, cluster, tmp_path, KILLS // 2 or 3)


@pytest.mark.skipif(KILLS == 0, reason="BARNABAS_CHAOS_KILLS is not set")
def test_every_record_is_written_once_by_executors(
    standalone: Standalone, cluster: Cluster, tmp_path: Path
) -> None:
    kills_spoil_nothing(standalone.master, cluster, tmp_path, KILLS - KILLS // 2)


def kills_spoil_nothing(master: str, cluster: Cluster, tmp_path: Path, wanted: int) -> None:
    seed = int(os.environ.get("BARNABAS_CHAOS_SEED", "0")) or random.randrange(1 << 32)
    victims = ["worker", "driver", "broker"]
    if master != ONE_PROCESS:
        victims.append("executor")
    kills = planned(seed, wanted, victims)
    print(f"BARNABAS_CHAOS_SEED={seed}:", *(f"{each['victim']}/{each['step']}" for each in kills))
    count = BATCH * (len(kills) + 2)
    with KafkaAdminClient(bootstrap_servers=cluster.bootstrap) as admin:
        keeping = {"retention.ms": "-1"}
        admin.create_topics(
            [
                NewTopic(name, PARTITIONS, 1, topic_configs=keeping)
                for name in ("killed-source", "killed-target")
            ]
        )
    with KafkaProducer(bootstrap_servers=cluster.bootstrap) as producer:
        for number in range(count):
            producer.send(
                "killed-source",
                b"%d" % number,
                key=b"k%d" % (number % 7),
                partition=number % PARTITIONS,
                timestamp_ms=1_700_000_000_000 + number,
                headers=[("n", b"%d" % number)],
            )
    began_s = time.monotonic()
    lives = Run(master, cluster, tmp_path).finish(kills)
    print(f"{len(kills)} kills, {lives} drivers, {time.monotonic() - began_s:.0f} s")
    assert len(list(tmp_path.glob("begun-*"))) == len(kills)
    sent = committed(cluster.bootstrap, "killed-source")
    assert sum(map(len, sent.values())) == count
    assert committed(cluster.bootstrap, "killed-target") == sent
    with KafkaAdminClient(bootstrap_servers=cluster.bootstrap) as admin:
        offsets = admin.list_consumer_group_offsets(GROUP)
    assert {place.partition: each.offset for place, each in offsets.items()} == dict.fromkeys(
        range(PARTITIONS), count // PARTITIONS
    )

"""`barnabas mirror --engine spark`: what the local engine promises, on a standalone Spark."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from tests.system.mirroring import (
    closing,
    cluster_id,
    command,
    create,
    mirror,
    own_option,
    read,
    send,
    some_shapes,
    written,
)
from tests.system.spark_session import QUICK_JAVA
from tests.system.standalone import Process, Standalone, members, until_gone

from barnabas import KafkaConsumer, TopicPartition
from barnabas.testing import Cluster

pytest.importorskip("pyspark", reason="pip install 'barnabas[spark]'")

pytestmark = [
    pytest.mark.system,
    pytest.mark.xdist_group("spark"),
    pytest.mark.timeout(900),
]

PARTITIONS, PARTS, RECORDS = 3, 5, 2500
DEADLINE_S = 300.0
SMALL = [
    word
    for option in (
        "spark.executor.memory=512m",
        "spark.driver.memory=512m",
        f"spark.executor.extraJavaOptions={QUICK_JAVA}",
    )
    for word in ("--conf", option)
]


@pytest.fixture(scope="module")
def clusters() -> Iterator[tuple[str, str]]:
    with Cluster() as source, Cluster() as target:
        yield source.bootstrap, target.bootstrap


def start(words: list[str], said: Path) -> Process:
    return Process(words, said, {"PYSPARK_PYTHON": sys.executable})


def until_written(
    target: str, topic: str, count: int, process: Process, partitions: int = PARTITIONS
) -> None:
    deadline_s = time.monotonic() + DEADLINE_S
    while written(target, topic, partitions) < count:
        assert process.code is None, process.text()[-3000:]
        assert time.monotonic() < deadline_s, process.text()[-3000:]
        time.sleep(0.1)


def test_a_mirror_on_spark_is_killed_and_stopped_and_goes_on(
    standalone: Standalone, clusters: tuple[str, str], tmp_path: Path
) -> None:
    source, target = clusters
    create(source, "on-spark-a", PARTITIONS, retention_bytes="1000000000")
    create(source, "on-spark-not", 1)
    create(target, "on-spark-a", 1)  # what is missing is added
    random = Random(11)
    sent = {index: some_shapes(random, PARTS * RECORDS) for index in range(PARTITIONS)}

    def send_part(number: int) -> None:
        for index, shapes in sent.items():
            part = shapes[number * RECORDS : (number + 1) * RECORDS]
            send(source, "on-spark-a", index, part)

    words = ["--topics", "on-spark-.*", "--exclude", ".*-not", "--name", "on-spark"]
    spark = [*words, "--master", standalone.master, *SMALL]
    send_part(0)
    # The first life goes on for ever, follows a topic that is new, and is killed as it writes.
    process = start(
        [*command(source, target, *spark), "--commit-interval", "0.05", "--refresh", "0.5"],
        tmp_path / "first.log",
    )
    try:
        until_written(target, "on-spark-a", PARTITIONS * RECORDS, process)
        create(source, "on-spark-b", 1)
        send(source, "on-spark-b", 0, some_shapes(Random(12), 50))
        until_written(target, "on-spark-b", 50, process, partitions=1)
        before = written(target, "on-spark-a", PARTITIONS)
        send_part(1)
        until_written(target, "on-spark-a", before + 1, process)
    finally:
        process.end()
    assert "topic on-spark-a: increased to 3 partitions" in process.text()
    standalone.until_idle()  # tasks that outlive their driver for a moment write, too
    # The next two run in one process, and are stopped as they write: by Ctrl-C, which reaches all
    # processes of a terminal's group, and by whoever stops a service with all that belongs to it.
    alone = command(source, target, *words, "--master", "local[2]", *SMALL)
    for part, stop, code in ((2, signal.SIGINT, 130), (3, signal.SIGTERM, 0)):
        before = written(target, "on-spark-a", PARTITIONS)
        send_part(part)
        process = start([*alone, "--commit-interval", "0.05"], tmp_path / f"{part}.log")
        try:
            until_written(target, "on-spark-a", before + 100, process)
            if stop is signal.SIGINT:
                os.killpg(process.number, stop)
            else:
                for number in members(process.number):
                    with suppress(ProcessLookupError):
                        os.kill(number, stop)
            assert process.wait() == code, process.text()[-3000:]
            until_gone(process)
        finally:
            process.end()
        said = process.text()
        assert all(line.startswith("barnabas mirror: ") for line in said.splitlines()), said
        assert re.search(r" records of 2 topics, .* lag ", said.splitlines()[-1]), said
    # The fifth catches up, and the sixth is the other engine.
    fifth = subprocess.run(
        [*alone, "--until-caught-up", "--json"],
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert fifth.returncode == 0, fifth.stderr.decode()[-3000:]
    assert fifth.stderr == b""
    report = json.loads(fifth.stdout.splitlines()[-1])
    assert (report["done"], report["lag"], report["topics"]) == (True, 0, 2)
    assert report["restarts"] == 0
    send_part(4)
    report = mirror(source, target, *words)
    assert (report["records"], report["lag"]) == (PARTITIONS * RECORDS, 0)

    source_id = cluster_id(source)
    for index, shapes in sent.items():
        copied = read(target, "on-spark-a", index, source_id)
        assert copied.origins == list(range(PARTS * RECORDS))
        assert copied.shapes == shapes
    with closing(KafkaConsumer(bootstrap_servers=target)) as consumer:
        assert "on-spark-not" not in consumer.topics()
    assert own_option(target, "on-spark-a", "retention.bytes") == "1000000000"
    offsets_become_those_of_the_same_records(source, target)


def offsets_become_those_of_the_same_records(source: str, target: str) -> None:
    place = TopicPartition("on-spark-a", 1)
    with closing(KafkaConsumer(bootstrap_servers=source, group_id="moving")) as consumer:
        consumer.assign([place])
        consumer.seek(place, 5000)
        consumer.commit()
    words = command(source, target)
    words.insert(4, "offsets")
    done = subprocess.run(
        [*words, "--topics", "on-spark-a", "--groups", "moving"], capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    copied = read(target, "on-spark-a", 1, cluster_id(source))
    with closing(KafkaConsumer(bootstrap_servers=target, group_id="moving")) as consumer:
        assert consumer.committed(place) == copied.offsets[copied.origins.index(5000)]

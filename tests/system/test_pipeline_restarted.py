"""A pipeline that is killed, then stopped by Ctrl-C, then run to its end: all is there once.

Topics, dead letters, a streaming table and a materialized view, whose catalog and files the next
run finds again. Each life is the command that users type.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.system.killing import committed
from tests.system.standalone import DEADLINE_S, Process, until_gone

pytest.importorskip("pyspark", reason="pip install 'barnabas[spark]'")
pytest.importorskip("grpc", reason="pip install 'barnabas[spark]'")

import pyarrow.parquet

from barnabas import KafkaAdminClient, KafkaProducer
from barnabas.admin import NewTopic
from barnabas.pipeline.demo.demo import CONFIGURATION

pytestmark = [
    pytest.mark.system,
    pytest.mark.xdist_group("spark"),
    pytest.mark.timeout(900),
]

PARTITIONS, CLICKS, BATCH = 2, 120, 40
TOPICS = ("restarted-clicks", "restarted-copies", "restarted-dead")

SPEC = """\
name: restarted
storage: file://@DIRECTORY@/storage
libraries:
  - glob:
      include: transformations/**
configuration: @CONFIGURATION@
"""

DEFINITIONS = """\
from pyspark import pipelines as dp
from pyspark.sql import functions as F

SERVERS = {"kafka.bootstrap.servers": "@SERVERS@"}


def clicks(flow):
    return (
        spark.readStream.format("barnabas")
        .options(**SERVERS, subscribe="restarted-clicks", startingOffsets="earliest")
        .options(valueFormat="json", valueSchema="n INT", includeRawValue="true")
        .options(maxOffsetsPerTrigger="@BATCH@", offsetGroup=f"restarted.{flow}")
        .load()
    )


dp.create_sink("out", "barnabas", {**SERVERS, "exactlyOnce": "true"})


@dp.append_flow(target="out")
def sent():
    return clicks("sent").select(
        F.expr("if(valueError IS NULL, 'restarted-copies', 'restarted-dead')").alias("topic"),
        "key",
        F.coalesce(F.col("value.n").cast("string").cast("binary"), "rawValue").alias("value"),
        "partition",
    )


@dp.table
def kept():
    return clicks("kept").where("value IS NOT NULL").select("partition", "offset", "value.n")


@dp.materialized_view
def kept_again():
    return spark.read.table("kept")
"""


def write_project(directory: Path, bootstrap: str) -> None:
    configuration = {"spark.sql.session.timeZone": "UTC", **CONFIGURATION}
    for place, text in (("spark-pipeline.yml", SPEC), ("transformations/all.py", DEFINITIONS)):
        path = directory / place
        path.parent.mkdir(parents=True, exist_ok=True)
        for name, value in {
            "DIRECTORY": str(directory),
            "CONFIGURATION": json.dumps(configuration),
            "SERVERS": bootstrap,
            "BATCH": str(BATCH),
        }.items():
            text = text.replace(f"@{name}@", value)
        path.write_text(text)


def send(bootstrap: str) -> list[list[Any]]:
    """Send clicks, every tenth of which cannot be read; return what was sent to each partition."""
    sent: list[list[Any]] = [[] for _ in range(PARTITIONS)]
    with KafkaProducer(bootstrap_servers=bootstrap) as producer:
        for number in range(CLICKS):
            value = b"{oops %d" % number if number % 10 == 3 else b'{"n": %d}' % number
            key, partition = b"k%d" % (number % 7), number % PARTITIONS
            producer.send(TOPICS[0], value, key=key, partition=partition)
            sent[partition].append((key, number, value))
    return sent


def count(bootstrap: str, topic: str) -> int:
    return sum(map(len, committed(bootstrap, topic, PARTITIONS).values()))


def start(directory: Path, said: Path) -> Process:
    words = [sys.executable, "-m", "barnabas.cli", "pipeline", "run", str(directory)]
    return Process([*words, "--master", "local[2]"], said)


def until_copied(bootstrap: str, more_than: int, process: Process) -> int:
    """Wait until some more records are out, and return how many there are."""
    deadline_s = time.monotonic() + DEADLINE_S
    while (found := count(bootstrap, TOPICS[1])) <= more_than:
        assert process.code is None, process.text()[-3000:]
        assert time.monotonic() < deadline_s, process.text()[-3000:]
        time.sleep(0.3)
    return found


def test_kills_and_interrupts_neither_lose_nor_repeat(bootstrap: str, tmp_path: Path) -> None:
    with KafkaAdminClient(bootstrap_servers=bootstrap) as admin:
        admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in TOPICS])
    sent = send(bootstrap)
    good = [
        [(key, b"%d" % number) for key, number, value in part if value.startswith(b'{"')]
        for part in sent
    ]
    write_project(tmp_path, bootstrap)

    first = start(tmp_path, tmp_path / "first.log")
    try:
        out = until_copied(bootstrap, 0, first)
        os.kill(first.number, signal.SIGKILL)
        assert first.wait() == -signal.SIGKILL
        until_gone(first)  # the JVM finds that it is alone, and leaves
    finally:
        first.end()
    assert out < sum(map(len, good))

    second = start(tmp_path, tmp_path / "second.log")
    try:
        until_copied(bootstrap, count(bootstrap, TOPICS[1]), second)
        os.killpg(second.number, signal.SIGINT)  # as a terminal does
        assert second.wait() == 130, second.text()[-3000:]
        until_gone(second)
    finally:
        second.end()
    assert "Traceback" not in second.text(), second.text()

    third = start(tmp_path, tmp_path / "third.log")
    try:
        assert third.wait() == 0, third.text()[-3000:]
        until_gone(third)
    finally:
        third.end()

    copies = committed(bootstrap, TOPICS[1], PARTITIONS)
    dead = committed(bootstrap, TOPICS[2], PARTITIONS)
    for index, part in enumerate(sent):
        assert [each[:2] for each in copies[index]] == good[index]
        assert [each[:2] for each in dead[index]] == [
            (key, value) for key, _, value in part if value.startswith(b"{oops")
        ]
    # The view has what Spark reads of the table, files of batches that were killed left out.
    rows = pyarrow.parquet.read_table(tmp_path / "storage" / "tables" / "kept_again").to_pylist()
    assert sorted((row["partition"], row["offset"], row["n"]) for row in rows) == sorted(
        (index, offset, number)
        for index, part in enumerate(sent)
        for offset, (_, number, value) in enumerate(part)
        if value.startswith(b'{"')
    )
    with KafkaAdminClient(bootstrap_servers=bootstrap) as admin:
        for flow in ("sent", "kept"):
            offsets = admin.list_consumer_group_offsets(f"restarted.{flow}")
            assert sum(each.offset for each in offsets.values()) == CLICKS

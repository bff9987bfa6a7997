"""A driver that is killed in the middle and started again copies a topic exactly once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from barnabas import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from barnabas.admin import NewTopic

pytest.importorskip("pyspark", reason="pip install 'barnabas[spark]'")

pytestmark = [
    pytest.mark.system,
    pytest.mark.xdist_group("spark"),
    pytest.mark.timeout(900),  # two sessions, one after the other
]

SOURCE, TARGET = "killed-source", "killed-target"
BATCH, RECORDS = 30, 120
DEADLINE_S = 240

DRIVER = """
import sys
from pyspark.sql import SparkSession

bootstrap, checkpoint, source, target, limit = sys.argv[1:]
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "2")
    .getOrCreate()
)
servers = {"kafka.bootstrap.servers": bootstrap}
rows = (
    spark.readStream.format("barnabas").options(**servers)
    .options(subscribe=source, startingOffsets="earliest", maxOffsetsPerTrigger=limit)
    .load().select("key", "value")
)
query = (
    rows.writeStream.format("barnabas").options(**servers)
    .options(topic=target, exactlyOnce="true", checkpointLocation=checkpoint)
    .trigger(availableNow=True).start()
)
query.awaitTermination()
spark.stop()
"""


class Driver:
    """A process that runs the query, with its JVM."""

    def __init__(self, bootstrap: str, directory: Path) -> None:
        self._log = (directory / "driver.log").open("ab")
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-c", DRIVER),
                *(bootstrap, str(directory / "checkpoint"), SOURCE, TARGET, str(BATCH)),
            ],
            env={**os.environ, "PYSPARK_PYTHON": sys.executable},
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
        )

    def kill(self) -> None:
        """End the driver and its JVM at once; workers end when they miss it."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._log.close()

    def wait(self) -> int:
        """Return its exit status."""
        return self._process.wait(DEADLINE_S)

    @property
    def running(self) -> bool:
        return self._process.poll() is None


def values(consumer: KafkaConsumer) -> list[int]:
    """Return what has come since the last call."""
    found = consumer.poll(timeout_ms=100)
    return [int(record.value) for records in found.values() for record in records]


def test_every_record_is_written_once(bootstrap: str, tmp_path: Path) -> None:
    with KafkaAdminClient(bootstrap_servers=bootstrap) as admin:
        admin.create_topics([NewTopic(SOURCE, 3, 1), NewTopic(TARGET, 1, 1)])
    with KafkaProducer(bootstrap_servers=bootstrap) as producer:
        for number in range(RECORDS):
            producer.send(SOURCE, b"%d" % number, partition=number % 3)
    with KafkaConsumer(bootstrap_servers=bootstrap, isolation_level="read_committed") as consumer:
        place = TopicPartition(TARGET, 0)
        consumer.assign([place])
        consumer.seek_to_beginning()
        seen: list[int] = []
        driver = Driver(bootstrap, tmp_path)
        try:
            deadline_s = time.monotonic() + DEADLINE_S
            # One batch and the first transaction of the next: the driver is about to commit the
            # second, or to note that the batch is done.
            while len(seen) <= BATCH:
                assert driver.running, (tmp_path / "driver.log").read_text()[-2000:]
                assert time.monotonic() < deadline_s
                seen += values(consumer)
        finally:
            driver.kill()
        assert len(seen) < RECORDS  # it was killed on its way
        driver = Driver(bootstrap, tmp_path)
        try:
            assert driver.wait() == 0, (tmp_path / "driver.log").read_text()[-2000:]
        finally:
            driver.kill()
        end = consumer.end_offsets([place])[place]
        while consumer.position(place) < end:
            seen += values(consumer)
    assert sorted(seen) == list(range(RECORDS))

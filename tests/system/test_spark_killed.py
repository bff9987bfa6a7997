"""Whoever dies, at whatever step: a stream with `exactlyOnce` writes every record once.

In seeded order a Python worker, an executor, the driver or the broker is killed between two steps
of a batch; what is dead is started again. In the end the target has, in each partition, the records
of the source, one by one and in their order.

`BARNABAS_CHAOS_KILLS` says how many there are: half of them with Spark in one process, half on a
standalone Spark. Unless it is set there are three, one of each kind, in one process. The seed is
`BARNABAS_CHAOS_SEED`, or is drawn, and printed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from tests.system.killing import Run, committed, seed
from tests.system.standalone import CONF, Standalone, driver
from tests.system.stops import planned

from barnabas import KafkaAdminClient, KafkaProducer
from barnabas.admin import NewTopic
from barnabas.testing import Cluster

pytest.importorskip("pyspark", reason="pip install 'barnabas[spark]'")

KILLS = int(os.environ.get("BARNABAS_CHAOS_KILLS", "0"))

pytestmark = [
    pytest.mark.system,
    pytest.mark.xdist_group("spark"),
    pytest.mark.timeout(900 + 90 * KILLS),
]

ONE_PROCESS = "local[2,4]"  # two tasks at once, four attempts at each
PARTITIONS, BATCH = 4, 40
GROUP = "killed-readers"

PROGRAM = """
import json, sys
from pyspark.sql import SparkSession
from tests.system.stopping_sink import StoppingSource, run_through

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
    .options(offsetGroup="killed-readers", maxOffsetsPerTrigger=limit, minPartitions="2").load()
)
writer = (
    rows.select("key", "value", "partition", "timestamp", "headers")
    .writeStream.format("barnabas-stopping").options(**servers)
    .options(topic="killed-target", exactlyOnce="true", stops=directory)
    .option("checkpointLocation", directory + "/checkpoint")
    .trigger(availableNow=True)
)
run_through(writer.start, directory)
spark.stop()
"""


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """A broker that can be killed."""
    with Cluster(process=True) as running:
        yield running


def test_every_record_is_written_once(cluster: Cluster, tmp_path: Path) -> None:
    kills_spoil_nothing(ONE_PROCESS, cluster, tmp_path, KILLS // 2 or 3)


@pytest.mark.skipif(KILLS == 0, reason="BARNABAS_CHAOS_KILLS is not set")
def test_every_record_is_written_once_by_executors(
    standalone: Standalone, cluster: Cluster, tmp_path: Path
) -> None:
    kills_spoil_nothing(standalone.master, cluster, tmp_path, KILLS - KILLS // 2)


def kills_spoil_nothing(master: str, cluster: Cluster, tmp_path: Path, wanted: int) -> None:
    chosen = seed()
    print(f"BARNABAS_CHAOS_SEED={chosen}")
    victims = ["worker", "driver", "broker"]
    if master != ONE_PROCESS:
        victims.append("executor")
    kills = planned(chosen, wanted, victims)
    count = BATCH * (len(kills) + 2)
    bootstrap = cluster.bootstrap
    with KafkaAdminClient(bootstrap_servers=bootstrap) as admin:
        keeping = {"retention.ms": "-1"}
        admin.create_topics(
            [
                NewTopic(name, PARTITIONS, 1, topic_configs=keeping)
                for name in ("killed-source", "killed-target")
            ]
        )
    with KafkaProducer(bootstrap_servers=bootstrap) as producer:
        for number in range(count):
            producer.send(
                "killed-source",
                b"%d" % number,
                key=b"k%d" % (number % 7),
                partition=number % PARTITIONS,
                timestamp_ms=1_700_000_000_000 + number,
                headers=[("n", b"%d" % number)],
            )
    words = [master, bootstrap, str(tmp_path), str(BATCH), json.dumps(CONF)]
    start = partial(driver, PROGRAM, words)
    Run(start, "checkpoint/commits", cluster, tmp_path).finish(kills)
    sent = committed(bootstrap, "killed-source", PARTITIONS)
    assert sum(map(len, sent.values())) == count
    assert committed(bootstrap, "killed-target", PARTITIONS) == sent
    with KafkaAdminClient(bootstrap_servers=bootstrap) as admin:
        offsets = admin.list_consumer_group_offsets(GROUP)
    assert {place.partition: each.offset for place, each in offsets.items()} == dict.fromkeys(
        range(PARTITIONS), count // PARTITIONS
    )

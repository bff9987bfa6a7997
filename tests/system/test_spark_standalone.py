"""On a real standalone Spark: executors in processes of their own read and write topics."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.system.killing import committed
from tests.system.spark_session import batch_ends
from tests.system.standalone import CONF, Standalone, driver

from barnabas import KafkaAdminClient, KafkaProducer
from barnabas.admin import NewTopic

pytest.importorskip("pyspark", reason="pip install 'barnabas[spark]'")

pytestmark = [
    pytest.mark.system,
    pytest.mark.xdist_group("spark"),
    pytest.mark.timeout(900),
]

PARTITIONS, RECORDS = 4, 2000
GROUP = "standalone-readers"

PROGRAM = """
import json, sys
from pyspark.sql import SparkSession
from tests.system.spark_session import finished

master, bootstrap, checkpoint, conf = sys.argv[1:]
builder = SparkSession.builder.master(master)
for name, value in json.loads(conf).items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
servers = {"kafka.bootstrap.servers": bootstrap}
rows = spark.read.format("barnabas").options(**servers).option("subscribe", "alone-source").load()
sums = rows.selectExpr("count(*) AS n", "sum(cast(cast(value AS STRING) AS BIGINT)) AS s").first()
said = {"count": sums.n, "sum": sums.s}
rows.select("key", "value", "partition").write.format("barnabas").options(**servers).option(
    "topic", "alone-batch"
).mode("append").save()

stream = (
    spark.readStream.format("barnabas").options(**servers)
    .options(subscribe="alone-source", startingOffsets="earliest", includeHeaders="true")
    .options(offsetGroup=GROUP, maxOffsetsPerTrigger="1200", minPartitions="2").load()
)
writer = (
    stream.select("key", "value", "partition", "timestamp", "headers")
    .writeStream.format("barnabas").options(**servers)
    .options(topic="alone-stream", exactlyOnce="true", checkpointLocation=checkpoint)
    .trigger(availableNow=True)
)
finished(writer.start)
executors = spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1
said["executors"] = executors
spark.stop()
print("SAID " + json.dumps(said), flush=True)
""".replace("GROUP", repr(GROUP))


def test_batches_and_streams_run_on_two_workers(
    standalone: Standalone, bootstrap: str, tmp_path: Path
) -> None:
    with KafkaAdminClient(bootstrap_servers=bootstrap) as admin:
        names = ("alone-source", "alone-batch", "alone-stream")
        admin.create_topics(
            [NewTopic(name, PARTITIONS, 1, topic_configs={"retention.ms": "-1"}) for name in names]
        )
    with KafkaProducer(bootstrap_servers=bootstrap) as producer:
        for number in range(RECORDS):
            producer.send(
                "alone-source",
                b"%d" % number,
                key=b"k%d" % (number % 10),
                partition=number % PARTITIONS,
                timestamp_ms=1_700_000_000_000 + number,
                headers=[("n", b"%d" % number)],
            )
    conf = {
        **CONF,
        # The first job waits for both executors: one of them would do it as well.
        "spark.cores.max": "2",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "300s",
    }
    program = driver(
        PROGRAM,
        [standalone.master, bootstrap, str(tmp_path / "checkpoint"), json.dumps(conf)],
        tmp_path / "driver.log",
    )
    try:
        assert program.wait(600) == 0, program.text()[-3000:]
        said = json.loads(program.text().rpartition("SAID ")[2])
    finally:
        program.end()
    assert said == {
        "count": RECORDS,
        "sum": sum(range(RECORDS)),
        "executors": 2,
    }
    assert batch_ends(tmp_path / "checkpoint") == [1200, 2000]
    sent = committed(bootstrap, "alone-source", PARTITIONS)
    assert sum(map(len, sent.values())) == RECORDS
    assert committed(bootstrap, "alone-stream", PARTITIONS) == sent
    written = committed(bootstrap, "alone-batch", PARTITIONS)
    for index, records in sent.items():
        assert sorted(each[:2] for each in written[index]) == sorted(each[:2] for each in records)
    with KafkaAdminClient(bootstrap_servers=bootstrap) as admin:
        offsets = admin.list_consumer_group_offsets(GROUP)
    assert {place.partition: each.offset for place, each in offsets.items()} == dict.fromkeys(
        range(PARTITIONS), RECORDS // PARTITIONS
    )

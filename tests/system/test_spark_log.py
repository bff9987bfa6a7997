"""Spark reads the files of a broker through `format("barnabas-log")`, while the broker runs.

One session for all: it takes the JVM some twenty seconds to come up. What tasks do is tested
without Spark in `tests/unit/spark`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from barnabas import KafkaAdminClient, KafkaProducer
from barnabas.admin import NewTopic
from tools.apache_kafka import Distribution, Unavailable
from tools.processes import RunningBroker, start_barnabas

pytest.importorskip("pyspark", reason="pip install 'barnabas[spark]'")

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [
    pytest.mark.system,
    pytest.mark.xdist_group("spark"),
    pytest.mark.filterwarnings("default"),  # what PySpark warns of is its own
]

COUNT = 3000


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    from pyspark.sql import SparkSession

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        session = (
            SparkSession.builder.master("local[2]")
            .config("spark.ui.enabled", "false")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.sql.session.timeZone", "UTC")
            .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
            .getOrCreate()
        )
        session.sparkContext.setLogLevel("OFF")
        yield session
        session.stop()


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("broker") / "data"


@pytest.fixture(scope="module")
def running(data: Path) -> Iterator[RunningBroker]:
    """A broker with two topics: one in small segments, one with transactions."""
    broker = start_barnabas(data)
    fill(broker)
    yield broker
    broker.stop()


def fill(broker: RunningBroker) -> None:
    small = {"segment.bytes": "20000"}
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap) as admin:
        admin.create_topics([NewTopic("numbers", 2, 1, topic_configs=small)])
        admin.create_topics([NewTopic("paid", 1, 1)])
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        with KafkaProducer(bootstrap_servers=broker.bootstrap, compression_type=codec) as producer:
            for number in range(COUNT // 5):
                headers = [("codec", codec.encode())]
                producer.send(
                    "numbers",
                    b"%d" % number,
                    key=codec.encode(),
                    partition=number % 2,
                    headers=headers,
                )
            producer.flush()
    with KafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id="log") as producer:
        producer.init_transactions()
        for number, ending in enumerate(["commit", "abort", "commit"]):
            producer.begin_transaction()
            producer.send("paid", b"%d" % number, partition=0)
            producer.flush()
            getattr(producer, f"{ending}_transaction")()


def load(spark: SparkSession, path: Path, **options: str) -> DataFrame:
    return spark.read.format("barnabas-log").options(**options).load(str(path))


def check(spark: SparkSession, data: Path) -> None:
    frame = load(spark, data, topics="numbers", includeHeaders="true")
    found = frame.groupBy("key").count().collect()
    assert {bytes(row.key).decode(): row["count"] for row in found} == dict.fromkeys(
        ("none", "gzip", "snappy", "lz4", "zstd"), COUNT // 5
    )
    assert frame.where("headers[0].value != key").count() == 0
    places = frame.groupBy("partition").agg({"offset": "max", "segment": "approx_count_distinct"})
    for row in places.collect():
        assert row["max(offset)"] == COUNT // 2 - 1
        assert row["approx_count_distinct(segment)"] > 1
    values = load(spark, data, topics="pa*", readCommitted="true").select("value").collect()
    assert sorted(bytes(row.value) for row in values) == [b"0", b"2"]
    markers = load(spark, data, topics="paid", includeControl="true").where(
        "controlType is not null"
    )
    assert sorted(row.controlType for row in markers.collect()) == ["ABORT", "COMMIT", "COMMIT"]


def test_the_files_of_a_running_broker(
    spark: SparkSession, running: RunningBroker, data: Path
) -> None:
    check(spark, data)
    frame = load(spark, data / "numbers-0", startingOffsets="10", endingOffsets="15")
    assert [row.offset for row in frame.orderBy("offset").collect()] == [10, 11, 12, 13, 14]
    both = spark.read.format("barnabas-log").load([str(data / "numbers-0"), str(data / "paid-0")])
    assert both.select("topic").distinct().count() == 2
    few = spark.read.format("barnabas-log").schema("offset BIGINT, segment STRING").load(str(data))
    assert few.columns == ["offset", "segment"]
    assert few.count() == COUNT + 3


def test_damage_is_reported_with_its_place(
    spark: SparkSession, running: RunningBroker, data: Path, tmp_path: Path
) -> None:
    source = sorted((data / "numbers-1").glob("*.log"))[0]
    copy = tmp_path / "numbers-1" / source.name
    copy.parent.mkdir()
    content = bytearray(source.read_bytes())
    content[100] ^= 1
    copy.write_bytes(content)
    rows = load(spark, copy.parent, onCorrupt="report").where("corrupt is not null").collect()
    assert [(row.segment, row.position) for row in rows] == [(str(copy), 0)]
    with pytest.raises(Exception, match="To go on without them, set onCorrupt") as failure:
        load(spark, copy.parent).count()
    assert f"{copy} at 0" in str(failure.value)


def test_wrong_options_are_refused_on_the_driver(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="topic: no such option; did you mean topics") as failure:
        load(spark, tmp_path, topic="x").collect()
    assert "at org.apache.spark" not in str(failure.value)
    with pytest.raises(Exception, match=r"there is no .*nowhere"):
        load(spark, tmp_path / "nowhere").collect()


@pytest.mark.interop
def test_the_files_of_apache_kafka(spark: SparkSession, tmp_path: Path) -> None:
    try:
        broker = Distribution.fetch("3.9").start(tmp_path / "data")
    except Unavailable as why:
        pytest.skip(str(why))
    try:
        fill(broker)
        check(spark, tmp_path / "data")
    finally:
        broker.stop()
    check(spark, tmp_path / "data")

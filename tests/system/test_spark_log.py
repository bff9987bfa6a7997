"""Spark reads the files of a broker through `format("barnabas-log")`, while the broker runs.

What tasks do is tested without Spark in `tests/unit/spark`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tools.apache_kafka import Distribution, Unavailable
from tools.processes import RunningBroker, start_barnabas

from barnabas import KafkaAdminClient, KafkaProducer
from barnabas.admin import NewTopic

pytest.importorskip("pyspark", reason="pip install 'barnabas[spark]'")

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [
    pytest.mark.system,
    pytest.mark.xdist_group("spark"),
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("default"),  # what PySpark warns of is its own
]

COUNT = 3000
CODECS = (b"none", b"gzip", b"snappy", b"lz4", b"zstd")


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
    small = {"segment.bytes": "10000"}
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap) as admin:
        admin.create_topics([NewTopic("numbers", 2, 1, topic_configs=small)])
        admin.create_topics([NewTopic("paid", 1, 1)])
    for codec in CODECS:
        with KafkaProducer(
            bootstrap_servers=broker.bootstrap, compression_type=codec.decode()
        ) as producer:
            for number in range(COUNT // 5):
                value, headers = b"%d" % number, [("codec", codec)]
                producer.send("numbers", value, key=codec, partition=number % 2, headers=headers)
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
    rows = load(spark, data, topics="numbers", includeHeaders="true").collect()
    expected = {
        (codec, b"%d" % number, number % 2) for codec in CODECS for number in range(COUNT // 5)
    }
    assert len(rows) == COUNT
    assert {(bytes(row.key), bytes(row.value), row.partition) for row in rows} == expected
    assert all(row.headers[0].value == row.key for row in rows)
    for partition in (0, 1):
        mine = [row for row in rows if row.partition == partition]
        assert sorted(row.offset for row in mine) == list(range(COUNT // 2))
        assert len({row.segment for row in mine}) > 1
    committed = load(spark, data, topics="pa*", readCommitted="true", includeControl="true")
    found = [(row.controlType, row.value) for row in committed.orderBy("offset").collect()]
    assert [value for kind, value in found if kind is None] == [b"0", b"2"]
    assert [kind for kind, _ in found if kind is not None] == ["COMMIT", "ABORT", "COMMIT"]


def test_the_files_of_a_running_broker(
    spark: SparkSession, running: RunningBroker, data: Path
) -> None:
    check(spark, data)
    reader = spark.read.format("barnabas-log").schema("topic STRING, offset BIGINT")
    paths = [str(data / "numbers-0"), str(data / "paid-0")]
    frame = reader.option("endingOffsets", "3").option("startingOffsets", "1").load(paths)
    assert frame.columns == ["topic", "offset"]
    assert sorted(map(tuple, frame.collect())) == [("numbers", 1), ("numbers", 2), ("paid", 2)]


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
    with pytest.raises(Exception, match="To continue without them, set onCorrupt") as failure:
        load(spark, copy.parent).count()
    assert f"{copy} at 0" in str(failure.value)


def test_wrong_options_are_refused_on_the_driver(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="topic: no such option; did you mean topics") as failure:
        load(spark, tmp_path, topic="x").collect()
    assert "at org.apache.spark" not in str(failure.value)
    with pytest.raises(Exception, match=r"nowhere does not exist"):
        load(spark, tmp_path / "nowhere").collect()


@pytest.mark.interop
def test_the_files_of_apache_kafka(spark: SparkSession, tmp_path: Path) -> None:
    try:
        broker = Distribution.fetch("3.9").start(tmp_path / "data")
    except Unavailable as why:
        pytest.skip(str(why))
    try:
        fill(broker)
        check(spark, tmp_path / "data" / "logs")
    finally:
        broker.stop()
    check(spark, tmp_path / "data" / "logs")

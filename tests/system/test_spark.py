"""Spark reads from and writes to a running broker through `format("barnabas")`.

The decisions behind these queries are tested without Spark in `tests/unit/spark`.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.system.spark_session import DEADLINE_S, TOO_LATE, batch_ends, finished

from barnabas import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from barnabas.admin import NewTopic
from barnabas.cli.main import main
from barnabas.spark import register
from barnabas.spark.stream_metrics import stream_metrics

pytest.importorskip("pyspark", reason="pip install 'barnabas[spark]'")

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [
    pytest.mark.system,
    pytest.mark.xdist_group("spark"),
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("default"),  # what PySpark warns of is its own
]

Options = dict[str, str]

USERS_OWN = """
import pyarrow as pa
import pyarrow.compute as pc

def sizes(batch):
    return pa.RecordBatch.from_pydict(
        {"offset": batch.column("offset"), "size": pc.binary_length(batch.column("value"))}
    )
"""
"""A module of a user, whose function makes the rows."""


@pytest.fixture(scope="module")
def admin(bootstrap: str) -> Iterator[KafkaAdminClient]:
    with KafkaAdminClient(bootstrap_servers=bootstrap) as client:
        yield client


@pytest.fixture
def producer(bootstrap: str) -> Iterator[KafkaProducer]:
    with KafkaProducer(bootstrap_servers=bootstrap) as client:
        yield client


NUMBERS = itertools.count()


@pytest.fixture
def new_topic(admin: KafkaAdminClient) -> Callable[..., str]:
    def make(partitions: int = 1, **configs: str) -> str:
        name = f"spark-{next(NUMBERS)}"
        admin.create_topics([NewTopic(name, partitions, 1, topic_configs=configs)])
        return name

    return make


def fill(producer: KafkaProducer, topic: str, values: Iterator[int] | range, partitions: int = 1):
    for value in values:
        producer.send(topic, b"%d" % value, key=b"k%d" % value, partition=value % partitions)
    producer.flush()


def read(spark: SparkSession, bootstrap: str, **options: str) -> DataFrame:
    reader = spark.read.format("barnabas").option("kafka.bootstrap.servers", bootstrap)
    return reader.options(**options).load()


def numbers(frame: DataFrame) -> list[int]:
    return sorted(int(row.value) for row in frame.select("value").collect())


def stream(spark: SparkSession, bootstrap: str, **options: str) -> DataFrame:
    reader = spark.readStream.format("barnabas").option("kafka.bootstrap.servers", bootstrap)
    return reader.options(startingOffsets="earliest", **options).load()


def run_to_topic(
    frame: DataFrame, bootstrap: str, topic: str, checkpoint: Path, **options: str
) -> Any:
    """Run a stream with all that there is now; return the finished query."""
    writer = (
        frame.writeStream.format("barnabas")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("topic", topic)
        .option("checkpointLocation", str(checkpoint))
        .options(**options)
        .trigger(availableNow=True)
    )
    return finished(writer.start)


def consumed(bootstrap: str, topic: str, partitions: int = 1) -> list[Any]:
    """Return all committed records of a topic."""
    places = [TopicPartition(topic, number) for number in range(partitions)]
    with KafkaConsumer(bootstrap_servers=bootstrap, isolation_level="read_committed") as consumer:
        consumer.assign(places)
        consumer.seek_to_beginning()
        ends = consumer.end_offsets(places)
        found: list[Any] = []
        while any(consumer.position(place) < ends[place] for place in places):
            for records in consumer.poll(timeout_ms=100).values():
                found += records
        return found


def test_a_batch_query_returns_the_rows_of_a_topic(
    spark: SparkSession, bootstrap: str, producer: KafkaProducer, new_topic: Callable[..., str]
) -> None:
    topic = new_topic(3)
    producer.send(topic, b"one", key=b"a", partition=1, timestamp_ms=1_700_000_000_123)
    producer.send(topic, None, key=b"b", partition=1, headers=[("h", b"1"), ("h", None)])
    producer.flush()
    fill(producer, topic, range(300), partitions=3)

    frame = read(spark, bootstrap, subscribe=topic, includeHeaders="true")
    assert frame.columns == [
        *("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")
    ]
    first, second = frame.where("partition = 1 and offset < 2").orderBy("offset").collect()
    assert (bytes(first.key), bytes(first.value)) == (b"a", b"one")
    assert (first.topic, first.partition, first.offset, first.timestampType) == (topic, 1, 0, 0)
    assert first.timestamp.microsecond == 123_000
    assert (first.headers, second.value) == ([], None)
    assert [(each.key, each.value) for each in second.headers] == [("h", b"1"), ("h", None)]
    assert numbers(frame.where("value is not null and value != 'one'")) == list(range(300))


def test_a_batch_query_reads_between_two_places(
    spark: SparkSession, bootstrap: str, producer: KafkaProducer, new_topic: Callable[..., str]
) -> None:
    topic = new_topic(1)
    fill(producer, topic, range(50))
    frame = read(
        spark,
        bootstrap,
        subscribe=topic,
        startingOffsets=f'{{"{topic}": {{"0": 10}}}}',
        endingOffsets=f'{{"{topic}": {{"0": 20}}}}',
        minPartitions="3",
    )
    assert numbers(frame) == list(range(10, 20))
    assert frame.rdd.getNumPartitions() == 3


def test_aborted_records_and_control_records_are_passed_over(
    spark: SparkSession, bootstrap: str, new_topic: Callable[..., str]
) -> None:
    topic = new_topic(1)
    with KafkaProducer(bootstrap_servers=bootstrap, transactional_id=f"{topic}-tx") as writer:
        writer.init_transactions()
        for number, ending in enumerate(["commit", "abort", "commit"]):
            writer.begin_transaction()
            writer.send(topic, b"%d" % number, partition=0)
            writer.flush()  # an abort would give up what was not sent
            getattr(writer, f"{ending}_transaction")()
    options = {"subscribe": topic, "kafka.isolation.level": "read_committed"}
    assert numbers(read(spark, bootstrap, **options)) == [0, 2]
    assert numbers(read(spark, bootstrap, subscribe=topic)) == [0, 1, 2]


def test_a_stream_copies_a_topic_once_over_two_runs(
    spark: SparkSession,
    bootstrap: str,
    producer: KafkaProducer,
    admin: KafkaAdminClient,
    new_topic: Callable[..., str],
    tmp_path: Path,
) -> None:
    source, target, group = new_topic(2), new_topic(2), "readers-of-a-copy"
    fill(producer, source, range(100), partitions=2)
    frame = stream(
        spark, bootstrap, subscribe=source, offsetGroup=group, maxOffsetsPerTrigger="60"
    ).select("key", "value")
    run_to_topic(frame, bootstrap, target, tmp_path / "c", exactlyOnce="true")
    assert batch_ends(tmp_path / "c") == [60, 100]
    offsets = admin.list_consumer_group_offsets(group)
    assert {place.partition: each.offset for place, each in offsets.items()} == {0: 50, 1: 50}

    fill(producer, source, range(100, 110), partitions=2)
    run_to_topic(frame, bootstrap, target, tmp_path / "c", exactlyOnce="true")
    records = consumed(bootstrap, target, 2)
    assert sorted(int(record.value) for record in records) == list(range(110))
    assert all(record.key == b"k" + record.value for record in records)


def test_streams_have_metrics_under_the_names_of_consumers(
    spark: SparkSession,
    bootstrap: str,
    producer: KafkaProducer,
    new_topic: Callable[..., str],
    tmp_path: Path,
) -> None:
    source, target = new_topic(2), new_topic(1)
    fill(producer, source, range(100), partitions=2)
    metrics = stream_metrics(spark)
    frame = stream(spark, bootstrap, subscribe=source, maxOffsetsPerTrigger="60")
    query = run_to_topic(frame.select("value"), bootstrap, target, tmp_path / "c")
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    groups = metrics.metrics()[str(query.id)]
    fetched = groups["consumer-fetch-manager-metrics"]
    assert fetched["records-consumed-total"] == 100
    assert fetched["fetch-total"] >= 2
    assert fetched["records-consumed-rate"] > 0
    assert fetched["records-lag-max"] == 0
    assert groups[f"consumer-fetch-manager-metrics.{source}"]["offsets-consumed-total"] == 100
    assert groups[f"consumer-fetch-manager-metrics.{source}-1"]["records-lag"] == 0


def test_the_lag_of_a_running_query_is_that_of_its_group(
    spark: SparkSession,
    bootstrap: str,
    producer: KafkaProducer,
    new_topic: Callable[..., str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from pyspark.errors import StreamingQueryException

    topic = new_topic(1)
    fill(producer, topic, range(30))
    frame = stream(spark, bootstrap, subscribe=topic, offsetGroup=f"{topic}-lag")
    writer = frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "c"))

    def described() -> list[dict[str, Any]]:
        words = ["groups", "describe", f"{topic}-lag", "--bootstrap", bootstrap, "--json"]
        code, said = main(words), capsys.readouterr()
        return [] if code else [each for group in json.loads(said.out) for each in group["offsets"]]

    query = writer.start()
    try:
        deadline_s = time.monotonic() + DEADLINE_S
        while not (found := described()):
            assert time.monotonic() < deadline_s
            try:
                assert not query.awaitTermination(0.2)  # type: ignore[arg-type]  # fractions are fine
            except StreamingQueryException as failure:
                if TOO_LATE not in str(failure):
                    raise
                query = writer.start()
        [offset] = found
        assert (offset["topic"], offset["partition"]) == (topic, 0)
        assert (offset["committed"], offset["end"], offset["lag"]) == (30, 30, 0)
        assert query.isActive
    finally:
        query.stop()


def test_a_batch_that_is_replayed_is_written_once(
    spark: SparkSession,
    bootstrap: str,
    producer: KafkaProducer,
    new_topic: Callable[..., str],
    tmp_path: Path,
) -> None:
    source, target = new_topic(2), new_topic(1)
    fill(producer, source, range(100), partitions=2)
    frame = stream(spark, bootstrap, subscribe=source).select("value")
    run_to_topic(frame, bootstrap, target, tmp_path / "c", exactlyOnce="true")
    # As if the driver had died after its commit and before it noted that the batch is done.
    [commit] = (tmp_path / "c" / "commits").glob("0")
    commit.unlink()
    (tmp_path / "c" / "commits" / ".0.crc").unlink(missing_ok=True)
    fill(producer, source, range(100, 200), partitions=2)
    run_to_topic(frame, bootstrap, target, tmp_path / "c", exactlyOnce="true")
    values = sorted(int(record.value) for record in consumed(bootstrap, target))
    assert values == list(range(200))


def test_rows_are_written_with_topics_keys_headers_and_times(
    spark: SparkSession, bootstrap: str, new_topic: Callable[..., str]
) -> None:
    one, two = new_topic(2), new_topic(1)
    frame = spark.sql(
        f"""
        SELECT if(id % 2 = 0, '{one}', '{two}') AS topic, concat('k', id) AS key,
               cast(id AS STRING) AS value, if(id % 2 = 0, 1, 0) AS partition,
               timestamp_millis(1700000000000 + id) AS timestamp,
               array(named_struct('key', 'h', 'value', cast('x' AS BINARY))) AS headers
        FROM range(10)
        """
    )
    frame.write.format("barnabas").option("kafka.bootstrap.servers", bootstrap).mode(
        "append"
    ).save()
    records = {int(each.value): each for each in consumed(bootstrap, one, 2)}
    assert sorted(records) == [0, 2, 4, 6, 8]
    assert {each.partition for each in records.values()} == {1}
    assert (records[4].key, records[4].timestamp) == (b"k4", 1_700_000_000_004)
    assert list(records[4].headers) == [("h", b"x")]
    assert sorted(int(each.value) for each in consumed(bootstrap, two)) == [1, 3, 5, 7, 9]


def test_values_are_read_as_typed_columns(
    spark: SparkSession, bootstrap: str, producer: KafkaProducer, new_topic: Callable[..., str]
) -> None:
    topic = new_topic(1)
    # Of a lone null in JSON Arrow dies, which would end the worker and with it the query.
    for value in (b'{"id": 1, "name": "a", "more": 0}', b"{oops", b"null", None, b'{"id": 2}'):
        producer.send(topic, value, key=b"k", partition=0)
    producer.flush()
    frame = read(
        spark, bootstrap, subscribe=topic, valueFormat="json", valueSchema="id INT, name STRING"
    )
    rows = frame.selectExpr("value.*", "valueError").collect()
    assert [(row.id, row.name) for row in rows] == [
        (1, "a"),
        *[(None, None)] * 3,
        (2, None),
    ]
    assert [row.valueError is not None for row in rows] == [False, True, True, False, False]


def test_values_in_avro_and_protobuf_are_read_as_typed_columns(
    spark: SparkSession,
    bootstrap: str,
    producer: KafkaProducer,
    new_topic: Callable[..., str],
    tmp_path: Path,
) -> None:
    pytest.importorskip("fastavro", reason="pip install 'barnabas[schemas]'")
    from tests.unit.spark.schemas import MESSAGE, NOON, ORDER, VALUE, avro, descriptors

    topic = new_topic(1)
    for value in (avro(VALUE), b"no Avro", None):
        producer.send(topic, value, key=b"k", partition=0)
    producer.flush()
    frame = read(
        spark, bootstrap, subscribe=topic, valueFormat="avro", valueSchema=json.dumps(ORDER)
    )
    good, bad, none = frame.selectExpr("value.*", "valueError").collect()
    assert (good.id, good.note, good.price) == (VALUE["id"], None, VALUE["price"])
    assert (good.tags, good.counts, good.state) == (VALUE["tags"], VALUE["counts"], "DONE")
    moment = frame.selectExpr("unix_millis(value.at) AS ms").first()
    assert moment is not None
    assert moment.ms == NOON.timestamp() * 1000
    assert (good.valueError, bad.id, none.id, none.valueError) == (None, None, None, None)
    assert bad.valueError

    topic = new_topic(1)
    for value in (MESSAGE, b"\xff", b""):
        producer.send(topic, value, partition=0)
    producer.flush()
    (tmp_path / "orders.desc").write_bytes(descriptors())
    schema = f"{tmp_path / 'orders.desc'}#shop.Order"
    frame = read(
        spark,
        bootstrap,
        subscribe=topic,
        valueFormat="protobuf",
        valueSchema=schema,
        includeRawValue="true",
    )
    good, bad, empty = frame.selectExpr("value.*", "valueError", "rawValue").collect()
    assert (good.id, bytes(good.raw), good.state, good.best) == (7, b"x", "DONE", None)
    assert [each.sku for each in good["items"]] == ["a", "b"]
    assert (good.valueError, good.rawValue) == (None, None)
    assert (bad.id, bytes(bad.rawValue)) == (None, b"\xff")
    assert bad.valueError
    assert (empty.id, empty.state, empty["items"], empty.valueError) == (0, "NEW", [], None)


def test_a_function_of_the_user_makes_the_rows(
    spark: SparkSession,
    bootstrap: str,
    producer: KafkaProducer,
    new_topic: Callable[..., str],
    worker_code: Path,
) -> None:
    (worker_code / "users_own.py").write_text(USERS_OWN)
    topic = new_topic(1)
    fill(producer, topic, range(5))
    reader = spark.read.format("barnabas").schema("offset BIGINT, size INT")
    frame = reader.options(
        **{"kafka.bootstrap.servers": bootstrap, "subscribe": topic, "transform": "users_own:sizes"}
    ).load()
    assert [(row.offset, row.size) for row in frame.collect()] == [(each, 1) for each in range(5)]


def test_a_session_can_be_told_of_the_source_by_hand(
    spark: SparkSession, bootstrap: str, producer: KafkaProducer, new_topic: Callable[..., str]
) -> None:
    topic = new_topic(1)
    fill(producer, topic, range(3))
    register(spark)
    assert numbers(read(spark, bootstrap, subscribe=topic)) == [0, 1, 2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"subscribe": "no-such-topic"}, "topic no-such-topic does not exist"),
        ({"subscribed": "t"}, "subscribed: no such option; did you mean subscribe?"),
        ({}, "exactly one of subscribe, subscribePattern, assign must be set: none is set"),
        ({"subscribe": "t", "kafka.group.idd": "x"}, "group.idd: no such option"),
    ],
)
def test_bad_options_are_told_in_a_line(
    spark: SparkSession, bootstrap: str, options: Options, message: str
) -> None:
    from pyspark.errors import AnalysisException

    with pytest.raises(AnalysisException) as failure:
        read(spark, bootstrap, **options).count()
    assert message in str(failure.value)


def test_a_topic_that_was_created_again_ends_the_stream(
    spark: SparkSession,
    bootstrap: str,
    producer: KafkaProducer,
    admin: KafkaAdminClient,
    new_topic: Callable[..., str],
    tmp_path: Path,
) -> None:
    from pyspark.errors import StreamingQueryException

    source, target = new_topic(1), new_topic(1)
    fill(producer, source, range(10))
    frame = stream(spark, bootstrap, subscribe=source).select("value")
    run_to_topic(frame, bootstrap, target, tmp_path / "c")
    admin.delete_topics([source])
    admin.create_topics([NewTopic(source, 1, 1)])
    fill(producer, source, range(20))
    with pytest.raises(StreamingQueryException) as failure:
        run_to_topic(frame, bootstrap, target, tmp_path / "c")
    assert f"offsets from 10 on of {source}-0 (the topic was recreated" in str(failure.value)

    other = stream(spark, bootstrap, subscribe=target).select("value")
    with pytest.raises(StreamingQueryException) as failure:
        run_to_topic(other, bootstrap, source, tmp_path / "c")
    assert f"the checkpoint is for topic {source}" in str(failure.value)

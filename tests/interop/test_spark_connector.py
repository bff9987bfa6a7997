"""The same queries through Spark's own Kafka connector and through ours: equal rows.

Against our broker, so that it is known to serve Spark's connector, and against Apache Kafka, so
that what is compared is known to be right. Rows are also compared with what was sent. One
difference is meant: a record without headers has an empty array of ours, and null of Spark's.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.system.spark_session import finished, jvm, local_session  # noqa: F401
from tools import spark_connector
from tools.apache_kafka import Distribution, Unavailable
from tools.processes import start_barnabas

from barnabas import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from barnabas.admin import NewTopic

pytest.importorskip("pyspark", reason="pip install 'barnabas[spark]'")

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [
    pytest.mark.interop,
    pytest.mark.timeout(900),  # the first test starts a JVM, Apache Kafka and a session
    pytest.mark.filterwarnings("default"),  # what PySpark warns of is its own
]

Options = dict[str, str]
Row = tuple[Any, ...]

OURS, SPARKS = "barnabas", "kafka"
BEGIN_MS = 1_700_000_000_000
STEP_MS = 1000
HEADERS = [("h", b"1"), ("h", None), ("other", b"")]
NUMBERS = itertools.count()
DEADLINE_S = 300.0


@pytest.fixture(scope="module")
def spark(
    jvm: None,  # noqa: F811
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[SparkSession]:
    try:
        theirs = spark_connector.fetch()
    except Unavailable as why:
        pytest.skip(str(why))
    warehouse = tmp_path_factory.mktemp("warehouse")
    with local_session(warehouse, jars=theirs.setting) as session:
        yield session


class Topics:
    """A broker with topics of every kind, and what was sent to them."""

    def __init__(self, servers: str) -> None:
        self.servers = servers
        self.sent: dict[str, list[Row]] = {}
        kept = {"retention.ms": "-1"}  # the records are from long ago
        with KafkaAdminClient(bootstrap_servers=servers) as admin:
            admin.create_topics(
                [
                    NewTopic("plain", 3, 1, topic_configs=kept),
                    NewTopic("plainer", 1, 1, topic_configs=kept),
                    NewTopic("ledger", 2, 1),
                    NewTopic("cut", 1, 1, topic_configs=kept),
                    NewTopic(
                        "compacted",
                        1,
                        1,
                        topic_configs={
                            "cleanup.policy": "compact",
                            "segment.bytes": "1000",
                            "min.cleanable.dirty.ratio": "0.01",
                        },
                    ),
                ]
            )
        self._send_plain("plain", {0: 100, 1: 60})  # and nothing to the third
        self._send_plain("plainer", {0: 20})
        self._send_plain("cut", {0: 50})
        with KafkaAdminClient(bootstrap_servers=servers) as admin:
            admin.delete_records({TopicPartition("cut", 0): 30})
        self._send_ledger()
        self._send_compacted()
        self.open = KafkaProducer(
            bootstrap_servers=servers, transactional_id="stays-open", transaction_timeout_ms=900_000
        )
        self.open.init_transactions()
        self.open.begin_transaction()
        self.open.send("ledger", b"open", partition=0)
        self.open.flush()

    def close(self) -> None:
        self.open.abort_transaction()
        self.open.close()

    def _send_plain(self, topic: str, counts: dict[int, int]) -> None:
        """Send records of all shapes, in batches of every codec."""
        rows = self.sent.setdefault(topic, [])
        codecs: list[str | None] = [None, "gzip", "snappy", "lz4", "zstd"]
        for turn, codec in enumerate(codecs):
            with KafkaProducer(bootstrap_servers=self.servers, compression_type=codec) as producer:
                for partition, count in counts.items():
                    share = count // len(codecs)
                    for offset in range(turn * share, (turn + 1) * share):
                        key = None if offset % 7 == 3 else b"k%d" % (offset % 10)
                        value: bytes | None = b"%d" % offset * (offset % 5)
                        if offset % 11 == 5 and key is not None:
                            value = None
                        headers = HEADERS[: offset % 4]
                        time_ms = BEGIN_MS + STEP_MS * offset
                        producer.send(
                            topic,
                            value,
                            key=key,
                            headers=headers,
                            partition=partition,
                            timestamp_ms=time_ms,
                        )
                        rows.append((topic, partition, offset, key, value, time_ms, headers))

    def _send_ledger(self) -> None:
        """Send transactions, of which every third is aborted."""
        rows = self.sent.setdefault("ledger", [])
        with KafkaProducer(bootstrap_servers=self.servers, transactional_id="ledger") as producer:
            producer.init_transactions()
            for number in range(12):
                producer.begin_transaction()
                for partition in (0, 1):
                    for part in range(3):
                        value = b"%d.%d" % (number, part)
                        producer.send("ledger", value, partition=partition)
                        if number % 3:
                            rows.append(("ledger", partition, 4 * number + part, value))
                producer.flush()  # an abort would give up what was not sent
                if number % 3:
                    producer.commit_transaction()
                else:
                    producer.abort_transaction()

    def _send_compacted(self) -> None:
        """Send the same keys again and again, and wait until many records are gone."""
        with KafkaProducer(bootstrap_servers=self.servers) as producer:
            for number in range(300):
                producer.send("compacted", b"v%d" % number, key=b"k%d" % (number % 9), partition=0)
                if number % 10 == 9:
                    producer.flush()
        deadline_s = time.monotonic() + DEADLINE_S
        while len(found := consumed(self.servers, "compacted", [0])) > 100:
            assert time.monotonic() < deadline_s, f"{len(found)} records are still there"
            time.sleep(0.2)
        # The last segment is never compacted; a record that does not fit begins another.
        self.sent["compacted"] = [(each.offset, each.key, each.value) for each in found]


def consumed(servers: str, topic: str, partitions: list[int]) -> list[Any]:
    """Return the committed records of partitions."""
    places = [TopicPartition(topic, number) for number in partitions]
    found: list[Any] = []
    with KafkaConsumer(bootstrap_servers=servers, isolation_level="read_committed") as consumer:
        consumer.assign(places)
        consumer.seek_to_beginning()
        ends = consumer.end_offsets(places)
        while any(consumer.position(place) < ends[place] for place in places):
            for records in consumer.poll(timeout_ms=100).values():
                found += records
    return found


@pytest.fixture(scope="module", params=["barnabas", "apache"])
def topics(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Topics]:
    options = {"log.cleaner.backoff.ms": "100"}
    data_dir = tmp_path_factory.mktemp(request.param) / "data"
    if request.param == "apache":
        try:
            broker = Distribution.fetch("3.9").start(data_dir, options=options, heap="512m")
        except Unavailable as why:
            pytest.skip(str(why))
    else:
        broker = start_barnabas(data_dir, options=options)
    try:
        topics = Topics(broker.bootstrap)
        yield topics
        topics.close()
    finally:
        broker.stop()


def rows(frame: DataFrame) -> list[Row]:
    """Return the rows of a query in the order of the log, headers as pairs."""
    wanted = [*("topic", "partition", "offset", "key", "value", "timestamp", "timestampType")]
    assert [name for name in frame.columns if name != "headers"] == [
        *("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
    ]
    if "headers" in frame.columns:
        wanted.append("headers")
    found = []
    for row in frame.select(*wanted).collect():
        cells = [bytes(cell) if isinstance(cell, (bytes, bytearray)) else cell for cell in row]
        if len(cells) == 8:
            cells[7] = [
                (pair.key, None if pair.value is None else bytes(pair.value))
                for pair in cells[7] or ()
            ]
        found.append(tuple(cells))
    return sorted(found, key=lambda row: row[:3])


def read(spark: SparkSession, topics: Topics, source: str, options: Options) -> list[Row]:
    """Run a batch query."""
    reader = spark.read.format(source).option("kafka.bootstrap.servers", topics.servers)
    return rows(reader.options(**options).load())


def stream(
    spark: SparkSession, topics: Topics, source: str, options: Options, checkpoint: Path
) -> tuple[list[Row], list[int]]:
    """Run a stream to the end of what there is; return rows, and rows of each batch."""
    reader = spark.readStream.format(source).option("kafka.bootstrap.servers", topics.servers)
    frame = reader.options(**options).load()
    name = ""

    def start() -> Any:
        nonlocal name
        name = f"rows_{next(NUMBERS)}"
        writer = frame.writeStream.format("memory").queryName(name)
        return writer.option("checkpointLocation", str(checkpoint / name))

    query = run(start)
    sizes = [each["numInputRows"] for each in query.recentProgress if each["numInputRows"]]
    return rows(spark.table(name)), sizes


def run(new_writer: Callable[[], Any]) -> Any:
    """Run a stream to its end and return it."""
    return finished(lambda: new_writer().trigger(availableNow=True).start())


def by_offset(topic: str, numbers: dict[int, int]) -> str:
    return json.dumps({topic: {str(partition): number for partition, number in numbers.items()}})


def at(step: int) -> int:
    return BEGIN_MS + STEP_MS * step


COMMITTED = {"kafka.isolation.level": "read_committed"}
EARLIEST = {"startingOffsets": "earliest"}

BATCHES: dict[str, tuple[Options, int]] = {
    "subscribe": ({"subscribe": "plain"}, 160),
    "two topics": ({"subscribe": "plain,plainer"}, 180),
    "pattern": ({"subscribePattern": "plain.*"}, 180),
    "a pattern for a part of the name": ({"subscribePattern": "ain"}, 180),
    "a pattern for the whole name": ({"subscribePattern": "^plain$"}, 160),
    "assign": ({"assign": '{"plain": [1, 2], "plainer": [0]}'}, 80),
    "headers": ({"subscribe": "plain", "includeHeaders": "true"}, 160),
    "offsets": (
        {
            "subscribe": "plain",
            "startingOffsets": by_offset("plain", {0: 10, 1: -2, 2: 0}),
            "endingOffsets": by_offset("plain", {0: 50, 1: -1, 2: 0}),
        },
        100,
    ),
    "times by partition": (
        {
            "assign": '{"plain": [0, 1]}',
            "startingOffsetsByTimestamp": by_offset("plain", {0: at(20) - 1, 1: at(10)}),
            "endingOffsetsByTimestamp": by_offset("plain", {0: at(90), 1: at(1000)}),
        },
        120,
    ),
    "times": (
        {
            "assign": '{"plain": [0, 1]}',
            "startingTimestamp": str(at(30)),
            "endingTimestamp": str(at(40)),
        },
        20,
    ),
    "no record after a time": (
        {
            "subscribe": "plain",
            "startingTimestamp": str(at(80)),
            "startingOffsetsByTimestampStrategy": "latest",
        },
        20,
    ),
    "more tasks than partitions": ({"subscribe": "plain", "minPartitions": "7"}, 160),
    "small tasks": ({"subscribe": "plain", "maxRecordsPerPartition": "9"}, 160),
    "a group": ({"subscribe": "plain", "kafka.group.id": "readers"}, 160),
    "a group's prefix": ({"subscribe": "plain", "groupIdPrefix": "readers"}, 160),
    "committed": ({"subscribe": "ledger", **COMMITTED}, 48),
    "committed, cut inside transactions": (
        {
            "subscribe": "ledger",
            "startingOffsets": by_offset("ledger", {0: 5, 1: 3}),
            "endingOffsets": by_offset("ledger", {0: 15, 1: 12}),
            **COMMITTED,
        },
        11,
    ),
    "uncommitted": ({"subscribe": "ledger"}, 73),
    "a log that begins later": ({"subscribe": "cut"}, 20),
    "offsets that are gone": (
        {
            "subscribe": "cut",
            "startingOffsets": by_offset("cut", {0: 10}),
            "failOnDataLoss": "false",
        },
        20,
    ),
}


@pytest.mark.parametrize("name", BATCHES)
def test_batch_queries_give_equal_rows(spark: SparkSession, topics: Topics, name: str) -> None:
    options, count = BATCHES[name]
    if "kafka.group.id" in options:
        # Spark's connector keeps consumers by group: one group is for one cluster.
        port = topics.servers.rpartition(":")[2]
        options = {**options, "kafka.group.id": f"{options['kafka.group.id']}-{port}"}
    ours = read(spark, topics, OURS, options)
    assert len(ours) == count
    assert ours == read(spark, topics, SPARKS, options)


STREAMS: dict[str, tuple[Options, int]] = {
    "subscribe": ({"subscribe": "plain,plainer", **EARLIEST}, 180),
    "pattern": ({"subscribePattern": "plain.*", **EARLIEST}, 180),
    "assign, headers": (
        {"assign": '{"plain": [0, 2]}', "includeHeaders": "true", **EARLIEST},
        100,
    ),
    "from the end": ({"subscribe": "plain"}, 0),
    "small batches": ({"subscribe": "plain", "maxOffsetsPerTrigger": "50", **EARLIEST}, 160),
    "small batches of committed records": (
        {"subscribe": "ledger", "maxOffsetsPerTrigger": "20", **COMMITTED, **EARLIEST},
        48,
    ),
    "more tasks than partitions": ({"subscribe": "plain", "minPartitions": "5", **EARLIEST}, 160),
    "small tasks": ({"subscribe": "plain", "maxRecordsPerPartition": "20", **EARLIEST}, 160),
    "nothing to wait for": (
        {
            "subscribe": "plain",
            "minOffsetsPerTrigger": "1000",
            "maxTriggerDelay": "1h",
            **EARLIEST,
        },
        160,
    ),
    "offsets": (
        {"subscribe": "plain", "startingOffsets": by_offset("plain", {0: 95, 1: -2, 2: 0})},
        65,
    ),
    "times by partition": (
        {
            "assign": '{"plain": [0, 1]}',
            "startingOffsetsByTimestamp": by_offset("plain", {0: at(20), 1: at(59)}),
        },
        81,
    ),
    "a time": (
        {
            "subscribe": "plain",
            "startingTimestamp": str(at(50)),
            "startingOffsetsByTimestampStrategy": "latest",
        },
        60,
    ),
    "a log that begins later": ({"subscribe": "cut", **EARLIEST}, 20),
}


@pytest.mark.parametrize("name", STREAMS)
def test_streams_give_equal_rows(
    spark: SparkSession, topics: Topics, name: str, tmp_path: Path
) -> None:
    options, count = STREAMS[name]
    ours, sizes = stream(spark, topics, OURS, options, tmp_path)
    assert len(ours) == sum(sizes) == count
    limit = options.get("maxOffsetsPerTrigger")
    if limit is not None:
        assert len(sizes) > 2
        assert max(sizes) <= int(limit)
    assert ours == stream(spark, topics, SPARKS, options, tmp_path)[0]


def test_rows_are_what_was_sent(spark: SparkSession, topics: Topics) -> None:
    options = {"subscribe": "plain", "includeHeaders": "true"}
    assert read(spark, topics, OURS, options) == [
        (*row[:5], datetime.fromtimestamp(row[5] / 1000), 0, row[6])
        for row in sorted(topics.sent["plain"], key=lambda row: row[:3])
    ]
    committed = read(spark, topics, OURS, {"subscribe": "ledger", **COMMITTED})
    assert [(*row[:3], row[4]) for row in committed] == sorted(topics.sent["ledger"])


def test_a_compacted_log_has_gaps(spark: SparkSession, topics: Topics, tmp_path: Path) -> None:
    everything: Options = {"subscribe": "compacted"}
    kept = {row[0] for row in topics.sent["compacted"]}
    # Begin and end at offsets that are gone.
    first = min(set(range(300)) - kept)
    last = max(set(range(290)) - kept)
    part = {
        "startingOffsets": by_offset("compacted", {0: first}),
        "endingOffsets": by_offset("compacted", {0: last}),
        **everything,
    }
    for options in (everything, part):
        ours = read(spark, topics, OURS, options)
        assert ours == read(spark, topics, SPARKS, options)
        # The cleaner may have gone on meanwhile; the newest value of each key stays.
        assert {(row[2], row[3], row[4]) for row in ours} <= set(topics.sent["compacted"])
    small = {"maxOffsetsPerTrigger": "33", **everything, **EARLIEST}
    ours, _ = stream(spark, topics, OURS, small, tmp_path)
    assert ours == stream(spark, topics, SPARKS, small, tmp_path)[0]
    assert {row[4] for row in ours} >= {b"v%d" % number for number in range(291, 300)}


@pytest.fixture
def new_topic(topics: Topics) -> Callable[[int], str]:
    def make(partitions: int) -> str:
        name = f"written-{next(NUMBERS)}"
        with KafkaAdminClient(bootstrap_servers=topics.servers) as admin:
            admin.create_topics([NewTopic(name, partitions, 1)])
        return name

    return make


@pytest.mark.parametrize("streaming", [False, True])
def test_sinks_write_equal_records(
    spark: SparkSession,
    topics: Topics,
    new_topic: Callable[[int], str],
    tmp_path: Path,
    streaming: bool,
) -> None:
    """Keys choose the same partitions: ours are Java's murmur2."""
    written = []
    for sink in (OURS, SPARKS):
        topic = new_topic(4)
        reader = spark.readStream if streaming else spark.read
        frame = (
            reader.format(SPARKS)
            .option("kafka.bootstrap.servers", topics.servers)
            .options(subscribe="plain", startingOffsets="earliest", includeHeaders="true")
            .load()
            .where("key is not null")
            .select("key", "value", "headers")
        )
        if streaming:
            writer = (
                frame.writeStream.format(sink)
                .option("kafka.bootstrap.servers", topics.servers)
                .option("topic", topic)
                .option("checkpointLocation", str(tmp_path / sink))
            )
            run(lambda writer=writer: writer)  # type: ignore[misc]
        else:
            frame.write.format(sink).option("kafka.bootstrap.servers", topics.servers).option(
                "topic", topic
            ).mode("append").save()
        records = consumed(topics.servers, topic, [0, 1, 2, 3])
        written.append(
            sorted(
                (
                    each.partition,
                    each.key,
                    each.value or b"",
                    list(each.headers),
                    each.value is None,
                )
                for each in records
            )
        )
    ours, sparks = written
    assert len(ours) == sum(row[3] is not None for row in topics.sent["plain"])
    assert ours == sparks


def test_offsets_of_a_stream_are_those_of_a_group(
    spark: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    options = {"subscribe": "plain", "offsetGroup": "followers", **EARLIEST}
    stream(spark, topics, OURS, options, tmp_path)
    with KafkaAdminClient(bootstrap_servers=topics.servers) as admin:
        found = admin.list_consumer_group_offsets("followers")
    assert {place.partition: each.offset for place, each in found.items()} == {0: 100, 1: 60, 2: 0}


def test_values_are_typed_columns_of_any_broker(
    spark: SparkSession, topics: Topics, new_topic: Callable[[int], str]
) -> None:
    topic = new_topic(1)
    with KafkaProducer(bootstrap_servers=topics.servers) as producer:
        for number in range(20):
            producer.send(topic, b'{"id": %d}' % number if number % 5 else b"{", partition=0)
    reader = spark.read.format(OURS).option("kafka.bootstrap.servers", topics.servers)
    typed = reader.options(subscribe=topic, valueFormat="json", valueSchema="id INT").load()
    ours = typed.selectExpr("offset", "value.id").where("id is not null")
    theirs = (
        spark.read.format(SPARKS)
        .option("kafka.bootstrap.servers", topics.servers)
        .option("subscribe", topic)
        .load()
        .selectExpr("offset", "from_json(cast(value AS STRING), 'id INT').id AS id")
        .where("id is not null")
    )
    assert len(ours.collect()) == 16
    assert sorted(ours.collect()) == sorted(theirs.collect())
    assert typed.where("valueError is not null").count() == 4

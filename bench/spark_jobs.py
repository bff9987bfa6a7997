"""The jobs that both connectors do, as a user of Spark would write them.

Each is a function of a `Workshop` and a `Connector` that does the job and returns what shows that
all rows were there: the number of rows, or a sum that the filling knows.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench import spark_functions
from bench.pair import create_topic
from tools.processes import RunningBroker

from barnabas import KafkaAdminClient, KafkaConsumer, TopicPartition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PARTITIONS = 4


@dataclass(frozen=True)
class Connector:
    """A connector by Spark's name; ours can run a Python function where it reads."""

    name: str
    format: str
    transforms: bool


OURS = Connector("barnabas", "barnabas", transforms=True)
SPARKS = Connector("Spark's connector", "kafka", transforms=False)


@dataclass
class Workshop:
    """A session, a filled topic, and a place for what jobs write."""

    spark: SparkSession
    broker: RunningBroker
    topic: str
    scratch: Path
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def read(self, connector: Connector, **options: str) -> Any:
        """Return a reader of the topic for a batch query."""
        return self._reader(self.spark.read, connector, options)

    def stream(self, connector: Connector, **options: str) -> Any:
        """Return a reader of the topic for a stream."""
        return self._reader(self.spark.readStream, connector, options)

    def _reader(self, reader: Any, connector: Connector, options: dict[str, str]) -> Any:
        given = {"subscribe": self.topic, "startingOffsets": "earliest", **options}
        reader = reader.format(connector.format)
        return reader.option("kafka.bootstrap.servers", self.broker.bootstrap).options(**given)

    def run(self, writer: Any) -> None:
        """Run a stream with all that there is."""
        number = next(self.numbers)
        query = (
            writer.option("checkpointLocation", str(self.scratch / f"checkpoint-{number}"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    def collect(self, frame: DataFrame) -> list[Any]:
        """Run a stream that aggregates to its end, and return the rows of its last batch."""
        name = f"result_{next(self.numbers)}"
        self.run(frame.writeStream.format("memory").queryName(name).outputMode("complete"))
        return self.spark.table(name).collect()

    def new_directory(self) -> Path:
        return self.scratch / f"rows-{next(self.numbers)}"

    def new_topic(self) -> str:
        topic = f"copy-{next(self.numbers)}"
        create_topic(self.broker, topic, PARTITIONS)
        return topic

    def arrived(self, topic: str) -> int:
        """Return how many records a topic has, and delete it."""
        places = [TopicPartition(topic, number) for number in range(PARTITIONS)]
        with KafkaConsumer(bootstrap_servers=self.broker.bootstrap) as consumer:
            count = sum(consumer.end_offsets(places).values())
        with KafkaAdminClient(bootstrap_servers=self.broker.bootstrap) as admin:
            admin.delete_topics([topic])
        return count

    def written(self, directory: Path) -> int:
        """Return how many rows there are in a directory of Parquet files, and remove it."""
        import pyarrow.parquet as pq

        count: int = sum(pq.read_metadata(file).num_rows for file in directory.glob("**/*.parquet"))
        shutil.rmtree(directory)
        return count


Job = Callable[[Workshop, Connector], Callable[[], int]]
"""Does the job; what it returns looks whether all is there, which is not measured."""


def _known(count: int) -> Callable[[], int]:
    return lambda: count


def count(shop: Workshop, connector: Connector) -> Callable[[], int]:
    return _known(shop.read(connector).load().count())


def count_offsets(shop: Workshop, connector: Connector) -> Callable[[], int]:
    """Count with no more columns than needed, where a connector lets the user say so."""
    reader = shop.read(connector)
    if connector.transforms:
        reader = reader.schema("offset BIGINT")
    return _known(reader.load().select("offset").count())


def group(shop: Workshop, connector: Connector) -> Callable[[], int]:
    rows = shop.read(connector).load().groupBy("key").count().collect()
    return _known(sum(row["count"] for row in rows))


def parquet(shop: Workshop, connector: Connector) -> Callable[[], int]:
    directory = shop.new_directory()
    shop.read(connector).load().write.parquet(str(directory))
    return lambda: shop.written(directory)


def copy(shop: Workshop, connector: Connector) -> Callable[[], int]:
    topic = shop.new_topic()
    rows = shop.read(connector).load().select("key", "value")
    _to_topic(shop, connector, rows.write, topic).mode("append").save()
    return lambda: shop.arrived(topic)


def lengths(shop: Workshop, connector: Connector) -> Callable[[], int]:
    frame = _lengths(shop.read(connector), connector)
    return _known(frame.agg({"size": "sum"}).collect()[0][0])


def amounts(shop: Workshop, connector: Connector) -> Callable[[], int]:
    rows = _amounts(shop.read(connector), connector).groupBy("state").sum("amount").collect()
    return _known(sum(row[1] for row in rows))


def read_amounts(shop: Workshop, connector: Connector) -> Callable[[], int]:
    rows = _fields(shop.read(connector), connector).groupBy("state").sum("amount").collect()
    return _known(sum(row[1] for row in rows))


def stream_count(shop: Workshop, connector: Connector) -> Callable[[], int]:
    rows = shop.collect(shop.stream(connector).load().groupBy().count())
    return _known(rows[0]["count"])


def stream_group(shop: Workshop, connector: Connector) -> Callable[[], int]:
    rows = shop.collect(shop.stream(connector).load().groupBy("key").count())
    return _known(sum(row["count"] for row in rows))


def stream_parquet(shop: Workshop, connector: Connector) -> Callable[[], int]:
    directory = shop.new_directory()
    frame = shop.stream(connector).load()
    shop.run(frame.writeStream.format("parquet").option("path", str(directory)))
    return lambda: shop.written(directory)


def stream_copy(shop: Workshop, connector: Connector) -> Callable[[], int]:
    topic = shop.new_topic()
    rows = shop.stream(connector).load().select("key", "value")
    shop.run(_to_topic(shop, connector, rows.writeStream, topic))
    return lambda: shop.arrived(topic)


def stream_lengths(shop: Workshop, connector: Connector) -> Callable[[], int]:
    frame = _lengths(shop.stream(connector), connector)
    return _known(shop.collect(frame.groupBy().sum("size"))[0][0])


def stream_read_amounts(shop: Workshop, connector: Connector) -> Callable[[], int]:
    frame = _fields(shop.stream(connector), connector)
    return _known(shop.collect(frame.groupBy().sum("amount"))[0][0])


def _lengths(reader: Any, connector: Connector) -> DataFrame:
    schema = spark_functions.LENGTHS
    if connector.transforms:
        path = f"{spark_functions.__name__}:lengths"
        found: DataFrame = reader.schema(schema).option("transform", path).load()
        return found
    rows: DataFrame = reader.load().select("key", "value")
    return rows.mapInArrow(spark_functions.each_lengths, schema)  # type: ignore[arg-type]


def _amounts(reader: Any, connector: Connector) -> DataFrame:
    schema = spark_functions.AMOUNTS
    if connector.transforms:
        path = f"{spark_functions.__name__}:amounts"
        found: DataFrame = reader.schema(schema).option("transform", path).load()
        return found
    rows: DataFrame = reader.load().select("value")
    return rows.mapInArrow(spark_functions.each_amounts, schema)  # type: ignore[arg-type]


def _fields(reader: Any, connector: Connector) -> DataFrame:
    """Have JSON read before Python sees it: by our source, or by Spark's `from_json`."""
    from pyspark.sql.functions import col, from_json

    schema = spark_functions.AMOUNTS
    if connector.transforms:
        path = f"{spark_functions.__name__}:fields"
        reader = reader.option("valueFormat", "json").option("valueSchema", schema)
        found: DataFrame = reader.schema(schema).option("transform", path).load()
        return found
    value = from_json(col("value").cast("string"), schema).alias("value")
    rows: DataFrame = reader.load().select(value)
    return rows.mapInArrow(spark_functions.each_fields, schema)  # type: ignore[arg-type]


def _to_topic(shop: Workshop, connector: Connector, writer: Any, topic: str) -> Any:
    servers = shop.broker.bootstrap
    writer = writer.format(connector.format).option("kafka.bootstrap.servers", servers)
    return writer.option("topic", topic)


ROWS, SIZES, AMOUNTS = "rows", "sizes", "amounts"
"""What a job's answer is to be: a total that the filling knows."""

JOBS: dict[str, tuple[Job, str]] = {
    "batch: count": (count, ROWS),
    "batch: count, only offset by schema()": (count_offsets, ROWS),
    "batch: group by key": (group, ROWS),
    "batch: to Parquet": (parquet, ROWS),
    "batch: topic to topic": (copy, ROWS),
    "batch: Python, Arrow functions": (lengths, SIZES),
    "batch: Python, json.loads": (amounts, AMOUNTS),
    "batch: Python, JSON read before": (read_amounts, AMOUNTS),
    "stream: count": (stream_count, ROWS),
    "stream: group by key": (stream_group, ROWS),
    "stream: to Parquet": (stream_parquet, ROWS),
    "stream: topic to topic": (stream_copy, ROWS),
    "stream: Python, Arrow functions": (stream_lengths, SIZES),
    "stream: Python, JSON read before": (stream_read_amounts, AMOUNTS),
}

"""A Spark job, tested on this machine: it counts orders by customer, from topic to topic."""

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import col

from barnabas import KafkaConsumer, KafkaProducer


def count_orders(spark, bootstrap):
    """The job under test."""
    server = {"kafka.bootstrap.servers": bootstrap}
    orders = spark.read.format("barnabas").options(**server, subscribe="orders").load()
    counts = orders.groupBy("key").count()
    values = counts.select("key", col("count").cast("string").cast("binary").alias("value"))
    values.write.format("barnabas").options(**server, topic="counts").mode("append").save()


@pytest.fixture(scope="session")
def spark():
    builder = SparkSession.builder.master("local[1]").config("spark.sql.shuffle.partitions", 1)
    session = builder.config("spark.ui.enabled", "false").getOrCreate()
    yield session
    session.stop()


def test_orders_are_counted_by_customer(spark, barnabas_bootstrap):
    with KafkaProducer(bootstrap_servers=barnabas_bootstrap) as producer:
        for customer in (b"anna", b"ben", b"anna"):
            producer.send("orders", b"an order", key=customer).get(timeout=30)
    count_orders(spark, barnabas_bootstrap)
    with KafkaConsumer(
        "counts", bootstrap_servers=barnabas_bootstrap, auto_offset_reset="earliest"
    ) as consumer:
        counts = {record.key: record.value for record in (next(consumer), next(consumer))}
    assert counts == {b"anna": b"2", b"ben": b"1"}

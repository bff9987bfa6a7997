"""Kafka topics as a source and a sink of Spark, through PySpark's Python data sources: no JAR.

    spark.read.format("barnabas").option("kafka.bootstrap.servers", "…").option("subscribe", "t")

Options, their meanings and the row schema are those of Spark's own Kafka connector. What decides
(`options`, `places`, `positions`, `progress`, `admission`, `plan`, `transactions`) are plain
objects that know neither Spark nor a broker; `cluster` asks brokers for the driver, `reading` and
`sending` move records in tasks, `datasource` is what Spark sees. Parts to come (pipelines,
mirroring, SQL) build on `format("barnabas")` and on `plan` + `reading`, which need no Spark.

`format("barnabas-log")` reads the files of a broker without one; all of it is in `log_*`.

Spark finds the sources by itself through the modules `pyspark_barnabas` and `pyspark_barnabas_log`
(it looks for one source in a module); where it cannot (a package that reaches executors by
`addPyFile`), `register` does the same by hand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Make `format("barnabas")` and `format("barnabas-log")` known to a session."""
    from barnabas.spark.datasource import BarnabasSource
    from barnabas.spark.logfiles.source import BarnabasLogSource

    spark.dataSource.register(BarnabasSource)
    spark.dataSource.register(BarnabasLogSource)

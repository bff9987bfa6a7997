"""Kafka topics as a source and a sink of Spark, through PySpark's Python data sources: no JAR.

    spark.read.format("barnabas").option("kafka.bootstrap.servers", "…").option("subscribe", "t")

Options, their meanings and the row schema are those of Spark's own Kafka connector.

    datasource.py       what Spark sees: a source of readers and writers
    readers.py          batch and stream readers, and the tasks of both
    options.py          options of source and sink
    topic_selection.py  subscribe, subscribePattern, assign
    offset_limits.py    startingOffsets, endingOffsets and the like
    micro_batch.py      the end of the next micro-batch    rate_limit.py  its size
    source_offset.py    the offset in Spark's checkpoint
    offset_ranges.py    offset ranges, divided among tasks
    cluster.py          topics and offsets, asked for by the driver
    range_reader.py     reads offset ranges in a task      worker.py  what outlives a task
    source_rows.py      records as rows                    values/    values as typed columns
    writers.py          batch and stream writers           sink_rows.py  rows as records
    sink_task.py        sends rows, exactly once in a transaction
    session.py          Spark for a command                mirroring.py  tasks of a mirror
    stream_metrics.py   figures of streams, by Spark's reports

The planning parts (all from options.py to offset_ranges.py) know neither Spark nor a broker. SQL
and pipelines build on `format("barnabas")`, and on offset_ranges.py and range_reader.py, which need
no Spark.

`format("barnabas-log")` reads the files of a broker without one; it is in logfiles/.

Spark finds the sources itself through the modules `pyspark_barnabas` and `pyspark_barnabas_log`
(it looks for one source in a module); if it cannot (a package that reaches executors by
`addPyFile`), call `register` instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Register `format("barnabas")` and `format("barnabas-log")` with a session."""
    from barnabas.spark.datasource import BarnabasSource
    from barnabas.spark.logfiles.source import BarnabasLogSource

    spark.dataSource.register(BarnabasSource)
    spark.dataSource.register(BarnabasLogSource)

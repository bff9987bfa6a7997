"""A batch query: the offsets from one place to another, resolved once when it is planned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition

from barnabas.model.errors import InvalidValueError
from barnabas.model.ids import TopicPartition
from barnabas.spark.cluster import Cluster
from barnabas.spark.options import SourceOptions
from barnabas.spark.plan import Range, plan
from barnabas.spark.progress import Progress, View
from barnabas.spark.tasks import RangesPartition, check_query, read_task

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType


class BatchReader(DataSourceReader):
    """Reads topics once."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        check_query(options, schema)
        self._options = options
        self._schema = schema

    def partitions(self) -> list[InputPartition]:
        """Return the tasks of the query."""
        options, cluster = self._options, Cluster(self._options.client)
        try:
            view = cluster.view(options.choice)
            options.choice.check(view.topics)
            starts = cluster.resolve(options.starting, view, options.choice)
            ends = cluster.resolve(options.ending, view, options.choice)
        finally:
            cluster.close()
        positions = Progress(options).begin(view, starts)
        ranges = _ranges(positions.offsets, self._clipped(ends, view))
        tasks = plan(ranges, positions.tasks, options.records_per_partition_max)
        return [RangesPartition(task) for task in tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a task."""
        return read_task(self._options, self._schema, partition)

    def _clipped(self, ends: Mapping[TopicPartition, int], view: View) -> dict[TopicPartition, int]:
        beyond = [place for place, end in ends.items() if end > view.latest[place]]
        if beyond and self._options.fails_on_loss:
            place = beyond[0]
            raise InvalidValueError(
                f"{self._options.ending.option}: {ends[place]} for {place}: must be at most "
                f"{view.latest[place]}, where its log ends; failOnDataLoss=false reads what "
                "there is"
            )
        return {place: min(end, view.latest[place]) for place, end in ends.items()}


def _ranges(
    starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
) -> list[Range]:
    return [
        Range(place.topic, place.partition, start, max(start, ends[place]))
        for place, start in starts.items()
    ]

"""The readers that Spark uses: a batch query and a stream, and what their tasks do.

Spark calls `latestOffset` with the end of the last batch that its checkpoint has as complete, so
`offsetGroup` is committed there: also after the last batch of a run that ends at fixed offsets.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from barnabas.model.errors import InvalidValueError
from barnabas.model.ids import TopicPartition
from barnabas.model.query_progress import QueryProgress
from barnabas.spark.cluster import Cluster
from barnabas.spark.micro_batch import MicroBatchPlanner, TopicSnapshot
from barnabas.spark.offset_ranges import OffsetRange, plan_tasks
from barnabas.spark.options import SourceOptions
from barnabas.spark.range_reader import read_ranges
from barnabas.spark.source_offset import (
    INITIAL,
    SourceOffset,
    parse_source_offset,
    ranges_between,
)
from barnabas.spark.source_rows import SourceRows, check_columns
from barnabas.spark.worker import consumer_pool, freeze_modules

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

_IDLE_S, _CHECK_S = 0.05, 0.01
"""How long to wait when there is nothing new (Spark would ask some ninety times a second), and how
often to check meanwhile whether a log has grown."""


def check_query(options: SourceOptions, schema: StructType) -> None:
    """Raise ConfigError, on the driver, if tasks cannot produce the columns of a query."""
    layout = to_arrow_schema(schema, timezone="UTC")
    check_columns(layout, options.value_format, options.transform)


class OffsetRangesPartition(InputPartition):
    """The offsets that a task reads."""

    def __init__(self, ranges: Sequence[OffsetRange]) -> None:
        super().__init__(tuple(ranges))


def read_task(
    options: SourceOptions, schema: StructType, partition: InputPartition
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a task."""
    layout = to_arrow_schema(schema, timezone="UTC")
    rows = SourceRows(layout, options.value_format, options.transform)
    batches = read_ranges(
        options.client,
        partition.value,
        fail_on_data_loss=options.fail_on_data_loss,
        poll_timeout_ms=options.poll_timeout_ms,
        acquire=consumer_pool().acquire,
    )
    for batch in batches:
        yield rows(batch)
    freeze_modules()


class BatchReader(DataSourceReader):
    """Reads topics once, from the starting to the ending offsets at planning time."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        check_query(options, schema)
        self._options = options
        self._schema = schema

    def partitions(self) -> list[InputPartition]:
        """Return the tasks of the query."""
        options, cluster = self._options, Cluster(self._options.client)
        try:
            snapshot = cluster.snapshot(options.selection)
            options.selection.check(snapshot.topics)
            starts = cluster.resolve(options.starting, snapshot, options.selection)
            ends = cluster.resolve(options.ending, snapshot, options.selection)
        finally:
            cluster.close()
        start = MicroBatchPlanner(options).first_start(snapshot, starts)
        ranges = _ranges(start.offsets, self._clip(ends, snapshot))
        tasks = plan_tasks(ranges, start.tasks, options.records_per_partition_max)
        return [OffsetRangesPartition(task) for task in tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a task."""
        return read_task(self._options, self._schema, partition)

    def _clip(
        self, ends: Mapping[TopicPartition, int], snapshot: TopicSnapshot
    ) -> dict[TopicPartition, int]:
        beyond = [partition for partition, end in ends.items() if end > snapshot.latest[partition]]
        if beyond and self._options.fail_on_data_loss:
            partition = beyond[0]
            raise InvalidValueError(
                f"{self._options.ending.option}: {ends[partition]} for {partition}: must be at "
                f"most {snapshot.latest[partition]}, the end of its log; failOnDataLoss=false "
                "reads up to there"
            )
        return {partition: min(end, snapshot.latest[partition]) for partition, end in ends.items()}


def _ranges(
    starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
) -> list[OffsetRange]:
    return [
        OffsetRange(partition.topic, partition.partition, start, max(start, ends[partition]))
        for partition, start in starts.items()
    ]


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads topics in micro-batches."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        check_query(options, schema)
        self._options = options
        self._schema = schema
        self._cluster = Cluster(options.client)
        self._planner = MicroBatchPlanner(options)
        self._snapshot: TopicSnapshot | None = None
        self._committed: Mapping[TopicPartition, int] = {}
        self._batches = 0
        self._began_ms = _now_ms()

    def initialOffset(self) -> dict[str, Any]:
        """Return the offset before the first batch, which has no offsets of partitions."""
        return dict(INITIAL)

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return the limit of `maxOffsetsPerTrigger`."""
        limit = self._options.offsets_per_trigger_max
        return ReadAllAvailable() if limit is None else ReadMaxRows(limit)

    def prepareForTriggerAvailableNow(self) -> None:
        """Stop at the current end offsets."""
        self._planner.stop_at(self._refresh())

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Return the end of the next batch; `start` itself while there is nothing to read."""
        at = parse_source_offset(start)
        if at is not None:
            self._commit(at)
        end = self._end(at, limit)
        if end is None and not self._planner.ends and self._has_grown():
            end = self._end(at, limit)
        return start if end is None else end.to_json()

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Return the end offsets as last seen, for progress reports."""
        snapshot = self._snapshot
        if snapshot is None:
            return None
        ids = {name: topic.topic_id for name, topic in snapshot.topics.items()}
        return SourceOffset(
            snapshot.latest, ids, self._options.tasks(len(snapshot.latest))
        ).to_json()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Return the tasks of a batch, from the stored offsets alone.

        The cluster is only asked whether the topics were recreated, and only for a batch that is
        replayed: others are planned right after `latestOffset`.
        """
        until = parse_source_offset(end)
        if until is None or start == end:
            return []
        self._batches += 1
        ranges = ranges_between(parse_source_offset(start), until)
        ranges = self._planner.drop_replaced_topics(
            ranges, until, self._snapshot or self._refresh()
        )
        tasks = plan_tasks(ranges, until.tasks, until.records_max)
        return [OffsetRangesPartition(task) for task in tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a task."""
        return read_task(self._options, self._schema, partition)

    def commit(self, end: dict[str, Any]) -> None:
        """Commit `offsetGroup`: Spark has completed everything before `end`."""
        at = parse_source_offset(end)
        if at is not None:
            self._commit(at)

    def stop(self) -> None:
        """Close the connections."""
        self._cluster.close()

    def _end(self, at: SourceOffset | None, limit: ReadLimit) -> SourceOffset | None:
        snapshot = self._refresh()
        first = at is None
        if at is None:
            options = self._options
            options.selection.check(snapshot.topics)
            starts = self._cluster.resolve(options.starting, snapshot, options.selection)
            at = self._planner.first_start(snapshot, starts)
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        return self._planner.next_end(at, snapshot, most, time.monotonic() * 1000, first=first)

    def _has_grown(self) -> bool:
        """Wait a little for new records; return whether there are any."""
        assert self._snapshot is not None
        known = self._snapshot.latest
        until_s = time.monotonic() + _IDLE_S
        while time.monotonic() < until_s:
            time.sleep(_CHECK_S)
            if self._cluster.latest(known) != known:
                return True
        return False

    def _refresh(self) -> TopicSnapshot:
        self._snapshot = self._cluster.snapshot(self._options.selection)
        return self._snapshot

    def _commit(self, done: SourceOffset) -> None:
        group = self._options.offset_group
        if group is not None and done.offsets and done.offsets != self._committed:
            progress = QueryProgress(self._batches, _now_ms(), self._began_ms)
            self._cluster.commit(group, done.offsets, progress.text())
            self._committed = done.offsets


def _now_ms() -> int:
    return time.time_ns() // 1_000_000

"""A stream: `Progress` decides, `Cluster` asks, Spark keeps the offsets.

Spark calls `latestOffset` with the end of the last batch that its checkpoint has as done, so that
is where `offsetGroup` is committed: also after the last batch of a run that ends by itself.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from barnabas.model.ids import TopicPartition
from barnabas.spark.cluster import Cluster
from barnabas.spark.options import SourceOptions
from barnabas.spark.plan import plan
from barnabas.spark.positions import INITIAL, Positions, parse_positions, ranges_between
from barnabas.spark.progress import Progress, View
from barnabas.spark.tasks import RangesPartition, check_query, read_task

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

_IDLE_S, _LOOK_S = 0.05, 0.01
"""How long to wait when there is nothing new (Spark would ask some ninety times a second), and how
often to look meanwhile whether a log has grown."""


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads topics on and on."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        check_query(options, schema)
        self._options = options
        self._schema = schema
        self._cluster = Cluster(options.client)
        self._progress = Progress(options)
        self._view: View | None = None
        self._committed: Mapping[TopicPartition, int] = {}

    def initialOffset(self) -> dict[str, Any]:
        """Return the place before the first batch, which names no offsets."""
        return dict(INITIAL)

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return what `maxOffsetsPerTrigger` says."""
        limit = self._options.offsets_per_trigger_max
        return ReadAllAvailable() if limit is None else ReadMaxRows(limit)

    def prepareForTriggerAvailableNow(self) -> None:
        """Take the ends of now as those of the run."""
        self._progress.stop_at(self._look())

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Return where the next batch ends; `start` itself while there is nothing to read."""
        at = parse_positions(start)
        if at is not None:
            self._commit(at)
        end = self._end(at, limit)
        if end is None and not self._progress.ends and self._grows():
            end = self._end(at, limit)
        return start if end is None else end.to_json()

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Return the ends of the logs as last seen, for the progress reports."""
        view = self._view
        if view is None:
            return None
        ids = {name: topic.topic_id for name, topic in view.topics.items()}
        return Positions(view.latest, ids, self._options.tasks(len(view.latest))).to_json()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Return the tasks of a batch: from the stored offsets alone.

        The cluster is only asked whether its topics are still those of then, and that only for a
        batch that is replayed: others come right after `latestOffset`.
        """
        until = parse_positions(end)
        if until is None or start == end:
            return []
        ranges = ranges_between(parse_positions(start), until)
        ranges = self._progress.still_there(ranges, until, self._view or self._look())
        tasks = plan(ranges, until.tasks, until.records_max)
        return [RangesPartition(task) for task in tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a task."""
        return read_task(self._options, self._schema, partition)

    def commit(self, end: dict[str, Any]) -> None:
        """Commit `offsetGroup`: Spark is done with all before `end`."""
        at = parse_positions(end)
        if at is not None:
            self._commit(at)

    def stop(self) -> None:
        """Close the connections."""
        self._cluster.close()

    def _end(self, at: Positions | None, limit: ReadLimit) -> Positions | None:
        view = self._look()
        first = at is None
        if at is None:
            options = self._options
            options.choice.check(view.topics)
            starts = self._cluster.resolve(options.starting, view, options.choice)
            at = self._progress.begin(view, starts)
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        return self._progress.advance(at, view, most, time.monotonic() * 1000, first=first)

    def _grows(self) -> bool:
        """Wait a little; tell at once if there is something new."""
        assert self._view is not None
        known = self._view.latest
        until_s = time.monotonic() + _IDLE_S
        while time.monotonic() < until_s:
            time.sleep(_LOOK_S)
            if self._cluster.latest(known) != known:
                return True
        return False

    def _look(self) -> View:
        self._view = self._cluster.view(self._options.choice)
        return self._view

    def _commit(self, done: Positions) -> None:
        group = self._options.offset_group
        if group is not None and done.offsets and done.offsets != self._committed:
            self._cluster.commit(group, done.offsets)
            self._committed = done.offsets

"""The exactly-once sink of streams, stopped at chosen steps: `format("barnabas-stopping")`.

The option `stops` names the directory that says where; see `tests.system.stops`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pyspark import TaskContext
from pyspark.errors import StreamingQueryException
from pyspark.sql.datasource import WriterCommitMessage
from tests.system.stops import Stops, with_stops

from barnabas.spark.datasource import BarnabasSource
from barnabas.spark.options import SinkOptions, parse_sink
from barnabas.spark.writers import StreamWriter, Written


class StoppingSource(BarnabasSource):
    """Writes like the source that it is made of, until it is stopped."""

    @classmethod
    def name(cls) -> str:
        return "barnabas-stopping"

    def streamWriter(self, schema: Any, overwrite: bool) -> StoppingWriter:
        options = dict(self.options)
        return StoppingWriter(options.pop("stops"), parse_sink(options, streaming=True), schema)


class StoppingWriter(StreamWriter):
    """Sets the stops of a batch up, then works."""

    def __init__(self, directory: str, options: SinkOptions, schema: Any) -> None:
        super().__init__(options, schema)
        self._directory = directory

    def write(self, iterator: Iterator[Any]) -> Written:
        task = TaskContext.get()
        assert task is not None
        stops = Stops(self._directory, int(task.getLocalProperty("streaming.sql.batchId") or -1))
        with_stops(stops)
        stops.at("start")
        written = super().write(iterator)
        stops.at("written")
        return written

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        stops = Stops(self._directory, batchId)
        with_stops(stops)
        super().commit(messages, batchId)
        stops.at("committed")


def run_through(start: Callable[[], Any], directory: str) -> None:
    """Run a stream to its end; what a kill ends goes on here, as a new driver takes long to start.

    Whatever else ends it is raised.
    """
    begun_before = _begun(directory)
    while True:
        query = start()
        try:
            query.awaitTermination()
            return
        except StreamingQueryException as failure:
            begun = _begun(directory)
            if begun == begun_before:
                raise
            begun_before = begun
            print(f"after {begun} kills: {failure}", flush=True)


def _begun(directory: str) -> int:
    return len(list(Path(directory).glob("begun-*")))

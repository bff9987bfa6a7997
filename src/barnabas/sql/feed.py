"""Rows of a topic on their way to a query: fetched and parsed by a thread, ahead of the engine.

An engine pulls batches from threads of its own, and converts exceptions of the code that it pulls
to errors of its own: so a failure ends the batches, and is kept in `failure` for the caller of
the query.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from barnabas.spark.range_reader import read_ranges
from barnabas.sql.table import TableRows, TopicTable

if TYPE_CHECKING:
    import pyarrow as pa

AHEAD_BATCHES = 2
STALLED_MS = 120_000.0


class Feed:
    """One pass over the records of a table."""

    def __init__(
        self, table: TopicTable, client: Mapping[str, str], progressed: Callable[[], None]
    ) -> None:
        self.table = table
        self.rows = TableRows(table)
        self.records = 0
        self.failure: BaseException | None = None
        self._client = client
        self._progressed = progressed
        self._ahead: queue.Queue[pa.RecordBatch | None] = queue.Queue(AHEAD_BATCHES)
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def reader(self) -> pa.RecordBatchReader:
        """Return the rows, which are fetched from the first pull on."""
        import pyarrow as pa

        return pa.RecordBatchReader.from_batches(self.rows.schema, self._batches())

    def close(self) -> None:
        """Stop fetching; what was not pulled is dropped."""
        self._closed.set()
        thread = self._thread
        while thread is not None and thread.is_alive():
            try:
                self._ahead.get(timeout=0.05)  # it may wait for room
            except queue.Empty:
                continue

    def _batches(self) -> Iterator[pa.RecordBatch]:
        self._thread = threading.Thread(target=self._fetch, name=f"sql-{self.table.topic}")
        self._thread.start()
        try:
            while (batch := self._ahead.get()) is not None:
                yield batch
        except KeyboardInterrupt as stop:  # the engine would wrap it in an error of its own
            self.failure = stop

    def _fetch(self) -> None:
        try:
            polled = read_ranges(
                self._client, self.table.ranges, fail_on_data_loss=False, poll_timeout_ms=STALLED_MS
            )
            for batch in polled:
                if self._closed.is_set():
                    break
                self._ahead.put(self.rows(batch))
                self.records += batch.num_rows
                self._progressed()
        except Exception as failure:  # noqa: BLE001  # raised again by the caller
            self.failure = failure
        finally:
            self._ahead.put(None)

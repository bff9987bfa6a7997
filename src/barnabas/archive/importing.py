"""From files to a topic, in transactions: read_committed consumers see complete imports only.

Without `rows_per_transaction` all files are one transaction: a failed import leaves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from barnabas.aio import AIOKafkaProducer
from barnabas.archive.csv_file import read_csv
from barnabas.archive.formats import Format
from barnabas.archive.jsonl_file import read_json_lines
from barnabas.archive.parquet_file import read_parquet
from barnabas.archive.rows import Row
from barnabas.archive.text import ArchiveError
from barnabas.mirror.sending import send_rows

if TYPE_CHECKING:
    import pyarrow

CHUNK_ROWS = 10_000
OPTIONS = {
    "batch.size": "262144",
    "buffer.memory": "67108864",
    "max.request.size": "67108864",  # the topic's own limit decides
    "transaction.timeout.ms": "900000",  # the maximum that brokers allow by default
}


class Import:
    """One import; `records` may be read while it runs."""

    def __init__(
        self,
        topic: str,
        partitions: int,
        *,
        repartition: bool = False,
        rows_per_transaction: int | None = None,
    ) -> None:
        self._topic = topic
        self._partitions = partitions
        self._repartition = repartition
        self._rows_per_transaction = rows_per_transaction
        self._in_transaction = 0
        self.records = 0

    async def run(
        self,
        files: list[tuple[Path, Format]],
        options: dict[str, Any],
        show: Callable[[], None],
    ) -> None:
        """Send everything; `options` have a transactional.id."""
        async with AIOKafkaProducer(**(OPTIONS | options)) as producer:
            await producer.begin_transaction()
            for path, format in files:
                for chunk in _chunks(path, format):
                    await self._send(producer, path, chunk)
                    show()
            await producer.commit_transaction()

    async def _send(self, producer: AIOKafkaProducer, path: Path, chunk: Any) -> None:
        count = len(chunk)
        limit = self._rows_per_transaction
        if limit is not None and self._in_transaction and self._in_transaction + count > limit:
            await producer.commit_transaction()
            await producer.begin_transaction()
            self._in_transaction = 0
        if isinstance(chunk, list):
            await self._send_rows(producer, path, chunk)
        else:
            await self._send_columns(producer, path, chunk)
        self._in_transaction += count
        self.records += count

    async def _send_columns(
        self, producer: AIOKafkaProducer, path: Path, batch: pyarrow.RecordBatch
    ) -> None:
        import pyarrow.compute as pc

        names = batch.schema.names
        if "partition" in names:
            if self._repartition:
                batch = batch.drop_columns(["partition"])
            else:
                self._check(path, pc.min_max(batch["partition"]).as_py().values())
        if _needs_rows(batch):
            await self._send_rows(producer, path, _rows(batch))
            return
        if "headers" in names:
            batch = batch.drop_columns(["headers"])  # they are all empty
        await producer.send_arrow(self._topic, batch)

    async def _send_rows(self, producer: AIOKafkaProducer, path: Path, rows: list[Row]) -> None:
        for partition, run in groupby(rows, lambda row: row[4]):
            if partition is not None and not self._repartition:
                self._check(path, [partition])
                await send_rows(producer, self._topic, partition, (row[:4] for row in run))
                continue
            for empty, few in groupby(run, lambda row: row[0] is None and row[1] is None):
                if empty:  # neither key nor value chooses a partition
                    await send_rows(producer, self._topic, 0, (row[:4] for row in few))
                else:
                    await producer.send_many(self._topic, [row[:4] for row in few])

    def _check(self, path: Path, partitions: Any) -> None:
        for partition in partitions:
            if partition is not None and not 0 <= partition < self._partitions:
                raise ArchiveError(
                    f"{path}: has a record of partition {partition}, but topic {self._topic!r} has "
                    f"partitions 0-{self._partitions - 1}; --repartition spreads records by their "
                    "keys"
                )


def _chunks(path: Path, format: Format) -> Iterator[Any]:
    """Yield Arrow record batches, or lists of rows."""
    if format is Format.PARQUET:
        yield from read_parquet(path)
        return
    rows = read_csv(path) if format is Format.CSV else read_json_lines(path)
    while chunk := list(islice(rows, CHUNK_ROWS)):
        yield chunk


def _needs_rows(batch: pyarrow.RecordBatch) -> bool:
    """Return whether there are headers, or records without key and value."""
    import pyarrow.compute as pc

    if "headers" in batch.schema.names and len(batch["headers"].flatten()):
        return True
    empty = pc.is_null(batch["value"])
    if "key" in batch.schema.names:
        empty = pc.and_(empty, pc.is_null(batch["key"]))
    return bool(pc.any(empty).as_py())


def _rows(batch: pyarrow.RecordBatch) -> list[Row]:
    import pyarrow as pa

    count = batch.num_rows

    def column(name: str, kind: Any) -> list[Any]:
        if name not in batch.schema.names:
            return [None] * count
        cells: list[Any] = batch[name].cast(kind, safe=False).to_pylist()
        return cells

    times = [None] * count
    if "timestamp" in batch.schema.names:
        cells = batch["timestamp"]
        if pa.types.is_timestamp(cells.type):
            cells = cells.cast(pa.timestamp("ms", cells.type.tz), safe=False)
        times = [
            None if time is None or time < 0 else time
            for time in cells.cast(pa.int64()).to_pylist()
        ]
    headers: list[Any] = (
        batch["headers"].to_pylist() if "headers" in batch.schema.names else [None] * count
    )
    return list(
        zip(
            column("key", pa.binary()),
            column("value", pa.binary()),
            [[(pair["key"], pair["value"]) for pair in row or ()] for row in headers],
            times,
            column("partition", pa.int32()),
            strict=True,
        )
    )

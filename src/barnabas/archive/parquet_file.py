"""Records as Parquet, column by column: fetched bytes become a file without a Python object each.

Columns are those of `poll_arrow`. A file is written in row groups that are bounded in bytes,
so that neither writing nor reading holds more than one of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from barnabas.archive.text import ArchiveError

if TYPE_CHECKING:
    import pyarrow

GROUP_ROWS = 131_072
GROUP_BYTES = 32 * 1024 * 1024
READ_ROWS = 10_000
SENT = ("key", "value", "headers", "timestamp", "partition")
"""The columns of a file that can be written to a topic."""


def need_pyarrow() -> None:
    """Raise, and say what to install, if pyarrow is missing."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError as failure:
        raise ArchiveError(
            "Parquet needs pyarrow, which is not installed: pip install 'barnabas[arrow]'; "
            "--format csv and --format jsonl do not need it"
        ) from failure


class ParquetFileWriter:
    """A file that is appended to by row groups; `group_bytes` bounds the buffered rows."""

    def __init__(self, path: Path, group_bytes: int = GROUP_BYTES) -> None:
        self._path = path
        self._group_bytes = group_bytes
        self._writer: Any = None
        self._waiting: list[pyarrow.RecordBatch] = []
        self._rows = 0
        self._bytes = 0

    def write(self, batch: pyarrow.RecordBatch) -> None:
        """Append rows."""
        self._waiting.append(batch)
        self._rows += batch.num_rows
        self._bytes += batch.nbytes
        if self._rows >= GROUP_ROWS or self._bytes >= self._group_bytes:
            self._write_group()

    def close(self) -> None:
        """Finish the file."""
        if self._waiting or self._writer is None:
            self._write_group()
        self._writer.close()

    def _write_group(self) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pa.Table.from_batches(self._waiting, schema())
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._path, table.schema, compression="zstd")
        self._writer.write_table(table)
        self._waiting, self._rows, self._bytes = [], 0, 0


def schema() -> pyarrow.Schema:
    """Return the columns of a file."""
    import pyarrow as pa

    from barnabas.consumer.arrow import schema as polled

    layout = polled()
    index = layout.get_field_index("topic")
    return layout.set(index, pa.field("topic", pa.string(), nullable=False))


def plain_topic(batch: pyarrow.RecordBatch) -> pyarrow.RecordBatch:
    """Return a polled batch with the topic as a string: dictionaries of batches may differ."""
    import pyarrow as pa

    index = batch.schema.get_field_index("topic")
    columns = list(batch.columns)
    columns[index] = columns[index].cast(pa.string())
    return pa.RecordBatch.from_arrays(columns, schema=schema())


def read_parquet(path: Path) -> Iterator[pyarrow.RecordBatch]:
    """Yield batches of the columns for a topic; raise ArchiveError for another file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            names = file.schema_arrow.names
            if "value" not in names:
                raise ArchiveError(f"{path}: must have a column value, has only {', '.join(names)}")
            columns = [name for name in SENT if name in names]
            for batch in file.iter_batches(READ_ROWS, columns=columns):
                # Rows are sent in the order of these columns, not the file's.
                yield batch.select(columns)
    except pa.ArrowInvalid as failure:
        raise ArchiveError(f"{path}: {failure}") from failure


def count_rows(path: Path) -> int:
    """Return the number of rows in a file's metadata."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        rows: int = pq.read_metadata(path).num_rows
    except pa.ArrowInvalid as failure:
        raise ArchiveError(f"{path}: {failure}") from failure
    return rows

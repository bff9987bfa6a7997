"""Rows of segment files: those of `format("barnabas")`, and the position of each on disk.

    segment, position, baseOffset, leaderEpoch, producerId    with includePlace (the default)
    controlType    with includeControl: COMMIT or ABORT for a transaction's marker, else null
    corrupt        with onCorrupt=report: what is wrong with the bytes at `position` of `segment`,
                   null for records

Records come as columns from the kernels that a consumer uses. What all records of a batch share is
kept once per batch, and expanded to the rows when a table is built. A query that
names fewer columns with `schema()` gets those, and the others cost nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

from barnabas.consumer.arrow import schema as polled_schema
from barnabas.consumer.arrow import to_record_batch
from barnabas.kernels import ColumnStore
from barnabas.model.errors import ConfigError
from barnabas.model.ids import NO_EPOCH
from barnabas.spark.logfiles.options import LogColumns
from barnabas.spark.source_rows import HEADERS_DDL

if TYPE_CHECKING:
    import pyarrow as pa


_ALWAYS = {
    "key": "BINARY",
    "value": "BINARY",
    "topic": "STRING",
    "partition": "INT",
    "offset": "BIGINT",
    "timestamp": "TIMESTAMP",
    "timestampType": "INT",
}
_PLACE = {
    "segment": "STRING",
    "position": "BIGINT",
    "baseOffset": "BIGINT",
    "leaderEpoch": "INT",
    "producerId": "BIGINT",
}


def _declared(columns: LogColumns) -> dict[str, str]:
    found = dict(_ALWAYS)
    if columns.headers:
        found["headers"] = HEADERS_DDL
    if columns.location:
        found |= _PLACE
    if columns.control:
        found["controlType"] = "STRING"
    if columns.corrupt:
        found["corrupt"] = "STRING"
    return found


def log_ddl(columns: LogColumns) -> str:
    """Return the columns in Spark's DDL."""
    return ", ".join(f"{name} {kind}" for name, kind in _declared(columns).items())


def check_log_columns(names: Iterable[str]) -> None:
    """Raise ConfigError unless all columns that a query names with `schema` are available."""
    known = _declared(LogColumns(headers=True, control=True, corrupt=True))
    strange = [name for name in names if name not in known]
    if strange:
        raise ConfigError(
            f"schema: unknown column {', '.join(strange)}; must be among {', '.join(known)}"
        )


class Origin(NamedTuple):
    """What records of one batch have in common."""

    segment: str
    position: int
    base_offset: int
    leader_epoch: int = NO_EPOCH
    producer_id: int = -1
    timestamp_type: int | None = None  # None: as in the records
    until: int | None = None  # None: all records of the batch are wanted


_SPREAD = {
    "segment": 0,
    "position": 1,
    "baseOffset": 2,
    "leaderEpoch": 3,
    "producerId": 4,
}
"""Columns that come from an Origin, and their indexes in it."""


class LogRows:
    """Rows that are collected into one Arrow batch; `store` takes the records."""

    def __init__(self, layout: pa.Schema, from_ms: int | None, to_ms: int | None) -> None:
        self.store = ColumnStore()
        self.stored_bytes = 0
        self._layout = layout
        self._polled = polled_schema()
        self._from_ms = from_ms
        self._to_ms = to_ms
        self._ends: list[int] = []
        self._origins: list[Origin] = []
        self._others: list[dict[str, Any]] = []

    @property
    def count(self) -> int:
        """How many rows there are."""
        return self.store.count + len(self._others)

    def came_from(self, origin: Origin, count: int) -> None:
        """Set the origin of the next rows of the store."""
        self._ends.append(count + (self._ends[-1] if self._ends else 0))
        self._origins.append(origin)

    def add(self, **cells: Any) -> None:
        """Add a row that is not from the store; cells that are not given are null."""
        self._others.append(cells)

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows, and start over."""
        if self.store.count:
            batch = self._records()
            if batch.num_rows:
                yield batch
        if self._others:
            yield self._made()
        self._ends, self._origins, self._others = [], [], []
        self.stored_bytes = 0

    def _records(self) -> pa.RecordBatch:
        import pyarrow as pa

        polled = to_record_batch(self.store.finish(), self._polled)
        assert self._ends[-1] == polled.num_rows, "each record is of a batch"
        batch = pa.RecordBatch.from_arrays(
            [self._column(polled, field.name, field.type) for field in self._layout],
            schema=self._layout,
        )
        mask = self._wanted(polled)
        return batch if mask is None else batch.filter(mask)

    def _column(self, polled: pa.RecordBatch, name: str, kind: pa.DataType) -> pa.Array:
        import pyarrow as pa
        import pyarrow.compute as pc

        if name in _SPREAD:
            return self._spread(_SPREAD[name], kind)
        if name in ("controlType", "corrupt"):
            return pa.nulls(polled.num_rows, kind)
        if name == "topic":
            return polled.column("topic").dictionary_decode()
        if name == "timestampType":
            types = polled.column("timestamp_type").cast(kind)
            if all(origin.timestamp_type is None for origin in self._origins):
                return types
            return pc.coalesce(self._spread(5, kind), types)
        found = polled.column(name)
        return found if found.type == kind else found.cast(kind)

    def _spread(self, index: int, kind: pa.DataType) -> pa.Array:
        """Return a field of the origins, for each of the rows."""
        import pyarrow as pa
        import pyarrow.compute as pc

        cells = pa.array([origin[index] for origin in self._origins], kind)
        if len(cells) == 1:
            return pa.repeat(cells[0], self._ends[0])
        return pc.run_end_decode(
            pa.RunEndEncodedArray.from_arrays(pa.array(self._ends, pa.int32()), cells)
        )

    def _wanted(self, polled: pa.RecordBatch) -> pa.Array | None:
        """Return whether each row is wanted; None: all are."""
        import pyarrow as pa
        import pyarrow.compute as pc

        masks = []
        times = polled.column("timestamp").cast(pa.int64())
        if self._from_ms is not None:
            masks.append(pc.greater_equal(times, self._from_ms))
        if self._to_ms is not None:
            masks.append(pc.less(times, self._to_ms))
        if any(origin.until is not None for origin in self._origins):
            below = pc.less(polled.column("offset"), self._spread(6, pa.int64()))
            masks.append(pc.fill_null(below, True))
        return reduce(pc.and_, masks) if masks else None

    def _made(self) -> pa.RecordBatch:
        import pyarrow as pa

        cells = {
            field.name: [row.get(field.name) for row in self._others] for field in self._layout
        }
        if "headers" in cells:
            cells["headers"] = [each or [] for each in cells["headers"]]
        return pa.RecordBatch.from_arrays(
            [pa.array(cells[field.name], field.type) for field in self._layout],
            schema=self._layout,
        )

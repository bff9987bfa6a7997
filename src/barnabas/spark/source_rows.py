"""Polled records as the rows that Spark expects: its Kafka connector's columns, in its types.

key, value, topic, partition, offset, timestamp, timestampType and, with `includeHeaders`, headers.
With a `valueFormat`, `value` has the type of the parsed value, and `valueError` follows the
others, then `rawValue` with `includeRawValue`. A query that names fewer columns with `schema()`
gets those, and the others cost nothing. With a `transform` the function gets all of them, and
`schema()` says what it returns. Spark rejects a batch whose schema differs from the declared one in
order, type or nullability.

A record without headers has an empty array, where Spark's connector has null: null arrays cost
Spark time that is quadratic in the rows of a batch on the way to a Python sink.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from barnabas.model.errors import ConfigError
from barnabas.spark.values.value_format import ERROR_COLUMN, RAW_COLUMN, ValueFormat

if TYPE_CHECKING:
    import pyarrow as pa

HEADERS_DDL = "ARRAY<STRUCT<key: STRING, value: BINARY>>"
COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")


def source_ddl(value_format: ValueFormat, with_headers: bool) -> str:
    """Return the columns of the source in Spark's DDL."""
    columns = [
        "key BINARY",
        f"value {value_format.ddl()}",
        "topic STRING",
        "partition INT",
        "offset BIGINT",
        "timestamp TIMESTAMP",
        "timestampType INT",
    ]
    if with_headers:
        columns.append(f"headers {HEADERS_DDL}")
    if value_format.name != "binary":
        columns.append(f"{ERROR_COLUMN} STRING")
    if value_format.with_raw:
        columns.append(f"{RAW_COLUMN} BINARY")
    return ", ".join(columns)


class SourceRows:
    """Turns polled batches into Spark's rows."""

    def __init__(self, layout: pa.Schema, value_format: ValueFormat, transform: str | None) -> None:
        self._layout = layout
        self._transform = None if transform is None else load_transform(transform)
        names = layout.names if transform is None else (*COLUMNS, ERROR_COLUMN)
        self._wanted = [name for name in COLUMNS if name in names]
        self._read = None
        if value_format.name != "binary" and "value" in names:
            self._read = value_format.reader()
            self._kind = _value_type(layout, value_format, transform)
        self._keeps_raw = RAW_COLUMN in names or (transform is not None and value_format.with_raw)

    def __call__(self, polled: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch in the declared layout."""
        import pyarrow as pa
        import pyarrow.compute as pc

        columns = {name: _column(polled, name) for name in self._wanted}
        if self._read is not None:
            raw = columns["value"]
            columns["value"], columns[ERROR_COLUMN] = self._read(raw, self._kind)
            if self._keeps_raw:
                unread = pc.is_valid(columns[ERROR_COLUMN])
                columns[RAW_COLUMN] = pc.if_else(unread, raw, pa.scalar(None, raw.type))
        if self._transform is not None:
            return self._checked(self._transform(pa.RecordBatch.from_pydict(columns)))
        return pa.RecordBatch.from_arrays(
            [_typed(columns[field.name], field.type) for field in self._layout],
            schema=self._layout,
        )

    def _checked(self, made: Any) -> pa.RecordBatch:
        import pyarrow as pa

        if not isinstance(made, pa.RecordBatch):
            raise TypeError(f"transform: returned {type(made).__name__}, not a pyarrow.RecordBatch")
        missing = [name for name in self._layout.names if name not in made.schema.names]
        if missing:
            raise ValueError(
                f"transform: the batch lacks {', '.join(missing)}; it has "
                f"{', '.join(made.schema.names)}"
            )
        return pa.RecordBatch.from_arrays(
            [_typed(made.column(field.name), field.type) for field in self._layout],
            schema=self._layout,
        )


def check_columns(layout: pa.Schema, value_format: ValueFormat, transform: str | None) -> None:
    """Raise if a query's columns cannot be produced; a transform's are checked when it has run."""
    names = layout.names
    if transform is None:
        known = [*COLUMNS, ERROR_COLUMN, RAW_COLUMN]
        strange = [name for name in names if name not in known]
        if strange:
            raise ConfigError(
                f"schema: unknown column {', '.join(strange)}; must be among {', '.join(known)}"
            )
        # The column's type decides how values are parsed.
        reads = [name for name in (ERROR_COLUMN, RAW_COLUMN) if name in names]
        if reads and value_format.name == "binary":
            raise ConfigError(f"schema: {reads[0]} needs a valueFormat; binary has no errors")
        if reads and "value" not in names:
            raise ConfigError(
                f"schema: valueFormat={value_format.name} needs the column value among "
                f"{', '.join(names)}"
            )
    if value_format.name != "binary" and ("value" in names or transform is not None):
        value_format.check(_value_type(layout, value_format, transform))


def _value_type(layout: pa.Schema, value_format: ValueFormat, transform: str | None) -> pa.DataType:
    """Return the type of parsed values: from `schema()`, or before a transform `valueSchema`."""
    return layout.field("value").type if transform is None else value_format.type()


def _column(polled: pa.RecordBatch, name: str) -> Any:
    import pyarrow as pa

    if name == "topic":
        return polled.column("topic").dictionary_decode()
    if name == "timestamp":
        return polled.column("timestamp").cast(pa.timestamp("us", tz="UTC"))
    if name == "timestampType":
        return polled.column("timestamp_type").cast(pa.int32())
    return polled.column(name)


def _typed(column: Any, kind: Any) -> Any:
    return column if column.type == kind else column.cast(kind)


def load_transform(path: str) -> Any:
    """Return the function that "package.module:function" names; raise ConfigError if none is."""
    module, colon, name = path.partition(":")
    if not colon or not module or not name:
        raise ConfigError(f"transform={path}: must be package.module:function")
    try:
        function = getattr(import_module(module), name)
    except (ImportError, AttributeError) as failure:
        raise ConfigError(f"transform={path}: could not be loaded ({failure})") from failure
    if not callable(function):
        raise ConfigError(f"transform={path}: must be a function")
    return function

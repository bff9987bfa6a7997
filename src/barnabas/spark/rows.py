"""Polled records as the rows that Spark expects: its Kafka connector's columns, in its types.

key, value, topic, partition, offset, timestamp, timestampType and, where asked for, headers. With a
`valueFormat`, `value` has the type of what was read, and `valueError` comes last. Spark refuses a
batch whose schema differs from the declared one in order, type or nullability.

A record without headers has an empty array, where Spark's connector has null: null arrays cost
Spark time that is quadratic in the rows of a batch on the way to a Python sink.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from barnabas.model.errors import ConfigError
from barnabas.spark.values import ERROR_COLUMN, ValueFormat

if TYPE_CHECKING:
    import pyarrow as pa

HEADERS_DDL = "ARRAY<STRUCT<key: STRING, value: BINARY>>"


def source_ddl(value_format: ValueFormat, with_headers: bool) -> str:
    """Return the columns of the source in Spark's words."""
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
    return ", ".join(columns)


class Rows:
    """Makes Spark's rows of polled batches."""

    def __init__(self, layout: pa.Schema, value_format: ValueFormat, transform: str | None) -> None:
        self._layout = layout
        self._read = None if value_format.name == "binary" else value_format.reader()
        self._transform = None if transform is None else load_transform(transform)

    def __call__(self, polled: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch in the declared layout."""
        import pyarrow as pa

        columns: dict[str, Any] = {
            "key": polled.column("key"),
            "value": polled.column("value"),
            "topic": polled.column("topic").dictionary_decode(),
            "partition": polled.column("partition"),
            "offset": polled.column("offset"),
            "timestamp": polled.column("timestamp").cast(pa.timestamp("us", tz="UTC")),
            "timestampType": polled.column("timestamp_type").cast(pa.int32()),
            "headers": polled.column("headers"),
        }
        if self._read is not None:
            kind = self._layout.field("value").type
            columns["value"], columns[ERROR_COLUMN] = self._read(columns["value"], kind)
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
        raise ConfigError(f"transform={path}: cannot be loaded ({failure})") from failure
    if not callable(function):
        raise ConfigError(f"transform={path}: is not a function")
    return function

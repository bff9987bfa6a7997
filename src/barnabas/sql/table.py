"""A topic as a table: which offsets, which columns, and how polled batches become rows of it.

    partition INT, offset BIGINT, timestamp TIMESTAMP, key, value, headers, fields of the value …

Keys and values are strings if the sample's are UTF-8, else bytes. A field with the name of one of
these columns, or of another field except for its case, gets the prefix `value_`. Parsed values add
`valueError`: why one could not be parsed, else null.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from barnabas.spark.offset_ranges import OffsetRange
from barnabas.spark.values.objects import read_objects
from barnabas.spark.values.text import parse_json, spread
from barnabas.spark.values.value_format import ERROR_COLUMN, Read, ValueFormat, parse_value_format
from barnabas.sql.errors import SqlError
from barnabas.sql.inference import Fields, fit, has_mixed, infer, to_ddl

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS = ("partition", "offset", "timestamp", "key", "value", "headers")
AUTO = "auto"
PARSED = "parsed"
"""The column of values that have no fields, such as an Avro string."""


@dataclass(frozen=True, slots=True)
class TopicTable:
    """What is read of a topic, and with which types."""

    topic: str
    ranges: tuple[OffsetRange, ...]
    format: ValueFormat
    text_keys: bool
    text_values: bool
    inferred: Fields | None = None
    schema: str | None = None  # as given
    names: Mapping[str, str] = field(default_factory=dict)
    """The columns of fields."""

    @property
    def has_fields(self) -> bool:
        """Whether parsed values are structs, whose fields are the columns."""
        import pyarrow as pa

        kind = self.value_type()
        return kind is not None and bool(pa.types.is_struct(kind))

    def value_type(self) -> pa.DataType | None:
        """Return the type of parsed values; None if values are not parsed."""
        if self.format.name in ("binary", "string"):
            return None
        return self.format.type()


def make_table(
    topic: str,
    ranges: Sequence[OffsetRange],
    sample: Sequence[tuple[bytes | None, bytes | None]],
    format: str = AUTO,
    schema: str | None = None,
) -> TopicTable:
    """Return the table of a topic, whose latest records are a sample of keys and values."""
    keys = [key for key, _ in sample if key is not None]
    values = [value for _, value in sample if value is not None]
    text_keys, text_values = all(map(_is_text, keys)), all(map(_is_text, values))
    inferred = None
    if schema is not None and format == AUTO:
        format = "json"
    if format == AUTO or (format == "json" and schema is None):
        inferred = infer(values)
        if inferred is None and format == "json" and values:
            raise SqlError(
                f"topic {topic}: --format json without --schema, but not all of its latest "
                f"{len(values)} values are JSON objects"
            )
        chosen = ValueFormat("json", to_ddl(inferred)) if inferred else ValueFormat()
    else:
        given = {"valueformat": format} | ({} if schema is None else {"valueschema": schema})
        chosen = parse_value_format(given)
    if chosen.name in ("string", "binary") and format != AUTO:
        text_keys = text_values = chosen.name == "string"
    table = TopicTable(topic, tuple(ranges), chosen, text_keys, text_values, inferred, schema)
    kind = table.value_type()
    if kind is not None:
        chosen.check(kind)
    return replace(table, names=_column_names(kind))


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _column_names(kind: pa.DataType | None) -> dict[str, str]:
    """Return the columns of fields, all different regardless of case."""
    import pyarrow as pa

    if kind is None:
        return {}
    taken = {name.lower() for name in (*COLUMNS, ERROR_COLUMN)}
    names = {}
    for each in [each.name for each in kind] if pa.types.is_struct(kind) else [PARSED]:
        name = each
        while name.lower() in taken:
            name = f"value_{name}"
        taken.add(name.lower())
        names[each] = name
    return names


class TableRows:
    """Builds rows of a table from polled batches; `unreadable` counts values that do not match."""

    def __init__(self, table: TopicTable) -> None:
        import pyarrow as pa

        self._table = table
        self._kind = table.value_type()
        self._read: Read | None = None
        if self._kind is not None:
            inferred = table.inferred
            self._read = table.format.reader() if inferred is None else JsonReader(inferred)
        self.unreadable = 0
        self.first_unreadable: str | None = None
        header = pa.struct([("key", pa.string()), ("value", pa.binary())])
        fields = [
            ("partition", pa.int32()),
            ("offset", pa.int64()),
            ("timestamp", pa.timestamp("us", tz="UTC")),
            ("key", pa.string() if table.text_keys else pa.binary()),
            ("value", pa.string() if table.text_values else pa.binary()),
            ("headers", pa.list_(header)),
        ]
        if self._kind is not None:
            inner = list(self._kind) if pa.types.is_struct(self._kind) else [None]
            for each, name in zip(inner, table.names.values(), strict=True):
                fields.append((name, self._kind if each is None else each.type))
            fields.append((ERROR_COLUMN, pa.string()))
        self.schema = pa.schema(fields)

    def __call__(self, polled: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows of a polled batch."""
        import pyarrow as pa

        columns: list[Any] = [
            polled.column("partition"),
            polled.column("offset"),
            polled.column("timestamp").cast(self.schema.field("timestamp").type),
            _texts(polled.column("key"), self._table.text_keys),
            _texts(polled.column("value"), self._table.text_values),
            polled.column("headers").cast(self.schema.field("headers").type),
        ]
        if self._read is not None:
            found, errors = self._read(polled.column("value"), self._kind)
            columns += found.flatten() if pa.types.is_struct(found.type) else [found]
            columns.append(errors)
            if errors.null_count < len(errors):
                self._count(polled, errors)
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _count(self, polled: pa.RecordBatch, errors: pa.Array) -> None:
        import pyarrow.compute as pc

        rows = pc.indices_nonzero(pc.is_valid(errors))
        self.unreadable += len(rows)
        if self.first_unreadable is None:
            row = rows[0].as_py()
            self.first_unreadable = (
                f"partition {polled.column('partition')[row]} offset "
                f"{polled.column('offset')[row]}: {errors[row]}"
            )


def _texts(column: pa.BinaryArray, wanted: bool) -> pa.Array:
    """Return bytes as strings; what is not UTF-8 is shown with its bytes in hexadecimal."""
    import pyarrow as pa

    if not wanted:
        return column
    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array(
            [
                None if each is None else each.decode("utf-8", "backslashreplace")
                for each in column.to_pylist()
            ],
            pa.string(),
        )


if TYPE_CHECKING:
    import pyarrow as pa


class JsonReader:
    """Parses JSON values as structs of inferred fields: by Arrow's parser, or object by object.

    Arrow parses a batch at once, and rejects it whole if one value does not match the fields. Such
    a batch, and one with fields of several kinds, is parsed by Python, which reports each value
    that does not match.
    """

    def __init__(self, fields: Fields) -> None:
        self._fields = fields
        self._plain = not has_mixed(fields)

    def __call__(self, values: pa.BinaryArray, kind: pa.StructType) -> tuple[pa.Array, pa.Array]:
        """Return structs, and the reason for those that are null."""
        import pyarrow as pa

        if self._plain:
            found = self._at_once(values, kind)
            if found is not None:
                return found, pa.nulls(len(values), pa.string())
        return read_objects(values, kind, self._object, str)

    def _at_once(self, values: pa.BinaryArray, kind: pa.StructType) -> pa.Array | None:
        """Return the result of Arrow's parser; None if it rejects a value."""
        import pyarrow as pa

        present = values.drop_null().to_pylist()
        try:
            found = parse_json(present, kind) if present else pa.array([], kind)
        except pa.ArrowInvalid:
            return None
        return spread(found, values)

    def _object(self, text: bytes) -> Any:
        return fit(json.loads(text), self._fields)

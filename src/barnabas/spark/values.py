"""Values as typed columns: `valueFormat` says how bytes are read, `valueSchema` what is in them.

    binary   the bytes (the default)
    string   text
    json     one object, read as a struct of the schema's fields; others are passed over
    csv      one line, read as a struct of the schema's fields in their order

Beside a `value` that is read stands `valueError`: null where the value could be read (or there was
none), else why not; such a value is null. A whole batch is read by Arrow at once; where that fails
it is halved until the rows that are wrong stand alone, so one bad record costs a few reads more and
rows are read by the same rules either way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from barnabas.model.errors import ConfigError

if TYPE_CHECKING:
    import pyarrow as pa

FORMATS = ("binary", "string", "json", "csv")
ERROR_COLUMN = "valueError"

Parse = Callable[["list[bytes]", "pa.StructType"], "pa.StructArray"]
"""Reads texts as structs; raises ArrowInvalid where one of them is not what it should be."""


@dataclass(frozen=True, slots=True)
class ValueFormat:
    """How values are read; `schema` is DDL or Spark's JSON, for the formats that have one."""

    name: str = "binary"
    schema: str | None = None


def parse_value_format(given: Mapping[str, str]) -> ValueFormat:
    """Read `valueFormat` and `valueSchema` from lower-case names."""
    name = given.get("valueformat", "binary").lower()
    schema = given.get("valueschema")
    if name not in FORMATS:
        raise ConfigError(f"valueFormat={name}: must be one of {', '.join(FORMATS)}")
    if name in ("json", "csv") and schema is None:
        raise ConfigError(f"valueFormat={name}: needs valueSchema, such as 'id INT, name STRING'")
    if name in ("binary", "string") and schema is not None:
        raise ConfigError(f"valueSchema={schema}: valueFormat={name} has no schema")
    return ValueFormat(name, schema)


def read_values(
    values: pa.BinaryArray, format_name: str, kind: pa.DataType
) -> tuple[pa.Array, pa.Array]:
    """Return values as `kind`, and why those that are null could not be read."""
    import pyarrow as pa

    if format_name == "string":
        return _strings(values)
    parse: Parse = _parse_json if format_name == "json" else _parse_csv
    texts = values.to_pylist()
    errors: list[str | None] = [None] * len(texts)
    present = [row for row, text in enumerate(texts) if text is not None]
    found = _read([texts[row] for row in present], kind, parse, present, errors)
    if len(present) < len(texts):
        places = {row: number for number, row in enumerate(present)}
        chosen = pa.array([places.get(row) for row in range(len(texts))], pa.int64())
        found = found.take(chosen)
    return found, pa.array(errors, pa.string())


def _read(
    texts: list[bytes],
    kind: pa.StructType,
    parse: Parse,
    rows: list[int],
    errors: list[str | None],
) -> pa.Array:
    import pyarrow as pa

    if not texts:
        return pa.array([], kind)
    failure = "a line break stands inside of it"
    if not any(b"\n" in text or b"\r" in text or not text.strip() for text in texts):
        try:
            found = parse(texts, kind)
            if len(found) == len(texts):
                return found
            failure = "not one value but several"
        except pa.ArrowInvalid as broken:
            failure = str(broken)
    if len(texts) == 1:
        return _read_alone(texts[0], kind, parse, rows[0], errors, failure)
    half = len(texts) // 2
    return pa.concat_arrays(
        [
            _read(texts[:half], kind, parse, rows[:half], errors),
            _read(texts[half:], kind, parse, rows[half:], errors),
        ]
    )


def _read_alone(
    text: bytes, kind: pa.StructType, parse: Parse, row: int, errors: list[str | None], why: str
) -> pa.Array:
    import pyarrow as pa

    if not text.strip():
        why = "empty"
    elif parse is _parse_json and (b"\n" in text or b"\r" in text):
        # Line breaks between the parts of an object mean nothing, and inside of its texts they
        # are not allowed: blanks in their place read the same.
        blank = text.replace(b"\r", b" ").replace(b"\n", b" ")
        try:
            found = parse([blank], kind)
            if len(found) == 1:
                return found
        except pa.ArrowInvalid as broken:
            why = str(broken)
    errors[row] = why
    return pa.nulls(1, kind)


def _strings(values: pa.BinaryArray) -> tuple[pa.Array, pa.Array]:
    import pyarrow as pa

    try:
        return values.cast(pa.string()), pa.nulls(len(values), pa.string())
    except pa.ArrowInvalid:
        pass
    texts: list[str | None] = []
    errors: list[str | None] = []
    for value in values.to_pylist():
        try:
            texts.append(None if value is None else value.decode("utf-8"))
            errors.append(None)
        except UnicodeDecodeError as broken:
            texts.append(None)
            errors.append(f"not UTF-8: {broken.reason} at byte {broken.start}")
    return pa.array(texts, pa.string()), pa.array(errors, pa.string())


def _parse_json(texts: list[bytes], kind: pa.StructType) -> pa.StructArray:
    import pyarrow as pa
    from pyarrow import json

    data = b"\n".join(texts)
    table = json.read_json(
        pa.BufferReader(data),
        read_options=json.ReadOptions(use_threads=False, block_size=len(data) + 1),
        parse_options=json.ParseOptions(
            explicit_schema=pa.schema(list(kind)), unexpected_field_behavior="ignore"
        ),
    )
    return _struct(table, kind)


def _parse_csv(texts: list[bytes], kind: pa.StructType) -> pa.StructArray:
    import pyarrow as pa
    from pyarrow import csv

    data = b"\n".join(texts)
    table = csv.read_csv(
        pa.BufferReader(data),
        read_options=csv.ReadOptions(
            use_threads=False, column_names=[field.name for field in kind], block_size=len(data) + 1
        ),
        parse_options=csv.ParseOptions(newlines_in_values=False),
        convert_options=csv.ConvertOptions(
            column_types={field.name: field.type for field in kind}, strings_can_be_null=True
        ),
    )
    return _struct(table, kind)


def _struct(table: pa.Table, kind: pa.StructType) -> Any:
    import pyarrow as pa

    [batch] = table.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], table.schema)]
    return pa.StructArray.from_arrays(
        [batch.column(field.name) for field in kind], fields=list(kind)
    )

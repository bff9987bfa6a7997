"""Values that are text: JSON, CSV, or just text, read by Arrow a whole batch at once.

Where that fails a batch is halved until the rows that are wrong stand alone: one bad record costs a
few reads more, and rows are read by the same rules either way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

Parse = Callable[["list[bytes]", "pa.StructType"], "pa.StructArray"]
"""Reads texts as structs; raises ArrowInvalid where one of them is not what it should be."""


def read_lines(
    values: pa.BinaryArray, kind: pa.StructType, parse: Parse
) -> tuple[pa.Array, pa.Array]:
    """Return values as structs, and why those that are null could not be read."""
    import pyarrow as pa

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
    elif parse is parse_json and (b"\n" in text or b"\r" in text):
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


def read_strings(values: pa.BinaryArray) -> tuple[pa.Array, pa.Array]:
    """Return values as texts, and why those that are null could not be read."""
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


def parse_json(texts: list[bytes], kind: pa.StructType) -> pa.StructArray:
    """Read objects, one for each text; fields that the schema does not have are passed over."""
    import pyarrow as pa
    from pyarrow import json

    data = b"\n".join(texts)
    table = json.read_json(
        pa.BufferReader(data),
        read_options=json.ReadOptions(use_threads=False, block_size=len(data) + 1),
        parse_options=json.ParseOptions(
            explicit_schema=pa.schema(list(_readable(kind))), unexpected_field_behavior="ignore"
        ),
    )
    found = _struct(table, _readable(kind))
    return found if found.type == kind else found.cast(kind)


def _readable(kind: Any) -> Any:
    """Return a type with times in the place of dates, which Arrow reads from numbers alone."""
    import pyarrow as pa
    from pyarrow import types

    if types.is_date32(kind):
        return pa.timestamp("s")
    if types.is_struct(kind):
        return pa.struct([field.with_type(_readable(field.type)) for field in kind])
    if types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_readable(kind.value_type)))
    return kind


def parse_csv(texts: list[bytes], kind: pa.StructType) -> pa.StructArray:
    """Read lines, one for each text; their fields are the schema's in its order."""
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

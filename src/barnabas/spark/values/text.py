"""Values that are strings: JSON, CSV, or plain, parsed by Arrow a whole batch at once.

If that fails, a batch is halved until the wrong rows stand alone: one bad record costs a few more
parses, and rows are parsed by the same rules either way.

Arrow parses lines, and a value need not be one: its input is checked first, so that every line is
one value and no value is taken for none, or for two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

Parse = Callable[["Sequence[bytes]", "pa.StructType"], "pa.StructArray"]
"""Parses strings, at least one, as structs, one for each; raises ArrowInvalid if one of them is
invalid."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_FIRST_BYTE = itemgetter(slice(1))
_BREAKS_AS_BLANKS = bytes.maketrans(b"\r\n", b"  ")


def read_texts(
    values: pa.BinaryArray, kind: pa.StructType, parse: Parse
) -> tuple[pa.Array, pa.Array]:
    """Return values as structs, and the reason for those that are null."""
    import pyarrow as pa

    found, errors = _read(values.drop_null().to_pylist(), kind, parse)
    return spread(found, values), spread(pa.array(errors, pa.string()), values)


def spread(found: pa.Array, values: pa.Array) -> pa.Array:
    """Return the results for the values that are not null, with a null for each that is."""
    import pyarrow as pa

    if not values.null_count:
        return found
    numbers = iter(range(len(found)))
    places = [next(numbers) if present else None for present in values.is_valid().to_pylist()]
    return found.take(pa.array(places, pa.int64()))


def _read(
    texts: list[bytes], kind: pa.StructType, parse: Parse
) -> tuple[pa.Array, list[str | None]]:
    import pyarrow as pa

    if not texts:
        return pa.array([], kind), []
    try:
        return parse(texts, kind), [None] * len(texts)
    except pa.ArrowInvalid as broken:
        if len(texts) == 1:
            return pa.nulls(1, kind), [str(broken) if texts[0].strip() else "empty"]
    half = len(texts) // 2
    first, first_errors = _read(texts[:half], kind, parse)
    second, second_errors = _read(texts[half:], kind, parse)
    return pa.concat_arrays([first, second]), first_errors + second_errors


def read_strings(values: pa.BinaryArray) -> tuple[pa.Array, pa.Array]:
    """Return values as strings, and the reason for those that are null."""
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
            errors.append(_not_utf8(broken))
    return pa.array(texts, pa.string()), pa.array(errors, pa.string())


def _not_utf8(broken: UnicodeDecodeError) -> str:
    return f"not UTF-8: {broken.reason} at byte {broken.start}"


def parse_json(texts: Sequence[bytes], kind: pa.StructType) -> pa.StructArray:
    """Parse objects; fields that the schema does not have are ignored."""
    import pyarrow as pa
    from pyarrow import json

    data = _json_lines(texts)
    table = json.read_json(
        pa.BufferReader(data),
        read_options=json.ReadOptions(use_threads=False, block_size=len(data) + 1),
        parse_options=json.ParseOptions(
            explicit_schema=pa.schema(list(_readable(kind))), unexpected_field_behavior="ignore"
        ),
    )
    if table.num_rows != len(texts):
        raise pa.ArrowInvalid("more than one JSON value")
    found = _struct(table, _readable(kind))
    return found if found.type == kind else found.cast(kind)


def _json_lines(texts: Sequence[bytes]) -> bytes:
    """Return objects as lines; raise ArrowInvalid if one of them cannot be an object.

    Arrow would accept a byte that is not UTF-8, and crashes on a lone `null`.
    """
    import pyarrow as pa

    data = b"\n".join(texts)
    if not _are_objects(texts, data):
        # Line breaks between the parts of an object are insignificant, and inside its strings
        # they are not allowed: blanks in their place parse the same.
        texts = [
            text.removeprefix(_BYTE_ORDER_MARK).translate(_BREAKS_AS_BLANKS).strip(b" \t")
            for text in texts
        ]
        data = b"\n".join(texts)
        if not _are_objects(texts, data):
            raise pa.ArrowInvalid("not a JSON object")
    if not data.isascii():
        try:
            data.decode("utf-8")
        except UnicodeDecodeError as broken:
            raise pa.ArrowInvalid(_not_utf8(broken)) from broken
    return data


def _are_objects(texts: Sequence[bytes], data: bytes) -> bool:
    """Return whether each string is a line of `data`, and begins like an object."""
    return (
        set(map(_FIRST_BYTE, texts)) == {b"{"}
        and data.count(b"\n") < len(texts)
        and b"\r" not in data
    )


def _readable(kind: Any) -> Any:
    """Return a type with timestamps in place of dates, which Arrow parses from numbers only."""
    import pyarrow as pa
    from pyarrow import types

    if types.is_date32(kind):
        return pa.timestamp("s")
    if types.is_struct(kind):
        return pa.struct([field.with_type(_readable(field.type)) for field in kind])
    if types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_readable(kind.value_type)))
    return kind


def parse_csv(texts: Sequence[bytes], kind: pa.StructType) -> pa.StructArray:
    """Parse lines; their fields are the schema's in its order, and null if empty."""
    import pyarrow as pa
    from pyarrow import csv

    data = b"\n".join(texts)
    if data.count(b"\n") >= len(texts) or b"\r" in data:
        raise pa.ArrowInvalid("must not contain a line break")
    if not all(map(bytes.strip, texts)):
        raise pa.ArrowInvalid("empty")
    table = csv.read_csv(
        pa.BufferReader(data),
        read_options=csv.ReadOptions(
            use_threads=False, column_names=[field.name for field in kind], block_size=len(data) + 1
        ),
        parse_options=csv.ParseOptions(newlines_in_values=False),
        convert_options=csv.ConvertOptions(
            column_types={field.name: field.type for field in kind},
            # Arrow would also take words for null: NA, which is a country, null, nan.
            null_values=[""],
            strings_can_be_null=True,
        ),
    )
    if table.num_rows != len(texts):
        raise pa.ArrowInvalid("more than one line")
    return _struct(table, kind)


def _struct(table: pa.Table, kind: pa.StructType) -> Any:
    import pyarrow as pa

    [batch] = table.combine_chunks().to_batches()
    return pa.StructArray.from_arrays(
        [batch.column(field.name) for field in kind], fields=list(kind)
    )

"""Found records as JSON lines, CSV and Parquet, and JSON lines read back.

The formats are those of `barnabas export`, so its files can be imported here and the other way
around. Spreadsheets take cells that begin with = + - @ for formulas: such cells of a CSV file get
an apostrophe in front.
"""

from __future__ import annotations

import base64
import binascii
import csv
import io
import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

from barnabas.console.records.rows import Headers, Row
from barnabas.console.records.sending import RECORDS_MAX, Draft, SendingError

FORMATS: Final = {"jsonl": "JSON lines", "csv": "CSV", "parquet": "Parquet"}
COLUMNS: Final = (
    "topic",
    "partition",
    "offset",
    "timestamp",
    "timestamp_type",
    "key",
    "value",
    "headers",
)
ROWS_MAX: Final = 100_000
BYTES_MAX: Final = 256 << 20

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


def json_line(topic: str, row: Row) -> str:
    """Return a record as a line of JSON."""
    document = {
        "topic": topic,
        "partition": row.partition,
        "offset": row.offset,
        "timestamp": row.timestamp,
        "timestamp_type": _timestamp_type(row),
        "key": _to_json(row.key),
        "value": _to_json(row.value),
        "headers": [[name, _to_json(value)] for name, value in row.headers],
    }
    return json.dumps(document, ensure_ascii=False) + "\n"


def csv_lines(topic: str, rows: Iterable[Row], *, heading: bool) -> str:
    """Return records as lines of CSV."""
    target = io.StringIO(newline="")
    writer = csv.writer(target)
    if heading:
        writer.writerow(COLUMNS)
    for row in rows:
        headers = [[name, _to_json(value)] for name, value in row.headers]
        writer.writerow(
            (
                safe_cell(topic),
                row.partition,
                row.offset,
                row.timestamp,
                _timestamp_type(row),
                safe_cell(_to_cell(row.key)),
                safe_cell(_to_cell(row.value)),
                safe_cell(json.dumps(headers, ensure_ascii=False)) if headers else "",
            )
        )
    return target.getvalue()


def safe_cell(cell: str) -> str:
    """Return a cell that no spreadsheet computes."""
    return "'" + cell if cell.startswith(_FORMULA) else cell


def _timestamp_type(row: Row) -> int:
    return 0 if row.batch is None else row.batch.timestamp_type


def _to_json(data: bytes | None) -> Any:
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode("ascii")}


def _to_cell(data: bytes | None) -> str:
    if data is None:
        return "\\N"
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return "\\x" + data.hex()
    return "\\x" + data.hex() if text.startswith("\\") else text


def parquet_missing() -> str | None:
    """Return what to install if Parquet cannot be written."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError:
        return "Parquet needs pyarrow, which is not installed: pip install 'barnabas[arrow]'"
    return None


def parquet_file(topic: str, rows: Sequence[Row]) -> bytes:
    """Return a file of the columns that `barnabas export` writes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    header = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
    table = pa.table(
        {
            "topic": pa.array([topic] * len(rows), pa.string()),
            "partition": pa.array([row.partition for row in rows], pa.int32()),
            "offset": pa.array([row.offset for row in rows], pa.int64()),
            "timestamp": pa.array([row.timestamp for row in rows], pa.timestamp("ms", "UTC")),
            "timestamp_type": pa.array([_timestamp_type(row) for row in rows], pa.int8()),
            "key": pa.array([row.key for row in rows], pa.binary()),
            "value": pa.array([row.value for row in rows], pa.binary()),
            "headers": pa.array(
                [[{"key": name, "value": value} for name, value in row.headers] for row in rows],
                pa.list_(header),
            ),
        }
    )
    target = io.BytesIO()
    pq.write_table(table, target, compression="zstd")
    return target.getvalue()


def read_json_lines(text: str, topic: str, *, keep_partition: bool) -> list[Draft]:
    """Return the plan to import lines of JSON; raise SendingError with the line's number."""
    drafts: list[Draft] = []
    # Only line feeds end a line: values may contain the other characters that splitlines takes.
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        if len(drafts) >= RECORDS_MAX:
            raise SendingError(
                f"more than {RECORDS_MAX} records: use barnabas import for larger files"
            )
        try:
            drafts.append(_draft(json.loads(line), topic, number, keep_partition))
        except (ValueError, RecursionError) as failure:
            raise SendingError(f"line {number}: {failure}") from None
    if not drafts:
        raise SendingError("there is no record to import: paste lines of JSON")
    return drafts


def _draft(found: Any, topic: str, number: int, keep_partition: bool) -> Draft:
    if not isinstance(found, dict) or "value" not in found:
        raise ValueError("must be an object with a value")
    pairs = found.get("headers") or []
    if not isinstance(pairs, list):
        raise ValueError("headers must be a list of [name, value]")
    headers = []
    for pair in pairs:
        if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[0], str):
            raise ValueError("headers must be a list of [name, value]")
        headers.append((_utf8(pair[0]), _from_json("header", pair[1])))
    return Draft(
        topic,
        _number("partition", found.get("partition")) if keep_partition else None,
        _from_json("key", found.get("key")),
        _from_json("value", found["value"]),
        tuple(headers),
        _number("timestamp", found.get("timestamp")),
        f"line {number}",
    )


def _number(name: str, found: Any) -> int | None:
    if found is None or found == -1:
        return None
    if type(found) is not int or not 0 <= found < 2**63:
        raise ValueError(f"{name}: must be a whole number of at least 0")
    return found


def _utf8(text: str) -> str:
    text.encode()  # half of a surrogate pair raises, which is a ValueError
    return text


def _from_json(name: str, found: Any) -> bytes | None:
    if found is None:
        return None
    if isinstance(found, str):
        return found.encode()
    if isinstance(found, dict) and list(found) == ["base64"] and isinstance(found["base64"], str):
        try:
            return base64.b64decode(found["base64"], validate=True)
        except binascii.Error:
            raise ValueError(f"{name} is not base64") from None
    raise ValueError(f'{name}: must be one of null, a string, {{"base64": …}}')


__all__ = ["FORMATS", "Headers", "csv_lines", "json_line", "parquet_file", "read_json_lines"]

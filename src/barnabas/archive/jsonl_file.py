"""Records as lines of JSON, one object each, as `barnabas consume --json` prints them.

{"topic": …, "partition": 0, "offset": 7, "timestamp": 1767225600000, "timestamp_type": 0,
 "key": …, "value": …, "headers": [["name", …]]}
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from barnabas.archive.rows import Row, checked_headers, checked_number
from barnabas.archive.text import ArchiveError, from_json, to_json
from barnabas.kernels import ConsumerRecord


class JsonLinesWriter:
    """A file that is appended to by lines."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w", encoding="utf-8", newline="\n")

    def write(self, records: Sequence[ConsumerRecord]) -> None:
        """Append records."""
        self._file.writelines(_line(record) for record in records)

    def close(self) -> None:
        """Finish the file."""
        self._file.close()


def _line(record: ConsumerRecord) -> str:
    document = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "timestamp_type": record.timestamp_type,
        "key": to_json(record.key),
        "value": to_json(record.value),
        "headers": [[name, to_json(value)] for name, value in record.headers],
    }
    return json.dumps(document, ensure_ascii=False) + "\n"


def read_json_lines(path: Path) -> Iterator[Row]:
    """Yield rows; raise ArchiveError, with the line's number, for a line that is not a record."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if line.isspace():
                continue
            try:
                yield _row(json.loads(line))
            except ValueError as failure:
                raise ArchiveError(f"{path} line {number}: {failure}") from failure


def _row(found: Any) -> Row:
    if not isinstance(found, dict) or "value" not in found:
        raise ValueError("must be an object with a value")
    headers = found.get("headers")
    return (
        from_json(found.get("key")),
        from_json(found["value"]),
        checked_headers([] if headers is None else headers),
        checked_number("timestamp", found.get("timestamp")),
        checked_number("partition", found.get("partition")),
    )

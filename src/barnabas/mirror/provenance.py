"""The header that a mirror adds to each record: `barnabas-mirror: CLUSTER_ID:OFFSET`.

It says from which cluster a record came and where it was there. A record that has come through
the target already is not copied back to it, so mirrors may point at each other, or in a ring.
The offset makes translation exact: within a target partition, the offsets of one source only grow.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from barnabas.kernels import ConsumerRecord

HEADER = "barnabas-mirror"

Header = tuple[str, bytes | None]
Row = tuple[bytes | None, bytes | None, Sequence[Header], int]
"""As producers take it: key, value, headers, timestamp."""


class Stamp:
    """What is written into records from `source`, and what is recognised as from `target`."""

    def __init__(self, source: str, target: str) -> None:
        self._mark = source.encode() + b":"
        self._home = target.encode() + b":"

    def rows(self, records: Iterable[ConsumerRecord]) -> list[Row]:
        """Return what to write to the target: all records but those that came from there."""
        mark, home = self._mark, self._home
        rows: list[Row] = []
        for record in records:
            headers: Any = record.headers
            if headers and _has_passed(headers, home):
                continue
            origin = (HEADER, mark + b"%d" % record.offset)
            rows.append((record.key, record.value, (*headers, origin), record.timestamp))
        return rows


def _has_passed(headers: Iterable[Header], home: bytes) -> bool:
    return any(
        name == HEADER and value is not None and value.startswith(home) for name, value in headers
    )


def origin_offset(headers: Sequence[Header], source: str) -> int | None:
    """Return the offset that a record had on a source cluster; None if it is not from there."""
    mark = source.encode() + b":"
    for name, value in reversed(headers):  # the last stamp is the latest
        if name == HEADER and value is not None and value.startswith(mark):
            digits = value[len(mark) :]
            return int(digits) if digits.isdigit() else None
    return None

"""The header that a mirror adds to each record: `barnabas-mirror: CLUSTER_ID:OFFSET`.

It has the cluster that a record was copied from and its offset there. A record that has been on
the target is not copied back to it, so mirrors may point at each other, or form a ring.
The offset makes offset translation exact: within a target partition, offsets of one source only
grow.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from barnabas.kernels import ConsumerRecord

HEADER = "barnabas-mirror"

Header = tuple[str, bytes | None]
Row = tuple[bytes | None, bytes | None, Sequence[Header], int]
"""Key, value, headers, timestamp, as producers take them."""


class Stamp:
    """Adds the header to records of `source`, and recognizes records that came from `target`."""

    def __init__(self, source: str, target: str) -> None:
        self._origin = source.encode() + b":"
        self._target = target.encode() + b":"

    def rows(self, records: Iterable[ConsumerRecord]) -> list[Row]:
        """Return the records for the target: all but those that came from there."""
        origin, target = self._origin, self._target
        rows: list[Row] = []
        for record in records:
            headers: Any = record.headers
            if headers and _came_from(headers, target):
                continue
            header = (HEADER, origin + b"%d" % record.offset)
            rows.append((record.key, record.value, (*headers, header), record.timestamp))
        return rows


def _came_from(headers: Iterable[Header], cluster: bytes) -> bool:
    return any(
        name == HEADER and value is not None and value.startswith(cluster)
        for name, value in headers
    )


def origin_offset(headers: Sequence[Header], source: str) -> int | None:
    """Return the offset that a record had on a source cluster; None if it is not from there."""
    origin = source.encode() + b":"
    for name, value in reversed(headers):  # the last one is the latest
        if name == HEADER and value is not None and value.startswith(origin):
            digits = value[len(origin) :]
            return int(digits) if digits.isdigit() else None
    return None

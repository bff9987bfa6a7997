"""What a Spark query says of itself in the metadata of the offsets that it commits.

    {"spark":{"query":"…","task":3,"batch":17,"at":1763510400000}}

A source says how many batches it has read since it began; a task of an exactly-once sink says
which query it belongs to, and the number of its last batch.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

TEXT_MAX = 1000
"""Characters; brokers allow 4096 bytes by default (offset.metadata.max.bytes)."""


@dataclass(frozen=True, slots=True)
class QueryProgress:
    """A query's last batch."""

    batch: int
    at_ms: int
    began_ms: int | None = None
    """When the query began to read; None for a sink."""
    query: str = ""
    """The id of the query of a sink; empty for a source, which Spark does not tell it."""
    task: int | None = None

    @property
    def is_sink(self) -> bool:
        """Whether it writes: its offsets are numbers of batches."""
        return self.task is not None

    def text(self) -> str:
        """Return the metadata."""
        fields = {
            "query": self.query[:200],
            "task": self.task,
            "batch": self.batch,
            "at": self.at_ms,
            "began": self.began_ms,
        }
        kept = {name: value for name, value in fields.items() if value not in (None, "")}
        return json.dumps({"spark": kept}, separators=(",", ":"))


def read_progress(metadata: str) -> QueryProgress | None:
    """Return what metadata says; None if they are another program's."""
    if not metadata.startswith('{"spark":') or len(metadata) > TEXT_MAX:
        return None
    try:
        found = json.loads(metadata)["spark"]
    except (ValueError, KeyError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    batch, at_ms = _whole(found.get("batch")), _whole(found.get("at"))
    if batch is None or at_ms is None:
        return None
    query = found.get("query", "")
    return QueryProgress(
        batch,
        at_ms,
        _whole(found.get("began")),
        query if isinstance(query, str) else "",
        _whole(found.get("task")),
    )


def _whole(value: object) -> int | None:
    fits = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63
    return value if fits else None  # type: ignore[return-value]

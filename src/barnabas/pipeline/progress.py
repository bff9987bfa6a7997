"""Progress of a pipeline, flow by flow: rows, batches, lag in records and in seconds, state.

It is given three kinds of events, each with the time: reports of queries (Spark's progress), ends
of logs (from brokers), and Spark's messages about flows. It does no IO.

The lag in seconds is how long ago the log ended at a flow's position: the record that it reads next
was written after that. The ends are fetched about once a second, so it may be that much too
long. A flow that has been behind since before the first look is behind by at least that long.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from barnabas.model.errors import BarnabasError
from barnabas.model.ids import TopicPartition
from barnabas.spark.source_offset import parse_source_offset

RATE_MS = 10_000
"""Rows per second are averaged over this time."""

HISTORY_MAX = 3600
"""How many ends are kept: an hour, at one a second."""

_STATES = re.compile(
    r"Flow '?([\w.`-]+?)'? (?:is|has) (QUEUED|STARTING|PLANNING|RUNNING|COMPLETED|FAILED|SKIPPED"
    r"|STOPPED|EXCLUDED|IDLE)",
    re.I,
)


@dataclass(frozen=True, slots=True)
class FlowReport:
    """A flow at one moment; None means unknown or not applicable."""

    name: str
    state: str
    rows: int
    rows_per_second: float
    batches: int
    batch_ms: int | None
    lag: int | None
    behind_s: float | None
    at_least: bool
    state_rows: int | None
    state_bytes: int | None
    watermark: str | None

    def document(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "flow": self.name,
            "state": self.state,
            "rows": self.rows,
            "rows_per_second": round(self.rows_per_second, 1),
            "batches": self.batches,
            "batch_ms": self.batch_ms,
            "lag": self.lag,
            "behind_seconds": None if self.behind_s is None else round(self.behind_s, 1),
            "behind_at_least": self.at_least,
            "state_rows": self.state_rows,
            "state_bytes": self.state_bytes,
            "watermark": self.watermark,
        }


@dataclass(slots=True)
class _Flow:
    name: str
    state: str = "waiting"
    rows: int = 0
    batches: int = 0
    batch_ms: int | None = None
    recent: deque[tuple[float, int]] = field(default_factory=deque)
    positions: dict[TopicPartition, int] = field(default_factory=dict)
    reads_topics: bool = False
    state_rows: int | None = None
    state_bytes: int | None = None
    watermark: str | None = None


class _Ends:
    """The ends of the logs of partitions, over time."""

    def __init__(self) -> None:
        self.now: dict[TopicPartition, int] = {}
        self._times: dict[TopicPartition, list[float]] = {}
        self._offsets: dict[TopicPartition, list[int]] = {}

    def add(self, ends: Mapping[TopicPartition, int], now_ms: float) -> None:
        for partition, end in ends.items():
            self.now[partition] = end
            times = self._times.setdefault(partition, [])
            offsets = self._offsets.setdefault(partition, [])
            if (
                offsets and end < offsets[-1]
            ):  # recreated, or truncated: earlier points are of no use
                times.clear()
                offsets.clear()
            if offsets and offsets[-1] == end and len(offsets) > 1 and offsets[-2] == end:
                times[-1] = now_ms  # a log that does not grow needs two points
                continue
            times.append(now_ms)
            offsets.append(end)
            if len(times) > HISTORY_MAX:
                del times[: HISTORY_MAX // 10], offsets[: HISTORY_MAX // 10]

    def passed(self, partition: TopicPartition, offset: int) -> tuple[float, bool] | None:
        """Return when the end was last at or before an offset; False: before the first look."""
        offsets = self._offsets.get(partition)
        if not offsets:
            return None
        at = bisect_right(offsets, offset)
        return (self._times[partition][at - 1], True) if at else (self._times[partition][0], False)


class Progress:
    """The flows of a pipeline."""

    def __init__(self, now_ms: float) -> None:
        self._began_ms = now_ms
        self._flows: dict[str, _Flow] = {}
        self._ends = _Ends()

    def ends(self, ends: Mapping[TopicPartition, int], now_ms: float) -> None:
        """Record the current ends of logs."""
        self._ends.add(ends, now_ms)

    def begin(self, name: str, positions: Mapping[TopicPartition, int]) -> None:
        """Set where a flow continues, before its first report."""
        flow = self._flow(name)
        flow.reads_topics = True
        flow.positions.update(positions)

    def report(self, report: Mapping[str, Any], now_ms: float) -> None:
        """Record a query's batch."""
        flow = self._flow(short(str(report.get("name") or "query")))
        flow.state = "running"
        rows = int(report.get("numInputRows") or 0)
        flow.rows += rows
        flow.batches += 1
        flow.recent.append((now_ms, rows))
        if rows or flow.batch_ms is None:  # a batch without rows is not representative
            flow.batch_ms = int(report.get("batchDuration") or 0)
        for source in report.get("sources", ()):
            found = _offsets(source.get("endOffset"))
            if found is not None:
                flow.reads_topics = True
                flow.positions |= found
                # Older than our own last look, if there was one meanwhile.
                latest = _offsets(source.get("latestOffset")) or {}
                self._ends.add(
                    {p: end for p, end in latest.items() if end > self._ends.now.get(p, -1)}, now_ms
                )
        operators = report.get("stateOperators") or ()
        if operators:
            flow.state_rows = sum(int(each.get("numRowsTotal") or 0) for each in operators)
            flow.state_bytes = sum(int(each.get("memoryUsedBytes") or 0) for each in operators)
        flow.watermark = (report.get("eventTime") or {}).get("watermark") or flow.watermark

    def event(self, text: str) -> None:
        """Record a message of Spark about a flow."""
        found = flow_state(text)
        if found is not None:
            self._flow(found[0]).state = found[1]

    def done(self, ends: Mapping[TopicPartition, int]) -> None:
        """Record that an update is complete, which has read at least to these ends."""
        for flow in self._flows.values():
            if flow.reads_topics:
                for partition in flow.positions:
                    flow.positions[partition] = max(
                        flow.positions[partition], ends.get(partition, 0)
                    )

    def has_more(self, read: Mapping[TopicPartition, int]) -> bool:
        """Return whether a log has records that a flow has not read; all have read to `read`."""
        for partition, end in self._ends.now.items():
            known = [
                flow.positions[partition]
                for flow in self._flows.values()
                if partition in flow.positions
            ]
            if end > max(min(known, default=0), read.get(partition, 0)):
                return True
        return False

    def flows(self, now_ms: float) -> list[FlowReport]:
        """Return all flows."""
        return [self._reported(flow, now_ms) for flow in self._flows.values()]

    @property
    def now(self) -> Mapping[TopicPartition, int]:
        """The current ends."""
        return self._ends.now

    def _flow(self, name: str) -> _Flow:
        return self._flows.setdefault(name, _Flow(name))

    def _reported(self, flow: _Flow, now_ms: float) -> FlowReport:
        while flow.recent and flow.recent[0][0] < now_ms - RATE_MS:
            flow.recent.popleft()
        span_s = max(1.0, min(RATE_MS, now_ms - self._began_ms) / 1000)
        lag, behind_s, at_least = self._lag(flow, now_ms)
        return FlowReport(
            flow.name,
            flow.state,
            flow.rows,
            sum(rows for _, rows in flow.recent) / span_s,
            flow.batches,
            flow.batch_ms,
            lag,
            behind_s,
            at_least,
            flow.state_rows,
            flow.state_bytes,
            flow.watermark,
        )

    def _lag(self, flow: _Flow, now_ms: float) -> tuple[int | None, float | None, bool]:
        if not flow.reads_topics:
            return None, None, False
        lag, since_ms, known = 0, now_ms, True
        for partition, offset in flow.positions.items():
            waiting = self._ends.now.get(partition, offset) - offset
            if waiting <= 0:
                continue
            lag += waiting
            passed = self._ends.passed(partition, offset)
            if passed is not None and passed[0] <= since_ms:
                since_ms, known = passed
        return lag, (now_ms - since_ms) / 1000 if lag else 0.0, not known


def flow_state(text: str) -> tuple[str, str] | None:
    """Return the flow of a message of Spark, and its state, if it is about one."""
    found = _STATES.search(text)
    return None if found is None else (short(found[1]), found[2].lower())


def short(name: str) -> str:
    """Return a flow's own name, without catalog and database."""
    return name.replace("`", "").rpartition(".")[2]


def _offsets(text: Any) -> dict[TopicPartition, int] | None:
    """Return offsets of our source; None for those of another."""
    stored = text
    if isinstance(text, str):
        try:
            stored = json.loads(text)
        except ValueError:
            return None
    if not isinstance(stored, dict):
        return None
    try:
        positions = parse_source_offset(stored)
    except BarnabasError:
        return None
    return {} if positions is None else dict(positions.offsets)

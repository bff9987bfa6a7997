"""New records as they come: at most some per second, with the number of those left out.

The position after the rows of an event is the event's id; a browser that connects again sends the
last one, and goes on there. So nothing is lost by a connection that breaks; what is left out, is
left out on purpose, and counted.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Final

from barnabas.console.records.asking import TopicAccess
from barnabas.console.records.cursor import Cursor, CursorError, decode_cursor
from barnabas.console.records.decoding import Decoder
from barnabas.console.records.filter_evaluation import Pruning, Test
from barnabas.console.records.rows import Row
from barnabas.console.records.scanning import Wanted, end_of, scan

ROWS_PER_S: Final = 50
WAIT_MS: Final = 500
FETCH_BYTES: Final = 1 << 20
BEHIND_BYTES: Final = 8 << 20
"""Bytes of one round that are looked at; further ones are skipped to the end."""


class RowBudget:
    """How many rows may be shown now: a second's worth at most."""

    def __init__(self, per_s: int = ROWS_PER_S) -> None:
        self._per_s = per_s
        self._left = float(per_s)
        self._at_s: float | None = None

    def allow(self, count: int, now_s: float) -> int:
        """Return how many of some rows may be shown, and take them off."""
        if self._at_s is not None:
            self._left = min(self._per_s, self._left + (now_s - self._at_s) * self._per_s)
        self._at_s = now_s
        allowed = min(count, int(self._left))
        self._left -= allowed
        return allowed


@dataclass(frozen=True, slots=True)
class News:
    """Rows to show, how many are not shown, and where to go on."""

    rows: list[Row]
    left_out: int
    """Records that passed the filter and are not shown, because there are too many a second."""
    skipped: int
    """Offsets that were not even read, because the topic is faster than this stream."""
    position: str


class Tail:
    """Follows a topic from its end, or from a position."""

    def __init__(
        self,
        access: TopicAccess,
        partition: int | None,
        key: Decoder,
        value: Decoder,
        test: Test | None,
        pruning: Pruning,
        executor: Executor,
        now_s: Callable[[], float],
        rest: Callable[[], None],
    ) -> None:
        self._access = access
        self._partition = partition
        self._key = key
        self._value = value
        self._test = test
        self._pruning = pruning
        self._executor = executor
        self._now_s = now_s
        self._rest = rest
        self._budget = RowBudget()

    async def news(self, last_id: str = "") -> AsyncIterator[News]:
        """Yield what is new, twice a second at most; empty news say that the stream lives."""
        positions = await self._begin(last_id)
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            fetched = await self._access.fetch_many(positions, FETCH_BYTES, WAIT_MS)
            rows: list[Row] = []
            skipped = 0
            for partition, found in fetched.items():
                span = end_of(found.data)
                if span is None:
                    if positions[partition] < found.log_start_offset:
                        positions[partition] = found.log_start_offset
                    continue
                wanted = Wanted(
                    partition,
                    positions[partition],
                    span[1],
                    self._key,
                    self._value,
                    self._test,
                    self._pruning,
                )
                scanned = await loop.run_in_executor(
                    self._executor, scan, [found.data], wanted, self._rest
                )
                rows += scanned.rows
                positions[partition] = max(positions[partition], span[1])
                behind = found.high_watermark - positions[partition]
                average = len(found.data) // max(span[1] - span[0], 1) + 1
                if behind * average > BEHIND_BYTES:
                    # A screen shows fifty rows a second: what is new is worth more than all.
                    skipped += behind
                    positions[partition] = found.high_watermark
            rows.sort(key=lambda row: (row.timestamp, row.partition, row.offset))
            allowed = self._budget.allow(len(rows), self._now_s())
            left_out = len(rows) - allowed
            shown = rows[left_out:]
            yield News(shown, left_out, skipped, _position(positions))
            if not fetched:
                await self._access.topic(refresh=True)
            pause = began + WAIT_MS / 1000 - loop.time()
            if pause > 0:
                await asyncio.sleep(pause)

    async def _begin(self, last_id: str) -> dict[int, int]:
        topic = await self._access.topic()
        chosen = sorted(topic.leaders)
        if self._partition is not None:
            chosen = [each for each in chosen if each == self._partition]
        if self._pruning.partitions is not None:
            chosen = [each for each in chosen if each in self._pruning.partitions]
        spans = await self._access.spans(chosen)
        known: dict[int, tuple[int, int]] = {}
        if last_id:
            try:
                known = decode_cursor(last_id).spans
            except CursorError:
                known = {}
        return {
            each: min(max(known[each][0], first), end) if each in known else end
            for each, (first, end) in spans.items()
        }


def _position(positions: dict[int, int]) -> str:
    return Cursor({each: (offset, offset) for each, offset in positions.items()}).encode()

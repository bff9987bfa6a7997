"""A page of records: the search runs for a bounded time, and says how far it came."""

from __future__ import annotations

import asyncio
import base64
import time
import uuid
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Final

from barnabas.console.records.asking import Fetched, TopicAccess
from barnabas.console.records.cursor import Cursor, decode_cursor
from barnabas.console.records.decoding import Decoder
from barnabas.console.records.filter_evaluation import ALL, Pruning, Test, compile_filter, prune
from barnabas.console.records.filter_language import And, Compare, Field, Filter, Text
from barnabas.console.records.query import Query, Start
from barnabas.console.records.rows import Outcome, Row
from barnabas.console.records.scanning import Scanned, Wanted, end_of, scan
from barnabas.console.records.search import WINDOW_BYTES, Search, Window, merge_holes
from barnabas.kernels import murmur2
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError

SLICE_S: Final = 0.8
"""How long one request searches; the page goes on with the next."""
BROWSE_BYTES: Final = 256 * 1024
FIRST_OFFSETS: Final = 500
"""Offsets of the first window of a search; later ones adapt to the size of records."""
AT_ONCE: Final = 8
"""Partitions that are read at the same time, if all of them are needed for the next row."""
WORK_S: Final = 0.00025
REST_S: Final = 0.0002
_NARROWINGS: Final = 8
_FETCHES: Final = 64
"""Fetches of one window; more mean that the log changes faster than it can be read."""


@dataclass(slots=True)
class Page:
    """Rows, how far the search came, and what it left out."""

    rows: list[Row]
    search: Search
    cursor: Cursor | None
    finished: bool
    """Whether everything was searched."""
    notes: list[str] = field(default_factory=list)
    """What the reader should know: what was not searched, and why."""


class Rests:
    """Gives the GIL back every quarter of a millisecond: the broker's loop must not wait for it."""

    def __init__(self) -> None:
        self._began = time.perf_counter()

    def __call__(self) -> None:
        if time.perf_counter() - self._began >= WORK_S:
            time.sleep(REST_S)
            self._began = time.perf_counter()


def partition_of(key: bytes, count: int) -> int:
    """Return the partition that producers with Kafka's default partitioner send a key to."""
    return (murmur2(key) & 0x7FFFFFFF) % count


def key_bytes(text: str, how: str) -> bytes | None:
    """Return the bytes of a key that is written as a decoder shows it; None if it could be several.

    A whole number, for instance, may have four bytes or eight.
    """
    try:
        match how:
            case "auto" | "text" | "json":
                return text.encode()
            case "hex":
                return bytes.fromhex(text)
            case "base64":
                return base64.b64decode(text, validate=True)
            case "uuid":
                return uuid.UUID(text).bytes
    except ValueError:
        pass
    return None


class Browsing:
    """Runs the queries of one topic for one visitor."""

    def __init__(
        self,
        access: TopicAccess,
        query: Query,
        key: Decoder,
        value: Decoder,
        executor: Executor,
        now_ms: Callable[[], int],
    ) -> None:
        self._access = access
        self._query = query
        self._key = key
        self._value = value
        self._executor = executor
        self._now_ms = now_ms
        self._test: Test | None = None
        self._pruning: Pruning = ALL
        self._notes: list[str] = []
        self._undecided: dict[tuple[int, int], Fetched] = {}

    async def page(
        self, *, limit: int | None = None, slice_s: float = SLICE_S, everything: bool = True
    ) -> Page:
        """Return the next rows; `everything` has markers and holes among them, without a filter."""
        query = self._query
        limit = query.limit if limit is None else limit
        self._compile()
        search = await self._search(limit)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + slice_s
        # What was found is shown soon; the next slice goes on.
        early = loop.time() + slice_s / 4
        rows: list[Row] = []
        progressed = False
        everything = everything and not query.filtered
        while True:
            rows += search.take(limit - len(rows))
            if len(rows) >= limit or search.finished:
                break
            found_some = bool(rows) or search.has_rows
            if progressed and loop.time() >= (early if found_some else deadline):
                break
            windows = search.next_windows(AT_ONCE)
            if not windows:
                break
            await asyncio.gather(
                *(self._read(search, window, limit, everything) for window in windows)
            )
            progressed = True
        rows += search.take(limit - len(rows), all_found=True)
        await self.decide(rows)
        cursor = search.cursor()
        return Page(
            merge_holes(rows) if everything else rows,
            search,
            cursor,
            cursor is None,
            self._say(search),
        )

    def _compile(self) -> None:
        query = self._query
        now_ms = self._now_ms()
        tree = query.tree()
        if query.start is Start.KEY:
            same: Filter = Compare(Field("key"), "=", Text(query.key))
            tree = same if tree is None else And((same, tree))
        self._test = compile_filter(tree, now_ms)
        self._pruning = prune(tree, now_ms)

    async def _search(self, limit: int) -> Search:
        query = self._query
        before = decode_cursor(query.after) if query.after else None
        topic = await self._access.topic()
        chosen = sorted(topic.leaders)
        if query.partition is not None:
            chosen = [each for each in chosen if each == query.partition]
            if not chosen:
                self._notes.append(
                    f"There is no partition {query.partition}: the topic has "
                    f"{len(topic.leaders)}, from 0 to {len(topic.leaders) - 1}."
                )
        elif query.start is Start.KEY:
            key = key_bytes(query.key, query.key_decoder)
            number = 0 if key is None else partition_of(key, max(len(chosen), 1))
            if key is None:
                self._notes.append(
                    "All partitions are searched: which bytes this key has is not known, and so "
                    "not where it hashes to."
                )
            else:
                chosen = [number]
                self._notes.append(
                    f"Only partition {number} is searched: producers with Kafka's default "
                    "partitioner (murmur2) send this key there. Other partitioners may not: use "
                    "the filter key = … to search everywhere."
                )
        if self._pruning.partitions is not None:
            chosen = [each for each in chosen if each in self._pruning.partitions]
        offline = [each for each in chosen if topic.leaders.get(each, -1) < 0]
        if offline:
            self._notes.append(f"Not searched, because they have no leader: {_listed(offline)}.")
        width = limit if not query.filtered else FIRST_OFFSETS
        window_bytes = WINDOW_BYTES if query.filtered else BROWSE_BYTES
        spans = await self._access.spans(chosen)
        missing = [each for each in chosen if each not in spans and each not in offline]
        if missing:
            self._notes.append(f"Not searched, because of errors: {_listed(missing)}.")
        if before is not None:
            # What retention has removed since is gone; what came since is for a new search.
            spans = {
                each: (max(low, spans[each][0]), min(high, spans[each][1]))
                for each, (low, high) in before.spans.items()
                if each in spans
            }
        else:
            spans = await self._narrow(spans)
        return Search(
            {each: span for each, span in spans.items() if span[0] < span[1]},
            forward=query.start.forward,
            width=width,
            window_bytes=window_bytes,
            before=before,
        )

    async def _narrow(self, spans: dict[int, tuple[int, int]]) -> dict[int, tuple[int, int]]:
        """Leave out the offsets that the query excludes."""
        query, pruning = self._query, self._pruning
        earliest = pruning.timestamp_min
        if query.start is Start.TIME:
            earliest = max(earliest, query.time_ms(self._now_ms()))
        low = pruning.offset_min
        if query.start is Start.OFFSET:
            low = max(low, query.offset)
        high = min(pruning.offset_max, 2**63 - 2) + 1
        narrowed = {
            each: (max(first, low), min(last, high)) for each, (first, last) in spans.items()
        }
        if earliest > 0:
            starts = await self._access.offsets(narrowed, earliest)
            narrowed = {
                each: (max(first, starts[each]) if starts.get(each, -1) >= 0 else last, last)
                for each, (first, last) in narrowed.items()
            }
        if pruning.timestamp_max < 2**63 - 1 and pruning.timestamp_max >= -1:
            ends = await self._access.offsets(narrowed, pruning.timestamp_max + 1)
            cut = {each: end for each, end in ends.items() if end >= 0}
            if any(end < narrowed[each][1] for each, end in cut.items()):
                self._notes.append(
                    "Searched up to the first record that is later than the filter allows; "
                    "records that were written after it with an earlier time are not looked at."
                )
            narrowed = {
                each: (first, min(last, cut.get(each, last)))
                for each, (first, last) in narrowed.items()
            }
        return narrowed

    async def _read(self, search: Search, window: Window, limit: int, everything: bool) -> None:
        """Read one window, and give what was found to the search."""
        forward = search.forward
        max_bytes = WINDOW_BYTES if self._query.filtered else BROWSE_BYTES
        pieces: list[memoryview] = []
        at = window.low
        narrowed = 0
        stuck = True
        damaged = False
        began: int | None = None
        for _ in range(_FETCHES):
            try:
                fetched = await self._access.fetch(window.partition, at, max_bytes)
            except RequestError as failure:
                if failure.code is not ErrorCode.OFFSET_OUT_OF_RANGE:
                    raise
                self._notes.append(
                    f"Partition {window.partition} was not searched from offset {at} on: its "
                    "records were removed meanwhile."
                )
                search.give_up(window)
                return
            span = end_of(fetched.data)
            if span is None:
                damaged = len(fetched.data) > 0
                break
            first, following = span
            if following <= at:
                break
            stuck = False
            if not pieces:
                began = first
            pieces.append(fetched.data)
            at = following
            if forward or at >= window.high:
                break
            covered = following - max(first, window.low)
            if len(pieces) == 1 and covered < window.high - at and narrowed < _NARROWINGS:
                # Records are larger than expected: read the end of the window, not all of it.
                narrowed += 1
                window = search.narrowed(window, covered)
                pieces.clear()
                at = window.low
        if began is not None and not forward:
            window = search.widened(window, began)
        wanted = Wanted(
            window.partition,
            window.low,
            window.high,
            self._key,
            self._value,
            self._test,
            self._pruning,
            everything,
            max(limit, 1),
            forward,
        )
        loop = asyncio.get_running_loop()
        found: Scanned = await loop.run_in_executor(self._executor, scan, pieces, wanted, Rests())
        if damaged:
            found.unreadable += 1
        search.scanned(window, found)
        if stuck and forward:
            search.give_up(window)

    async def decide(self, rows: list[Row]) -> None:
        """Find out what became of the transactions of rows."""
        for row in rows:
            batch = row.batch
            if not row.is_record or batch is None or not batch.is_transactional:
                continue
            place = row.partition, batch.base_offset
            fetched = self._undecided.get(place)
            if fetched is None:
                try:
                    fetched = await self._access.fetch(row.partition, row.offset, 1, committed=True)
                except RequestError:
                    continue  # removed meanwhile: what was read is shown without it
                self._undecided[place] = fetched
            if row.offset >= fetched.last_stable_offset:
                row.outcome = Outcome.OPEN
            elif _skipped(fetched, row) or any(
                producer == batch.producer_id and first <= row.offset
                for producer, first in fetched.aborted
            ):
                row.outcome = Outcome.ABORTED
            else:
                row.outcome = Outcome.COMMITTED

    def _say(self, search: Search) -> list[str]:
        notes = list(self._notes)
        if search.unreadable:
            notes.append(
                f"{search.unreadable} batches could not be read, so nothing in them was searched."
            )
        return notes


def _skipped(fetched: Fetched, row: Row) -> bool:
    """Return whether the broker left a row out for readers of committed records.

    It skips aborted batches, markers and empty ones where a response would begin with them.
    """
    span = end_of(fetched.data)
    return span is None or span[0] > row.offset


def _listed(partitions: list[int]) -> str:
    shown = ", ".join(map(str, partitions[:20]))
    more = f" and {len(partitions) - 20} more" if len(partitions) > 20 else ""
    return f"partitions {shown}{more}"

"""Searches: every record once, in the order of time, whatever the windows."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.console.records.cursor import Cursor, decode_cursor
from barnabas.console.records.rows import Kind, Row
from barnabas.console.records.scanning import Scanned
from barnabas.console.records.search import Search, Window, merge_holes

LOGS = st.lists(st.lists(st.integers(0, 1000), max_size=40).map(sorted), min_size=1, max_size=4)
"""The times of the records of some partitions, in order."""


def row(partition: int, offset: int, time: int) -> Row:
    return Row(Kind.RECORD, partition, offset, time, offset, value=b"v")


def read(logs: list[list[int]], window: Window, passing: int) -> Scanned:
    times = logs[window.partition]
    found = [
        row(window.partition, offset, times[offset])
        for offset in range(window.low, window.high)
        if times[offset] % passing == 0
    ]
    seen = times[window.low : window.high]
    return Scanned(
        found, window.low, window.high, min(seen, default=None), max(seen, default=None),
        len(seen), 100 * len(seen),
    )  # fmt: skip


@settings(max_examples=200)
@given(
    LOGS,
    st.booleans(),
    st.integers(1, 7),
    st.integers(1, 20),
    st.integers(1, 3),
    st.integers(100, 2000),
    st.data(),
)
def test_pages_have_every_record_once_in_order(
    logs: list[list[int]],
    forward: bool,
    limit: int,
    width: int,
    passing: int,
    window_bytes: int,
    data: st.DataObject,
) -> None:
    spans = {each: (0, len(times)) for each, times in enumerate(logs)}
    seen: list[Row] = []
    cursor: Cursor | None = None
    exact = True
    for _ in range(1000):
        search = Search(
            spans, forward=forward, width=width, window_bytes=window_bytes, before=cursor
        )
        page: list[Row] = []
        patience = data.draw(st.integers(1, 8))
        while len(page) < limit:
            page += search.take(limit - len(page))
            window = search.next_window()
            if len(page) >= limit or window is None:
                break
            if not patience:
                exact = False  # the time is over: what was found is given out
                break
            patience -= 1
            if forward:
                window = window._replace(high=min(window.high, window.low + width))
            search.scanned(window, read(logs, window, passing))
        page += search.take(limit - len(page), all_found=True)
        seen += page
        cursor = search.cursor()
        if cursor is None:
            break
        cursor = decode_cursor(cursor.encode())
        spans = cursor.spans
    assert cursor is None
    expected = sorted(
        (each, offset)
        for each, times in enumerate(logs)
        for offset, time in enumerate(times)
        if time % passing == 0
    )
    assert sorted((each.partition, each.offset) for each in seen) == expected
    for partition in range(len(logs)):
        offsets = [each.offset for each in seen if each.partition == partition]
        assert offsets == sorted(offsets, reverse=not forward)
    if exact:
        times = [each.timestamp for each in seen]
        assert times == sorted(times, reverse=not forward)


def test_says_how_far_it_came() -> None:
    search = Search({0: (0, 100), 1: (0, 50)}, width=10)
    first = search.next_window()
    assert first == Window(0, 90, 100)
    search.scanned(first, Scanned([], 90, 100, 900, 990, 10, 5000))
    assert search.until_ms == -1  # nothing of partition 1 was read
    second = search.next_window()
    assert second == Window(1, 40, 50)
    search.scanned(second, Scanned([], 40, 50, 950, 990, 10, 5000))
    assert search.until_ms == 950
    assert (search.left, search.size_left) == (130, 65_000)
    third = search.next_window()
    assert third is not None
    assert third.partition == 1  # the one that is behind


def test_holes_that_windows_have_cut_are_one() -> None:
    holes = [
        Row(Kind.HOLE, 0, 5, 1, 9),
        Row(Kind.HOLE, 0, 0, 1, 4),
        Row(Kind.HOLE, 1, 0, 1, 4),
    ]
    merged = merge_holes(holes)
    assert [(each.partition, each.offset, each.last_offset) for each in merged] == [
        (0, 0, 9),
        (1, 0, 4),
    ]

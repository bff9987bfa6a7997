"""Searches over a real log: bounded, complete, and honest about what they left out."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from tests.unit.console.records.putting import put
from tests.unit.console.site import Site

from barnabas.console.records.asking import TopicAccess
from barnabas.console.records.browsing import Browsing, Page, partition_of
from barnabas.console.records.decoding import Decoder
from barnabas.console.records.query import Query, Start

NOW_MS = 10_000_000


@pytest.fixture(scope="module")
def topic(site: Site) -> str:
    site.create_topic("browsed", 2)
    for start in range(0, 2000, 100):
        for partition in (0, 1):
            rows = [
                (start + each, b"k%d" % each, b"%d" % (start + each) + b"." * 500, ())
                for each in range(100)
            ]
            put(site, "browsed", rows, partition, codec="zstd" if start % 200 else "none")
    return "browsed"


def search(site: Site, topic: str, query: Query, **more) -> Page:
    decoder = Decoder(topic, "value")
    access = TopicAccess(site.door, site.door.anonymous("127.0.0.1"), topic)

    async def run() -> Page:
        with ThreadPoolExecutor(1) as executor:
            browsing = Browsing(access, query, decoder, decoder, executor, lambda: NOW_MS)
            return await browsing.page(**more)

    return site.run(run())


def test_a_slice_without_time_still_makes_progress(site: Site, topic: str) -> None:
    query = Query(text="value ~ '^1000[.]'")
    found: list[int] = []
    pages = 0
    before = None
    while True:
        page = search(site, topic, query, slice_s=0.0)
        pages += 1
        found += [row.offset for row in page.rows]
        if page.cursor is None:
            break
        assert before is None or page.search.left < before
        before = page.search.left
        query = replace(query, after=page.cursor.encode())
    assert found == [1000, 1000]
    assert pages > 1
    assert page.search.records >= 4000


def test_the_newest_are_found_first_without_reading_the_rest(site: Site, topic: str) -> None:
    page = search(site, topic, Query(text="'1999.'"), limit=2)
    assert [row.offset for row in page.rows] == [1999, 1999]
    assert page.cursor is not None
    assert page.search.left > 0


def test_no_batch_is_read_twice(site: Site) -> None:
    site.create_topic("large-batches")
    for start in range(0, 40_000, 5000):
        rows = [(start + each, None, b"%d" % each + b"." * 180, ()) for each in range(5000)]
        put(site, "large-batches", rows)
    query = Query(text="'nothing like this'")
    while True:
        page = search(site, "large-batches", query)
        if page.cursor is None:
            break
        query = replace(query, after=page.cursor.encode())
    assert page.search.records == 40_000
    assert page.search.size < 9_000_000


@pytest.mark.parametrize("forward", [False, True])
def test_all_pages_have_all_records(site: Site, topic: str, forward: bool) -> None:
    query = Query(start=Start.OLDEST if forward else Start.NEWEST, limit=300)
    seen: list[tuple[int, int, int]] = []
    while True:
        page = search(site, topic, query)
        seen += [(row.timestamp, row.partition, row.offset) for row in page.rows]
        if page.cursor is None:
            break
        query = replace(query, after=page.cursor.encode())
    assert len(seen) == 4000
    assert len(set(seen)) == 4000
    times = [time for time, _, _ in seen]
    assert times == sorted(times, reverse=not forward)


def test_what_was_not_searched_is_said(site: Site, topic: str) -> None:
    page = search(site, topic, Query(partition=7))
    assert "There is no partition 7" in page.notes[0]
    page = search(site, topic, Query(start=Start.KEY, key="k5"))
    assert f"Only partition {partition_of(b'k5', 2)}" in page.notes[0]
    assert {row.partition for row in page.rows} == {partition_of(b"k5", 2)}
    assert len(page.rows) == 20
    page = search(site, topic, Query(text="timestamp < 500"))
    assert "not looked at" in page.notes[0]
    assert [row.offset for row in page.rows][:2] == [499, 499]


def test_times_and_offsets_bound_what_is_read(site: Site, topic: str) -> None:
    page = search(site, topic, Query(text="timestamp >= 1990", limit=500))
    assert len(page.rows) == 20
    assert page.search.records <= 300
    page = search(site, topic, Query(text="offset in (5) or offset = 7 and partition = 0"))
    assert page.finished
    page = search(site, topic, Query(text="offset < 3 and partition = 1"))
    assert [(row.partition, row.offset) for row in page.rows] == [(1, 2), (1, 1), (1, 0)]
    assert page.search.records <= 100

"""New records as they come."""

from __future__ import annotations

import asyncio
import gc
import re

import pytest
from tests.unit.broker.serving import TIMESTAMP
from tests.unit.console.records.pages.checking import check, rows_of
from tests.unit.console.records.putting import put
from tests.unit.console.site import Site

from barnabas.console.records.asking import TopicAccess
from barnabas.console.records.browsing import Rests
from barnabas.console.records.decoding import Decoder
from barnabas.console.records.filter_evaluation import ALL
from barnabas.console.records.pages import live as live_pages
from barnabas.console.records.tailing import News, Tail
from barnabas.console.records.work import Work
from barnabas.console.session import Session


def test_live_rows_come_and_go_on_after_a_break(site: Site, topic: str) -> None:
    put(site, topic, rows_of(3))
    page = check(site.get(f"/topics/{topic}/records/live"))
    assert f'hx-sse:connect="/topics/{topic}/records/events' in page

    async def read(last_id: str, wanted: int) -> list[News]:
        access = TopicAccess(site.door, site.door.anonymous("127.0.0.1"), topic)
        decoder = Decoder(topic, "value")
        tail = Tail(
            access, None, decoder, decoder, None, ALL, Work().executor,
            asyncio.get_running_loop().time, Rests(),
        )  # fmt: skip
        found: list[News] = []
        async for news in tail.news(last_id):
            found.append(news)
            if sum(len(each.rows) + each.left_out for each in found) >= wanted:
                return found
        return found

    first = site.run(read("", 0))
    assert first[-1].rows == []
    put(site, topic, rows_of(4, 3))
    second = site.run(read(first[-1].position, 4))
    assert [row.offset for news in second for row in news.rows] == [3, 4, 5, 6]
    put(site, topic, rows_of(80, 7))
    third = site.run(read(second[-1].position, 80))
    assert sum(len(news.rows) for news in third) <= 51
    assert sum(news.left_out for news in third) >= 29


def test_the_stream_of_events(site: Site, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_pages, "STREAM_S", 0.0)
    first = site.get(f"/topics/{topic}/records/events")
    assert first.headers["content-type"].startswith("text/event-stream")
    found = re.match(r"id: (\S+)\n", first.text)
    assert found is not None
    put(site, topic, [(TIMESTAMP, b"k", "<script>\n\u2028</script>".encode(), ())])
    again = site.get(f"/topics/{topic}/records/events", **{"last-event-id": found[1]})
    assert "&lt;script&gt;" in check(again)
    assert all(line.startswith(("id: ", "data: ")) for line in again.text.split("\n") if line)
    assert site.run(_streams(site)) == 0


async def _streams(site: Site) -> int:
    return sum(each.streams for each in gc.get_objects() if isinstance(each, Session))

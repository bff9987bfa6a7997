"""Live pages: streams of their changing part, with limits and an end."""

from __future__ import annotations

import re
from typing import cast

import pytest
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from tests.unit.console.site import Site, text_of

from barnabas.console import live
from barnabas.console.context import Context
from barnabas.console.session import Session


def test_a_stream_has_the_live_part_and_nothing_around_it(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "STREAM_S", 0.0)
    answer = site.get("/transactions?live=yes")
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["cache-control"] == "no-store"
    assert answer.text.endswith("\n\n")
    assert all(line.startswith("data:") for line in answer.text.strip().split("\n"))
    assert "No transaction is open." in answer.text
    assert "<html" not in answer.text


def test_what_has_not_changed_is_not_sent_again(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "STREAM_S", 0.05)
    site.create_topic("first-of-live")
    looked: list[str] = []

    async def page(request: Request) -> Response:
        looked.append("")
        return Response("the same" if len(looked) < 3 else f"another {len(looked)}")

    answer = site.run(_through(page, session_of(site)))
    assert len(looked) > 2
    assert answer.count("the same") == 1
    assert "another 3" in answer


def session_of(site: Site) -> Session:
    """Return a session that no browser has."""
    return Session("", "", site.door.anonymous("127.0.0.1"), site.client(), 0.0, 0.0)


async def _through(page: live.Page, session: Session) -> str:
    """Return what the stream of a page sends until it ends."""

    class OfOneSession:
        def session(self, request: Request) -> Session:
            return session

    scope = {"type": "http", "query_string": b"live=yes", "headers": [], "path": "/"}
    streamed = live.lively(cast(Context, OfOneSession()), page, every_s=0.001)
    answer = await streamed(Request(scope))
    assert isinstance(answer, StreamingResponse)
    text = "".join([str(each) async for each in answer.body_iterator])
    assert session.streams == 0
    return text


def test_a_session_has_so_many_streams(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "STREAMS_MAX", 0)
    answer = site.get("/groups?live=yes")
    assert answer.status_code == 429
    assert "close one of them" in answer.text


@pytest.mark.parametrize("path", ["/topics/absent?live=yes", "/topics/absent/records/events"])
def test_a_stream_that_cannot_begin_is_a_part_of_its_page(site: Site, path: str) -> None:
    answer = site.get(path)
    assert answer.status_code == 404
    assert answer.text.startswith('<div class="finding bad" role="alert"><p>')
    assert "absent" in answer.text
    assert "<main" not in answer.text


def test_updates_are_paused_by_a_link(site: Site) -> None:
    page = site.page("/groups?q=a%22b")
    [address] = re.findall(r'hx-sse:connect="([^"]*)"', page)
    assert address == "/groups?q=a%22b&amp;live=yes"
    assert 'href="/groups?q=a%22b&amp;paused=yes">Pause' in page
    paused = site.page("/groups?q=a%22b&paused=yes")
    assert "hx-sse:connect" not in paused
    assert "Updates are paused. Go on" in text_of(paused)
    assert 'href="/groups?q=a%22b">Go on' in paused


def test_a_stream_ends_with_its_session(site: Site) -> None:
    session = session_of(site)
    looked: list[str] = []

    async def page(request: Request) -> Response:
        looked.append("")
        session.ended = True
        return Response("once")

    assert site.run(_through(page, session)) == "data: once\n\n"
    assert looked == [""]

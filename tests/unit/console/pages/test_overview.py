"""The overview, its live part and its numbers."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.console.site import Site, text_of

from barnabas.console.context import Context
from barnabas.console.pages import overview


def test_a_healthy_cluster_says_so(site: Site) -> None:
    site.create_topic("healthy", 2)
    text = text_of(site.page("/"))
    assert "Nothing is wrong: " in text
    assert "all with a leader" in text
    assert "Controller broker 0" in text
    [finding] = site.get("/health.json").json()["findings"]
    assert finding["level"] == "good"


def test_the_last_hour_has_a_sample_per_look(site: Site) -> None:
    site.create_topic("counted")
    site.run(site.window.look())
    before = len(site.get("/history.json").json()["time"])
    site.produce("counted", *"abcde")
    site.run(site.window.look())
    history = site.get("/history.json").json()
    assert len(history["time"]) == before + 1
    assert all(len(history[name]) == before + 1 for name in overview.SERIES)
    assert history["messages_in"][-1] > 0
    assert history["requests"][-1] > 0
    assert history["bytes_in"][-1] is None or history["bytes_in"][-1] >= 0
    assert "Messages in, per second" in site.page("/")


def test_the_live_part_is_an_event_stream_with_a_limit(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = site.run(_first_event(site))
    assert seen.startswith("data: <h2>Health</h2>\n")
    assert seen.endswith("\n\n")
    assert all(line.startswith("data: ") for line in seen.strip().split("\n"))
    monkeypatch.setattr(overview, "STREAMS_MAX", 0)
    assert site.get("/live").status_code == 429


async def _first_event(site: Site) -> str:
    """Return the first event; the stream is closed afterwards, and no longer counted."""
    found: list[str] = []
    original = overview.events

    async def events(context: Context, request: Any, session: Any) -> Any:
        stream: Any = original(context, request, session)
        async for event in stream:
            found.append(event)
            break
        await stream.aclose()
        assert session.streams == 0
        yield found[0]

    overview.events = events
    try:
        answer = await site.browser.get("/live")
    finally:
        overview.events = original
    assert answer.headers["content-type"].startswith("text/event-stream")
    return found[0]

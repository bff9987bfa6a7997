"""The overview, its live part and its numbers."""

from __future__ import annotations

import pytest
from tests.unit.console.site import Site, text_of

from barnabas.console import live
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


def test_its_live_part_is_streamed(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "STREAM_S", 0.0)
    answer = site.get("/?live=yes")
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.text.startswith("data: <h2>Health</h2>\n")

"""The overview, its live part and its numbers."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.broker.serving import Serving
from tests.unit.console.site import Site, text_of

from barnabas.aio import AIOKafkaConsumer
from barnabas.cli import console_part
from barnabas.console import live
from barnabas.console.pages import overview
from barnabas.model.ids import TopicPartition


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


def test_a_group_whose_members_are_behind_is_told(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console_part, "BEHIND_S", 0.0)
    site.create_topic("followed")
    site.commit("empty", "followed", 0)
    assert site.run(site.window.behind()) == []
    consumer = site.run(_joined(site.serving))
    try:
        behind = site.run(site.window.behind())
        assert [name for name, _ in behind] == ["late"]
        assert "1 group far behind: late" in text_of(site.page("/"))
        assert 'href="/groups/late"' in site.page("/")
    finally:
        site.run(consumer.stop())


async def _joined(serving: Serving) -> Any:
    host, port = serving.address
    consumer = AIOKafkaConsumer(
        "followed", bootstrap_servers=f"{host}:{port}", group_id="late", enable_auto_commit=False
    )
    await consumer.start()
    await consumer.commit({TopicPartition("followed", 0): 0})
    return consumer

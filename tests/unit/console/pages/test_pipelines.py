"""Spark queries that commit to groups: sources with lag, sinks with batches."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.unit.console.site import ADMIN, SECURED, Site, text_of

from barnabas.admin.group_offsets import commit_offsets
from barnabas.console.pages import pipelines
from barnabas.model.ids import TopicPartition
from barnabas.model.query_progress import QueryProgress
from barnabas.structs import OffsetAndMetadata

SOURCE = QueryProgress(17, 1_763_510_400_000, 1_763_510_000_000)
SINK = QueryProgress(4, 1_763_510_300_000, None, "query <b>", 3)


def commit(site: Site, group: str, offset: int, metadata: str) -> None:
    """Commit an offset as a query does."""
    offsets = {TopicPartition("orders", 0): OffsetAndMetadata(offset, metadata, -1)}
    outcomes = site.run(commit_offsets(site.client(ADMIN), group, offsets))
    assert list(outcomes.values()) == [None]


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A broker with a source, a sink and a group of something else."""
    with Site(tmp_path_factory.mktemp("data"), SECURED) as running:
        running.create_topic("orders")
        running.produce("orders", *"abcdefghij")
        commit(running, "by-spark", 4, SOURCE.text())
        commit(running, "sunk", 4, SINK.text())
        commit(running, "by-hand", 4, "notes")
        running.log_in("admin", "admin-secret")
        yield running
        running.serving.lines.clear()


def test_sources_have_batches_and_lag_and_sinks_their_query(read: Site) -> None:
    rows = read.get("/pipelines.json").json()["rows"]
    assert [row["name"] for row in rows] == ["by-spark", "sunk"], "the latest batch first"
    source, sink = rows
    assert (source["kind"], source["batches"], source["lag"]) == ("source", 17, 6)
    assert source["began_ms"] == SOURCE.began_ms
    assert (sink["kind"], sink["query"], sink["batches"]) == ("sink, task 3", "query <b>", 4)
    assert sink["lag"] is None
    assert source["topics"] == "orders"
    page = read.page("/pipelines")
    assert "<b>" not in page.partition("<main")[2]
    assert 'href="/groups/by-spark"' in page
    assert [row["name"] for row in read.get("/pipelines.json?q=SUNK").json()["rows"]] == ["sunk"]


def test_how_fast_a_source_reads_is_known_after_two_looks(
    read: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    from barnabas.console import rates

    monkeypatch.setattr(rates, "APART_S", 0.0)
    read.get("/pipelines.json")
    commit(read, "by-spark", 9, SOURCE.text())
    source = read.get("/pipelines.json?q=by-spark").json()["rows"][0]
    assert source["lag"] == 1
    assert source["rate"] > 0
    assert source["trend"].startswith("falls by")
    commit(read, "by-spark", 4, SOURCE.text())


def test_more_groups_than_are_looked_at_is_said(
    read: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipelines, "GROUPS_MAX", 1)
    text = text_of(read.page("/pipelines"))
    assert "Only the first 1 of 3 groups without members were looked at" in text


def test_a_user_without_rights_sees_no_query(read: Site) -> None:
    browser = read.browser
    read.browser = read.new_browser()
    try:
        read.log_in("alice", "alice-secret")
        assert read.get("/pipelines.json").json()["rows"] == []
        assert "No query has committed its progress, or none that you may see." in read.page(
            "/pipelines"
        )
    finally:
        read.run(read.browser.aclose())
        read.browser = browser

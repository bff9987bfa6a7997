"""Options of brokers, the cluster, topics and groups."""

from __future__ import annotations

import pytest
from tests.unit.console.site import Site, confirmation, text_of


def test_options_are_listed_with_source_and_meaning(site: Site) -> None:
    rows = {row["name"]: row for row in site.get("/configs.json").json()["rows"]}
    assert rows["broker.id"]["value"] == "0"
    assert rows["broker.id"]["changes"] == "at a restart"
    assert rows["log.retention.ms"]["changes"] == "at once"
    assert rows["num.partitions"]["doc"]
    rows = site.get("/configs.json?q=BROKER.ID").json()["rows"]
    assert {row["name"] for row in rows} >= {"broker.id", "broker.id.generation.enable"}
    assert all("broker.id" in row["name"] for row in rows)


def test_an_option_of_the_cluster_is_changed(site: Site) -> None:
    fields = {"type": "cluster", "name": "", "option": "log.retention.ms", "value": "60000"}
    preview = site.post("/configs/alter", fields | {"operation": "set"})
    assert "log.retention.ms not set 60000" in text_of(preview.text)
    assert site.send(*confirmation(preview.text)).status_code == 303
    rows = site.get("/configs.json?type=cluster").json()["rows"]
    assert {row["name"]: row["value"] for row in rows}["log.retention.ms"] == "60000"
    site.do("/configs/alter", **fields, operation="delete")
    rows = site.get("/configs.json?type=cluster").json()["rows"]
    assert "log.retention.ms" not in {row["name"] for row in rows}


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("type=nothing", "must be one of"),
        ("type=topic", "needs a name"),
        ("type=broker&name=x", "must be a broker id"),
        ("type=topic&name=absent", "absent"),
    ],
)
def test_what_there_is_not_is_said(site: Site, query: str, text: str) -> None:
    answer = site.get(f"/configs?{query}")
    assert answer.status_code in (400, 404, 409)
    assert text in text_of(answer.text)


def test_what_cannot_change_while_it_runs_is_rejected(site: Site) -> None:
    fields = {"type": "broker", "name": "0", "option": "log.dirs", "value": "/x"}
    answer = site.post("/configs/alter", fields | {"operation": "set"})
    assert answer.status_code == 409
    assert "log.dirs" in text_of(answer.text)

"""Groups: lag, reset with its preview, deletion."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.unit.console.site import Site, confirmation, text_of


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A broker with a topic of ten records, which a group has read a part of."""
    with Site(tmp_path_factory.mktemp("data")) as running:
        running.create_topic("orders")
        running.produce("orders", *"abcdefghij")
        running.commit("billing", "orders", 4)
        yield running


def committed(site: Site, group: str = "billing") -> int:
    [row] = site.get(f"/groups/{group}/lag.json").json()["rows"]
    assert row["topic"] == "orders"
    offset: int = row["committed"]
    return offset


def test_the_list_has_states_and_lag(read: Site) -> None:
    read.commit("billing", "orders", 4)
    [row] = read.get("/groups.json?q=bill").json()["rows"]
    assert row == {
        "name": "billing", "state": "Empty", "type": "classic", "lag": 6, "lag_ms": None,
        "trend": "", "topics": 1, "broker": 0,
    }  # fmt: skip
    assert "6 offsets behind in all" in text_of(read.page("/groups/billing"))
    assert "The group has no members." in read.page("/groups/billing")


@pytest.mark.parametrize(
    ("goal", "target", "effect"),
    [
        ("earliest", 0, "reads 4 offsets again"),
        ("latest", 10, "skips 6 offsets"),
        ("7", 7, "skips 3 offsets"),
        ("99", 10, "skips 6 offsets"),
        ("-2", 2, "reads 2 offsets again"),
        ("+1", 5, "skips 1 offset"),
        ("2020-01-01T00:00:00Z", 0, "reads 4 offsets again"),
        ("2040-01-01", 10, "skips 6 offsets"),
    ],
)
def test_a_reset_does_what_its_preview_said(
    read: Site, goal: str, target: int, effect: str
) -> None:
    read.commit("billing", "orders", 4)
    preview = read.post("/groups/billing/reset", {"topic": "orders", "to": goal})
    assert f"orders 0 4 {target} {effect}" in text_of(preview.text)
    assert committed(read) == 4, "a preview changes nothing"
    read.produce("orders", "late")  # what was shown is done, whatever came since
    done = read.send(*confirmation(preview.text))
    assert done.status_code == 200
    assert committed(read) == target
    read.do("/topics/orders/delete-records", before="0")
    _shrink(read)


def _shrink(site: Site) -> None:
    """Create the topic again, so that it ends where it did."""
    path, fields = confirmation(site.post("/topics/orders/delete").text)
    site.send(path, [*fields, ("name", "orders")])
    site.create_topic("orders")
    site.produce("orders", *"abcdefghij")


def test_a_goal_that_means_nothing_is_rejected(read: Site) -> None:
    answer = read.post("/groups/billing/reset", {"topic": "orders", "to": "soon"})
    assert answer.status_code == 409
    assert "'soon' is none of" in text_of(answer.text)
    answer = read.post("/groups/billing/reset", {"topic": "absent", "to": "latest"})
    assert answer.status_code == 404
    answer = read.post("/groups/billing/reset", {"confirmed": "yes", "move": "orders"})
    assert answer.status_code == 400


def test_a_group_is_deleted_with_its_offsets(read: Site) -> None:
    read.commit("old", "orders", 3)
    assert "deleted" in read.do("/groups/old/delete").text
    answer = read.get("/groups/old")
    assert answer.status_code == 404
    assert "old" in text_of(answer.text)

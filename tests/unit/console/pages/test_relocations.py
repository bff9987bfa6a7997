"""Replicas that go to another data directory of their broker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.unit.console.site import Site, text_of


@pytest.fixture(scope="module")
def two_disks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A broker with two data directories."""
    data = tmp_path_factory.mktemp("data")
    with Site(data, {"log.dirs": f"{data / 'a'},{data / 'b'}"}) as running:
        running.create_topic("orders")
        running.produce("orders", *"abc")
        yield running


def test_a_replica_is_copied_to_where_the_preview_says(two_disks: Site) -> None:
    paths = str(two_disks.serving.options["log.dirs"]).split(",")
    fields = {"topic": "orders", "partition": "0"}
    shown = {
        path: text_of(two_disks.post("/brokers/0/relocate", fields | {"directory": path}).text)
        for path in paths
    }
    now = next(path for path in paths if f"orders 0 {path} {path} 0 B" in shown[path])
    other = next(path for path in paths if path != now)
    assert f"orders 0 {now} {other}" in shown[other]
    page = two_disks.page("/brokers/0")
    assert "Move a replica to another directory" in page
    done = two_disks.do("/brokers/0/relocate", **fields, directory=other)
    assert "orders-0: it goes there." in text_of(done.text)


@pytest.mark.parametrize(
    ("fields", "status", "text"),
    [
        ({"topic": "orders", "partition": "0", "directory": "/elsewhere"}, 400, "must be one of"),
        ({"topic": "orders", "partition": "x", "directory": "a"}, 400, "not a whole number"),
        ({"topic": "absent", "partition": "0", "directory": "?"}, 404, "has no replica"),
    ],
)
def test_what_cannot_be_is_rejected(
    two_disks: Site, fields: dict[str, str], status: int, text: str
) -> None:
    if fields["directory"] == "?":
        directory = str(two_disks.serving.options["log.dirs"]).split(",")[0]
        fields = fields | {"directory": directory}
    answer = two_disks.post("/brokers/0/relocate", fields)
    assert answer.status_code == status
    assert text in text_of(answer.text)


def test_with_one_directory_there_is_no_form(site: Site) -> None:
    assert "Move a replica to another directory" not in site.page("/brokers/0")

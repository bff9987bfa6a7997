"""Single records by partition and offset."""

from __future__ import annotations

import pytest
from tests.unit.console.records.putting import put
from tests.unit.console.site import Site

from barnabas.console.records.asking import TopicAccess
from barnabas.console.records.places import PLACES_MAX, PlaceError, fetch_rows, read_places


def test_places_are_read() -> None:
    assert read_places(["0:5", "3:0"]) == [(0, 5), (3, 0)]


@pytest.mark.parametrize("text", ["", "1", "1:", ":1", "-1:5", "a:b", "1:2:3", "1:" + "9" * 30])
def test_what_is_no_place_is_rejected(text: str) -> None:
    with pytest.raises(PlaceError):
        read_places([text])


def test_there_is_a_limit() -> None:
    with pytest.raises(PlaceError, match=str(PLACES_MAX)):
        read_places([f"0:{each}" for each in range(PLACES_MAX + 1)])


def test_records_are_fetched_and_missing_ones_left_out(site: Site) -> None:
    site.create_topic("placed", 2)
    for partition in (0, 1):
        for start in range(0, 30, 10):
            rows = [(1, None, b"%d" % each, ()) for each in range(start, start + 10)]
            put(site, "placed", rows, partition)
    access = TopicAccess(site.door, site.door.anonymous("127.0.0.1"), "placed")
    places = [(0, 29), (0, 3), (1, 15), (1, 99), (7, 0)]
    found = site.run(fetch_rows(access, places))
    assert {place: row.value for place, row in found.items()} == {
        (0, 29): b"29",
        (0, 3): b"3",
        (1, 15): b"15",
    }

"""The zone of a viewer's times: chosen once, kept by the browser."""

from __future__ import annotations

from datetime import UTC

import pytest
from tests.unit.console.site import Site

from barnabas.console.rendering import moment
from barnabas.console.zone import written, zone_of


@pytest.mark.parametrize(
    ("zone", "shown"),
    [
        ("UTC", "1970-01-01 00:00:00.000 UTC"),
        ("Europe/Berlin", "1970-01-01 01:00:00.000 +01:00"),
        ("-03:30", "1969-12-31 20:30:00.000 -03:30"),
        ("No/Such", "1970-01-01 00:00:00.000 UTC"),
        ("../etc/passwd", "1970-01-01 00:00:00.000 UTC"),
    ],
)
def test_a_time_in_a_zone(zone: str, shown: str) -> None:
    assert written(0, zone_of(zone)) == shown


def test_the_last_day_of_the_calendar_stays_in_utc() -> None:
    assert written(253402300799999, zone_of("+14:00")).endswith(" UTC")
    assert zone_of("UTC") is UTC


def test_a_viewer_chooses_a_zone_for_all_pages(site: Site) -> None:
    before = site.browser
    site.browser = site.new_browser()
    try:
        assert "Times are in UTC." in site.page("/diary")
        answer = site.post("/zone", {"zone": "Asia/Kolkata", "next": "/diary"})
        assert answer.headers["location"] == "/diary"
        page = site.page("/diary")
        assert 'data-zone="Asia/Kolkata"' in page
        assert "Times are in Asia/Kolkata." in page
        site.post("/zone", {"zone": "<script>", "next": "//evil"})
        assert 'data-zone="Asia/Kolkata"' in site.page("/")
        assert "+05:30</time>" in site.page("/")
        site.post("/zone", {"zone": "UTC"})
        assert 'data-zone="UTC"' in site.page("/")
    finally:
        site.browser = before


def test_machines_read_utc() -> None:
    assert (
        moment(0) == '<time datetime="1970-01-01T00:00:00.000Z">1970-01-01 00:00:00.000 UTC</time>'
    )

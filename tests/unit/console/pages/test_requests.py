"""Requests of clients: the last, the slowest, errors, and what waits."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.unit.broker.serving import fetch_request
from tests.unit.console.site import SECURED, Site, text_of

from barnabas.console.pages import requests
from barnabas.console.window import RequestsSeen
from barnabas.model.observations import WaitingSeen


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A console with log-ins."""
    with Site(tmp_path_factory.mktemp("data"), SECURED) as running:
        yield running
        running.serving.lines.clear()


def test_requests_of_clients_are_listed_with_their_phases(site: Site) -> None:
    site.create_topic("asked")
    wire = site.serving.connect()
    wire.ask(fetch_request("asked", 0), 4)
    wire.ask(fetch_request("absent", 0), 4)
    rows = site.get("/requests/latest.json").json()["rows"]
    row = next(each for each in rows if each["api"].startswith("Fetch"))
    assert row["total_ms"] == pytest.approx(
        row["queue_ms"] + row["local_ms"] + row["remote_ms"] + row["send_ms"]
    )
    assert row["host"] == "127.0.0.1"
    assert {each["client_id"] for each in rows} >= {row["client_id"]}
    assert not any(each["client_id"] == "barnabas-console" for each in rows)
    page = text_of(site.page("/requests"))
    for heading in ("Waiting now", "Slowest", "Errors", "Latest"):
        assert heading in page
    errors = site.get("/requests/errors.json").json()["rows"]
    assert any(each["error"] == "UNKNOWN_TOPIC_OR_PARTITION" for each in errors)
    assert site.get("/requests/slowest.csv").text.startswith("time_ms,api,version,total_ms")
    assert site.get("/requests/absent.json").status_code == 404


def test_what_waits_is_escaped(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    waits = WaitingSeen("Fetch", "<script>", "User:a", "10.0.0.7", 4100, "records of orders-3")
    seen = RequestsSeen((), (), (), (waits,), 7)
    monkeypatch.setattr(site.window, "requests", lambda: seen)
    page = site.page("/requests")
    assert "<script>" not in page.partition("<main")[2]
    text = text_of(page)
    assert "7 requests wait at this moment" in text
    assert "Fetch 4.1 s records of orders-3 <script> User:a 10.0.0.7" in text


def test_a_page_shows_some_and_a_file_all() -> None:
    waits = WaitingSeen("Fetch", "a", "User:a", "10.0.0.7", 1, "records")
    seen = RequestsSeen((), (), (), (waits,) * 60, 60)
    whole = requests.lists_of(seen)[0]
    assert len(whole.rows) == 60
    assert len(requests._shortened(whole).rows) == requests.ROWS_SHOWN


def test_a_user_without_rights_sees_no_requests(secured: Site) -> None:
    secured.log_in("alice", "alice-secret")
    page = text_of(secured.page("/requests"))
    assert "You may not see requests" in page
    assert page.count("There were no requests.") == 2
    assert secured.get("/requests/latest.json").status_code == 403
    secured.log_in("admin", "admin-secret")
    assert secured.get("/requests/latest.json").status_code == 200

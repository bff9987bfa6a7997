"""The log's page: filtered, live, with the levels of loggers."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from tests.unit.console.site import SECURED, Site, text_of


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A console with log-ins."""
    with Site(tmp_path_factory.mktemp("data"), SECURED) as running:
        yield running
        running.serving.lines.clear()


def texts(site: Site, query: str) -> list[str]:
    """Return the lines that a filter lets pass, the newest first."""
    return [row["text"] for row in site.get(f"/logs.json?{query}").json()["rows"]]


def test_lines_are_filtered_by_level_logger_and_text(site: Site) -> None:
    logging.getLogger("barnabas.groups").warning("first marker <b>1</b>")
    logging.getLogger("barnabas.network").error("second marker")
    assert texts(site, "q=MARKER") == ["second marker", "first marker <b>1</b>"]
    assert texts(site, "q=marker&level=ERROR") == ["second marker"]
    assert texts(site, "q=marker&logger=barnabas.groups") == ["first marker <b>1</b>"]
    assert texts(site, "q=marker&logger=barnabas") == ["second marker", "first marker <b>1</b>"]
    assert texts(site, "q=no such line") == []
    page = site.page("/logs?q=marker&level=ERROR&logger=barnabas.network")
    assert "second marker" in text_of(page)
    assert "<b>1" not in site.page("/logs?q=marker")
    assert "/logs.json?q=marker&amp;level=ERROR&amp;logger=barnabas.network" in page
    assert 'class="bad"' in page
    assert 'hx-sse:connect="/logs?q=marker' in page
    site.serving.lines.clear()


def test_a_level_is_changed_from_the_page(site: Site) -> None:
    assert "Log more, or less" in site.page("/logs")
    fields = {"type": "loggers", "name": "0", "option": "barnabas.groups", "value": "DEBUG"}
    preview = site.post("/configs/alter", fields | {"operation": "set"})
    assert "barnabas configs alter --broker-loggers 0 --set barnabas.groups=DEBUG" in preview.text
    site.do("/configs/alter", **fields, operation="set")
    try:
        assert logging.getLogger("barnabas.groups").level == logging.DEBUG
    finally:
        site.do("/configs/alter", **fields, operation="delete")
    assert logging.getLogger("barnabas.groups").level != logging.DEBUG


def test_a_user_without_rights_reads_no_lines(secured: Site) -> None:
    logging.getLogger("barnabas.groups").warning("a secret line")
    secured.log_in("alice", "alice-secret")
    page = secured.page("/logs")
    assert "a secret line" not in page
    assert "You may not see the log: this needs DESCRIBE on the cluster." in page
    assert texts(secured, "q=secret") == []
    secured.log_in("admin", "admin-secret")
    assert texts(secured, "q=secret line") == ["a secret line"]

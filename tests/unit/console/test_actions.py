"""Plans and reports of actions, as pages."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from tests.unit.console.site import Site, confirmation, text_of

from barnabas.console.actions import Plan, ask, report
from barnabas.console.context import Context
from barnabas.console.rendering import Page, Templates
from barnabas.console.static_files import StaticFiles
from barnabas.model.errors import BarnabasError


def context(site: Site) -> Context:
    """Return a context whose pages have no session."""
    common: dict[str, Any] = {
        "mode": "full", "can_change": True, "can_read_records": True, "has_log_in": False,
        "open_to_all": False, "is_exposed": False, "exports": True, "broker_id": 0,
        "cluster_id": "c", "version": "1",
    }  # fmt: skip
    templates = Templates(lambda request: None, StaticFiles(), common)
    return Context(site.door, site.window, _no_session, templates)


def _no_session(request: Request) -> Any:
    raise AssertionError("a page that shows a plan needs none")


def read(response: Response) -> str:
    """Return the text of a page."""
    assert isinstance(response, Page)
    asyncio.run(response.finish())
    return bytes(response.body).decode()


def request() -> Request:
    return Request(
        {"type": "http", "method": "POST", "path": "/x", "query_string": b"", "headers": [],
         "server": ("h", 80), "scheme": "http"}
    )  # fmt: skip


def test_a_plan_is_a_form_with_what_it_would_do(site: Site) -> None:
    plan = Plan(
        title="Do <it>",
        text="It does.",
        button="Do it",
        action="/x/do",
        back="/x",
        fields=[("a", '"><script>'), ("a", "2")],
        heads=["What", "Then"],
        rows=[["one", 1], ["two", None]],
        needs="ALTER on the cluster",
        command="barnabas do 'it'",
    )
    page = read(ask(context(site), request(), plan))
    assert "<script>" not in page.partition("<body>")[2]
    path, fields = confirmation(page)
    assert path == "/x/do"
    assert fields[1:] == [("a", '"><script>'), ("a", "2"), ("confirmed", "yes")]
    text = text_of(page)
    assert "What Then one 1 two" in text
    assert "This needs ALTER on the cluster." in text
    assert "barnabas do 'it'" in text


def test_a_report_says_what_came_of_each_part(site: Site) -> None:
    mixed = report(
        context(site), request(), "Done", [("One", None), ("Two", BarnabasError("no <b>"))], "/x"
    )
    assert mixed.status_code == 409
    page = read(mixed)
    assert "One: done." in text_of(page)
    assert "Two: no <b>" in text_of(page)
    assert "no <b>" not in page
    nothing = report(context(site), request(), "Done", [], "/x")
    assert nothing.status_code == 200
    assert "There was nothing to do." in read(nothing)

"""No action without the right to it: in read-only mode, for strangers, without the token."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.routing import Route
from tests.unit.console.actions import ACTIONS, HARMLESS, RULE
from tests.unit.console.site import ADMIN, SECURED, TOKEN, Site, text_of

from barnabas.console.door import Visitor
from barnabas.model.visitor import Mode

NOTHING_THERE = {
    "/topics/orders/elect",
    "/groups/billing/undo",
    "/transactions/payments-1/abort",
    "/hanging-transactions/abort",
    "/reassign/cancel",
    "/reassign/unthrottle",
    "/users/remove",
}
"""Where the read-only console finds nothing to change, so that it sends no such request."""


def prepare(site: Site) -> None:
    """Make the things that the actions are about, as a super user."""
    site.create_topic("orders", 1)
    site.produce("orders", *"abcd")
    site.commit("billing", "orders", 2)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A broker with an authorizer; alice has logged in, who may do nothing."""
    with Site(tmp_path_factory.mktemp("data"), SECURED) as running:
        prepare(running)
        running.log_in("admin", "admin-secret")
        running.do("/acls/add", **(RULE | {"principal": "User:keeper"}))
        running.post("/users/set", ACTIONS["/users/set"] | {"name": "carol"})
        running.browser.cookies.clear()
        running.log_in("alice", "alice-secret")
        yield running
        running.serving.lines.clear()


@pytest.fixture(scope="module")
def read_only(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A broker without an authorizer, whose console changes nothing."""
    data = tmp_path_factory.mktemp("data")
    with Site(data) as open_one:
        prepare(open_one)
    with Site(data, mode=Mode.READ_ONLY) as running:
        yield running
        running.serving.lines.clear()


def state(site: Site) -> list[Any]:
    """Return what the actions would change, as a super user sees it."""
    pages = (
        "/topics.json", "/topics/orders/partitions.json", "/topics/orders/configs.json",
        "/groups/billing/lag.json", "/acls.json", "/users.json", "/quotas.json",
        "/configs.json?type=cluster", "/reassign.json",
    )  # fmt: skip
    found = [site.get(path).json() for path in pages]
    text = str(found)
    for passing in (r"'(lag_ms|bytes_in|bytes_out|trend|used|throttle_ms)': [^,}]*",):
        text = re.sub(passing, "", text)
    return [text]


def test_every_action_is_in_the_table(read_only: Site) -> None:
    app = read_only.app._app  # type: ignore[attr-defined]
    assert isinstance(app, Starlette)
    posted = [
        each.path
        for each in app.routes
        if isinstance(each, Route) and "POST" in (each.methods or ()) and each.path not in HARMLESS
    ]
    patterns = {path: re.compile(re.sub(r"\{[^}]*\}", "[^/]+", path)) for path in posted}
    missing = [path for path, known in patterns.items() if not any(map(known.fullmatch, ACTIONS))]
    assert not missing, "add them to tests/unit/console/actions.py"
    assert len(posted) == len(ACTIONS)


@pytest.fixture(scope="module")
def before(secured: Site) -> list[Any]:
    """What there was before anything was tried."""
    return as_admin(secured)


def as_admin(secured: Site) -> list[Any]:
    """Return the state as the administrator sees it; alice's cookies come back."""
    kept = dict(secured.browser.cookies)
    secured.browser.cookies.clear()
    secured.log_in("admin", "admin-secret")
    found = state(secured)
    secured.browser.cookies.clear()
    secured.browser.cookies.update(kept)
    return found


@pytest.mark.parametrize("path", ACTIONS)
def test_a_stranger_does_nothing(secured: Site, before: list[Any], path: str) -> None:
    answer = secured.post(path, ACTIONS[path] | {"confirmed": "yes"})
    text = text_of(answer.text)
    assert answer.status_code in (400, 403, 404, 409), (answer.status_code, text)
    if answer.status_code == 403:
        assert "Not allowed" in text
    assert "Traceback" not in answer.text


def test_strangers_have_changed_nothing(secured: Site, before: list[Any]) -> None:
    assert as_admin(secured) == before


@pytest.mark.parametrize("path", ACTIONS)
def test_read_only_is_read_only(read_only: Site, path: str) -> None:
    answer = read_only.post(path, ACTIONS[path] | {"confirmed": "yes"})
    text = text_of(answer.text)
    if path in NOTHING_THERE:
        assert answer.status_code in (200, 404, 409), (answer.status_code, text)
        return
    assert answer.status_code in (403, 409), (answer.status_code, text)
    assert "barnabas.console.mode=read-only forbids it" in text


def test_read_only_has_changed_nothing(read_only: Site) -> None:
    rows = read_only.get("/topics.json").json()["rows"]
    assert [(row["name"], row["offsets"]) for row in rows if row["kind"] == ""] == [("orders", 4)]
    [row] = read_only.get("/groups/billing/lag.json").json()["rows"]
    assert row["committed"] == 2
    for page in ("/topics/orders", "/groups/billing", "/acls", "/users", "/quotas", "/configs",
                 "/reassign", "/elections", "/brokers/0", "/logs", "/topics"):  # fmt: skip
        text = read_only.page(page)
        forms = re.findall(r'<form[^>]* method="post" action="([^"]*)"', text)
        assert set(forms) == {"/theme", "/zone"}, (page, forms)


@pytest.mark.parametrize("path", ACTIONS)
def test_without_the_token_or_from_another_site_nothing_is_done(read_only: Site, path: str) -> None:
    pairs = [*ACTIONS[path].items(), ("confirmed", "yes")]
    answer = read_only.send(path, pairs)
    assert answer.status_code == 403
    assert "not from your session" in answer.text
    token = TOKEN.search(read_only.page("/"))
    assert token is not None
    answer = read_only.send(path, [("_token", token[1]), *pairs], sec_fetch_site="cross-site")
    assert answer.status_code == 403
    assert "comes from another site" in answer.text


def test_the_super_user_may(secured: Site, tmp_path: Path) -> None:
    """Hold that the table's forms are whole: what strangers were denied is accepted of others."""
    admin = Visitor("User:admin", "127.0.0.1")
    assert admin == ADMIN
    kept = dict(secured.browser.cookies)
    secured.browser.cookies.clear()
    secured.log_in("admin", "admin-secret")
    done = {
        path: secured.post(path, fields | {"confirmed": "yes"}).status_code
        for path, fields in ACTIONS.items()
        if path not in ("/topics/orders/delete",)
    }
    secured.browser.cookies.clear()
    secured.browser.cookies.update(kept)
    failed = {path for path, status in done.items() if status not in (200, 303)}
    assert failed == {
        "/groups/billing/remove",  # there is no such member
        "/transactions/payments-1/abort",  # nor such a transaction
        "/brokers/0/relocate",  # nor such a directory
        "/topics/orders/records/send",  # its record was deleted by the action before
    }

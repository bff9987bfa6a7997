"""One who has no rights sees nothing and does nothing; and a watch that would notice if one did."""

from __future__ import annotations

from functools import partial
from typing import Any
from urllib.parse import quote

import pytest
from confluent_kafka.admin import AdminClient
from tests.system.console import contents
from tests.system.console.chromium import CANARY, Tab
from tests.system.console.cluster import ADMIN, ALICE, PASSWORDS, ConsoleCluster
from tests.system.console.test_pages import PAGES

pytestmark = [
    pytest.mark.system,
    pytest.mark.timeout(300),
    pytest.mark.xdist_group("console"),
]

SECRET = (contents.ORDERS, contents.HISTORY, contents.BILLING, contents.PIPELINE, "stream-", ADMIN)
"""Names that one without rights must not read on any page, save those that one has asked for."""
CHANGES = (
    ("/topics", {"name": "stolen", "partitions": "1", "replicas": "1", "configs": ""}),
    ("/topics/orders/alter", {"option": "retention.ms", "value": "1", "operation": "set"}),
    ("/topics/orders/partitions", {"count": "50"}),
    ("/topics/orders/delete-records", {"partition": "", "before": "end"}),
    ("/topics/orders/delete", {"name": "orders"}),
    ("/topics/orders/fork", {"name": "stolen", "at": ""}),
    ("/topics/orders/records/produce", {"value": "x", "value_format": "text", "key": ""}),
    ("/topics/orders/records/import", {"lines": '{"value": "x"}'}),
    ("/groups/billing/reset", {"move": "orders:0:0"}),
    ("/groups/billing/delete", {}),
    ("/acls/add", {
        "principal": "User:alice", "type": "TOPIC", "name": "*", "operation": "ALL",
        "permission": "ALLOW", "pattern": "LITERAL", "host": "*",
    }),
    ("/users/set", {"name": "alice2", "password": "x", "mechanism": "SCRAM-SHA-512"}),
    ("/users/remove", {"name": "admin"}),
    ("/quotas/set", {"client-id": "x", "key": "producer_byte_rate", "value": "1"}),
    ("/configs/alter", {
        "type": "broker", "name": "0", "option": "log.retention.ms", "value": "1",
        "operation": "set",
    }),
    ("/reassign/start", {"move": "orders:0:2,1,0", "throttle": ""}),
)  # fmt: skip
"""Every change as the form of a confirmed preview sends it."""


@pytest.mark.parametrize(("name", "path"), PAGES, ids=[name for name, _ in PAGES])
def test_one_without_rights_sees_nothing(alice_tab: Tab, name: str, path: str) -> None:
    tab = alice_tab
    tab.expected = {403, 404, 409}
    answer = tab.page.goto(path)
    assert answer is not None
    assert answer.status in (200, 403, 404, 409), answer.status
    text = tab.text()
    for secret in SECRET:
        assert secret not in text or secret in path, (secret, text)
    assert '"status"' not in text  # in every order
    tab.check()
    if name in ("overview", "records", "acls"):
        tab.shoot(f"{name}-without-rights")


def test_one_without_rights_does_nothing(
    alice_tab: Tab, admin: AdminClient, cluster_options: dict[str, Any]
) -> None:
    tab = alice_tab
    tab.open("/users")
    token = tab.page.locator('input[name="_token"]').first.get_attribute("value")
    before = _state(admin)
    for path, fields in CHANGES:
        # From a page of the console, as its own forms are sent.
        status, text = tab.page.evaluate(
            """async ([path, fields]) => {
              const answer = await fetch(path, {method: "POST", body: new URLSearchParams(fields)});
              return [answer.status, await answer.text()];
            }""",
            [path, {"_token": token, "confirmed": "yes", **fields}],
        )
        tab.take_complaints()
        assert status in (403, 404, 409) or "Nothing has been sent" in text, (path, status, text)
        assert status != 400, (path, text)  # refused for what it is, not for how it is written
    assert _state(admin) == before


def test_without_a_log_in_there_is_nothing(site: ConsoleCluster, browser: Any) -> None:
    tab = Tab(browser, site.url())
    try:
        for _, path in PAGES:
            answer = tab.context.request.get(path, max_redirects=0)
            assert answer.status == 303, path
            assert answer.headers["location"] == f"/login?next={quote(path, safe='')}"
        tab.expected = {403}
        tab.log_in(ALICE, "wrong")
        tab.see("Log in")
        tab.log_in(ALICE, PASSWORDS[ALICE])
        tab.press("Log out", tab.page.locator("header"))
        tab.open("/topics")
        assert "/login" in tab.page.url
    finally:
        tab.close()


def test_a_form_of_another_site_changes_nothing(tab: Tab, admin: AdminClient) -> None:
    """Another site's page cannot use the session of one who is logged in."""
    before = _state(admin)
    host = tab.url.replace("127.0.0.1", "localhost")
    page = (
        f'<form method="post" action="{tab.url}/topics"><input name="name" value="stolen"></form>'
    )
    other = tab.context.new_page()
    try:
        other.route(f"{host}/foreign", lambda route: route.fulfill(
            content_type="text/html", body=page))  # fmt: skip
        other.goto(f"{host}/foreign")
        with other.expect_navigation() as sent:
            other.evaluate("document.forms[0].submit()")
        assert sent.value.status in (401, 403)
    finally:
        other.close()
    assert _state(admin) == before


def test_the_watch_notices_what_it_watches_for(site: ConsoleCluster, browser: Any) -> None:
    """A watch that never sees anything would prove nothing."""
    tab = Tab(browser, site.url())
    try:
        body = (
            f"<!doctype html><html lang=en><title>x</title>{contents.SCRIPT}"
            '<img src="http://elsewhere.invalid/x"><p style="width: 3000px; color: #eee">wide</p>'
        )
        seen = []
        for policy in ({"content-security-policy": "img-src 'self'"}, {}):
            serve = partial(_fulfil, body, policy)
            tab.page.route("**/watched", serve)
            tab.page.goto("/watched")
            tab.page.unroute("**/watched", serve)
            assert tab.page.evaluate("document.scripts.length") == 1
            with pytest.raises(AssertionError):
                tab.check()
            seen += tab.take_complaints()
        assert f"console: {CANARY}" in seen
        assert any("Content Security Policy" in each for each in seen)
        assert any("elsewhere.invalid" in each for each in seen)
        tab.page.evaluate("console.error('once more')")
        assert tab.take_complaints() == ["console: once more"]
        assert any("image-alt" in each for each in tab.audit())
        assert any("color-contrast" in each for each in tab.audit(["color-contrast"]))
        assert "wide" in tab.overflow()
    finally:
        tab.close()


def _fulfil(body: str, headers: dict[str, str], route: Any) -> None:
    route.fulfill(content_type="text/html", body=body, headers=headers)


def _state(admin: AdminClient) -> Any:
    """Return what a thief could have changed."""
    topics = admin.list_topics(timeout=60).topics
    groups = admin.list_consumer_groups().result(60).valid
    replicas = [list(each.replicas) for each in topics[contents.ORDERS].partitions.values()]
    return sorted(topics), sorted(each.group_id for each in groups), replicas

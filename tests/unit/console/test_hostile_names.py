"""Names and values that clients choose are shown as what they are, and never obeyed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser

import pytest
from tests.unit.console.site import Site, text_of

from barnabas.console.segments import segment
from barnabas.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol

HOSTILE = {
    "script": "<script>alert(1)</script>",
    "attribute": '"\' onmouseover=alert(1) x="',
    "template": "{{ 7*7 }}{% raw %}",
    "direction": "gro\u202egnp.exe\u2066",
    "control": "a\x00b\x1b[31mc\x7fd\u0085e",
    "path": "../../etc/passwd",
    "dots": "..",
    "percent": "%2e%2e%2f?x=1#y",
    "formula": "=1+cmd|'/C calc'!A0",
    "long": "x" * 5000,
    "lines": "one\r\ntwo\nthree\u2028four",
    "zero width": "ad\u200bmin\ufeff",
    "astral": "\U0001f4a9\U000e0041",
}
HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A broker with groups of hostile names, each with a committed offset."""
    with Site(tmp_path_factory.mktemp("data")) as running:
        running.create_topic("orders")
        for name in HOSTILE.values():
            running.commit(name, "orders", 0)
        yield running


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_a_groups_page_is_found_and_says_its_name_safely(hostile: Site, name: str) -> None:
    page = hostile.page(f"/groups/{segment(name)}")
    assert harmless(page)
    rows = hostile.get(f"/groups/{segment(name)}/lag.json").json()["rows"]
    assert [row["topic"] for row in rows] == ["orders"]
    preview = hostile.post(f"/groups/{segment(name)}/reset", {"topic": "", "to": "latest"})
    assert preview.status_code == 200
    assert harmless(preview.text)


def test_the_list_of_groups_is_harmless_in_every_format(hostile: Site) -> None:
    page = hostile.page("/groups")
    assert harmless(page)
    assert "{{ 7*7 }}" in text_of(page)
    assert "\u27e8U+202E\u27e9" in page
    assert "a\u2400b\u241b[31mc\u2421d" in page
    listed = {row["name"] for row in hostile.get("/groups.json").json()["rows"]}
    assert listed == set(HOSTILE.values()), "programs get the names as they are"
    table = hostile.get("/groups.csv").text
    assert "'=1+cmd" in table
    assert not re.search(r"(^|,)\"?=1", table, re.MULTILINE)


def attributes(page: str) -> set[str]:
    """Return the names of all attributes, as a browser reads them."""
    found: set[str] = set()

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            found.update(name for name, _ in attrs)

    Reader().feed(page)
    assert "class" in found or not page, "only a redirection has no page"
    return found


def harmless(page: str) -> bool:
    """Hold that nothing of what is shown is markup, code or invisible."""
    assert "<script>alert" not in page
    assert not any(name.startswith("on") for name in attributes(page))
    assert HIDDEN.search(page) is None
    assert "49{%" not in page
    return True


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_searches_and_errors_repeat_what_was_typed_safely(hostile: Site, name: str) -> None:
    from urllib.parse import quote

    for path in (
        f"/topics?q={quote(name)}",
        f"/topics?sort={quote(name)}&after={quote(name)}",
        f"/groups?q={quote(name)}",
        f"/acls?principal={quote(name)}&operation=READ&type=TOPIC&name={quote(name)}",
        f"/configs?type={quote(name)}",
        f"/configs?type=topic&name={quote(name)}",
        f"/topics/{segment(name)}",
        f"/transactions/{segment(name)}",
        f"/login?next={quote(name)}",
        f"/why?of=group&name={quote(name)}",
        f"/why?of={quote(name)}&name=x",
        f"/why?of=client&name={quote(name)}",
        f"/diary?q={quote(name)}&kind={quote(name)}",
        f"/logs?q={quote(name)}&logger={quote(name)}&level={quote(name)}",
        f"/reassign?topic={quote(name)}",
        f"/hanging-transactions?topic={quote(name)}",
        f"/users?of={quote(name)}",
        f"/quotas?user={quote(name)}&key={quote(name)}&value={quote(name)}",
        f"/acls?rule-principal={quote(name)}&rule-name={quote(name)}&rule-host={quote(name)}",
        f"/clients?q={quote(name)}&sort={quote(name)}",
        f"/clients/{segment(name)}",
        f"/pipelines?q={quote(name)}&after={quote(name)}",
        f"/elections?sort={quote(name)}",
    ):
        answer = hostile.get(path)
        assert answer.status_code < 500, path
        assert harmless(answer.text), path


@pytest.mark.parametrize("path", ["/groups/%ff%fe", "/groups/%c0%af", "/topics/%ed%a0%80"])
def test_a_name_that_is_not_utf8_is_not_found(hostile: Site, path: str) -> None:
    assert hostile.get(path).status_code == 404


def test_members_choose_their_client_id_and_it_is_shown_safely(hostile: Site) -> None:
    member = '<img src=x onerror="alert(1)">\u202e'
    with hostile.serving.connect() as wire:
        wire._client_id = member
        join = JoinGroupRequest(
            group_id="joined",
            session_timeout_ms=30_000,
            rebalance_timeout_ms=30_000,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=b"\x00\x00\xff")],
        )
        assert wire.ask(join, 3).error_code == 0
        page = hostile.page("/groups/joined")
    assert "<img" not in page
    assert "&lt;img src=x" in page
    assert "\u202e" not in page


def test_descriptions_of_options_hold_what_was_set(hostile: Site) -> None:
    value = "<b>\u202e{{ 1 }}"
    hostile.create_topic("with-markup")
    answer = hostile.post(
        "/topics/with-markup/alter",
        {"option": "leader.replication.throttled.replicas", "value": value, "operation": "set"},
    )
    assert answer.status_code in (200, 409)
    assert "<b>\u202e" not in answer.text
    assert "\u202e" not in answer.text


def test_a_form_that_is_not_one_is_rejected(hostile: Site) -> None:
    async def post(content: bytes, kind: str) -> int:
        headers = {"content-type": kind, "sec-fetch-site": "same-origin"}
        answer = await hostile.browser.post("/topics", content=content, headers=headers)
        return answer.status_code

    async def all_of_them() -> list[int]:
        return [
            await post(b"\xff\xfe", "application/x-www-form-urlencoded"),
            await post(b"name=%ff", "application/x-www-form-urlencoded"),
            await post(b"&".join(b"a=1" for _ in range(5000)), "application/x-www-form-urlencoded"),
            await post(b"{}", "application/json"),
            await post(b"", "multipart/form-data; boundary=x"),
        ]

    assert hostile.run(all_of_them()) == [400, 400, 400, 415, 415]

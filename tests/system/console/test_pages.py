"""Every page in a real Chromium: harmless, for everyone, light and dark, as wide as a phone.

The pages are found by following links from the overview, one of each kind: a new page is looked at
as soon as another one leads to it.
"""

from __future__ import annotations

import re
from html import unescape
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from tests.system.console import contents
from tests.system.console.chromium import DESKTOP, PHONE, Tab
from tests.system.console.cluster import ADMIN, PASSWORDS, ConsoleCluster

pytestmark = [
    pytest.mark.system,
    pytest.mark.timeout(300),
    pytest.mark.xdist_group("console"),
]

PAGES = (
    ("overview", "/"),
    ("brokers", "/brokers"),
    ("broker", "/brokers/1"),
    ("topics", "/topics"),
    ("topics-found", "/topics?q=team-07"),
    ("new-topic", "/new-topic"),
    ("topic", f"/topics/{contents.ORDERS}"),
    ("topic-options", f"/topics/{contents.ORDERS}/configs"),
    ("records", f"/topics/{contents.ORDERS}/records"),
    ("records-hostile", f"/topics/{contents.HOSTILE}/records?from=oldest"),
    ("record", f"/topics/{contents.ORDERS}/0/0"),
    ("live", f"/topics/{contents.ORDERS}/records/live"),
    ("produce", f"/topics/{contents.ORDERS}/records/produce"),
    ("import", f"/topics/{contents.ORDERS}/records/import"),
    ("schemas", f"/topics/{contents.ORDERS}/records/schemas"),
    ("groups", "/groups"),
    ("group", f"/groups/{contents.BILLING}"),
    ("pipelines", "/pipelines"),
    ("transactions", "/transactions"),
    ("transactions-all", "/transactions?all=yes"),
    ("transaction", f"/transactions/{contents.COMMITTED}"),
    ("hanging", "/hanging-transactions"),
    ("moves", "/reassign"),
    ("elections", "/elections"),
    ("acls", "/acls?principal=User%3Aalice&operation=READ&type=TOPIC&name=orders"),
    ("users", "/users"),
    ("quotas", "/quotas"),
    ("configs", "/configs"),
    ("configs-broker", "/configs?type=broker&name=0"),
    ("requests", "/requests"),
    ("clients", "/clients"),
    ("diary", "/diary"),
    ("why-group", f"/why?of=group&name={contents.BILLING}"),
    ("why-partition", f"/why?of=partition&name={contents.ORDERS}-0"),
    ("logs", "/logs"),
)
"""The pages that are looked at one by one; the last test finds any that is not among them."""

DOWNLOADS = re.compile(r"/records\.(jsonl|csv|parquet)")
"""Files that other tests look into."""


@pytest.mark.parametrize(("name", "path"), PAGES, ids=[name for name, _ in PAGES])
def test_a_page_is_for_everyone(tab: Tab, name: str, path: str) -> None:
    tab.open(path)
    tab.shoot(f"{name}-light")
    findings = tab.audit()
    tab.page.emulate_media(color_scheme="dark")
    try:
        tab.shoot(f"{name}-dark")
        findings += tab.audit(["color-contrast"])
    finally:
        tab.page.emulate_media(color_scheme="light")
    tab.page.set_viewport_size(PHONE)
    try:
        wide = tab.overflow()
        tab.shoot(f"{name}-phone")
    finally:
        tab.page.set_viewport_size(DESKTOP)
    assert not findings, "\n".join(findings)
    assert not wide, wide
    assert tab.page.title().endswith("· Barnabas")
    assert tab.page.locator("h1").count() == 1
    tab.check()


def test_the_log_in_and_what_is_missing_are_for_everyone(
    site: ConsoleCluster, browser: Any, tab: Tab
) -> None:
    other = Tab(browser, site.url())
    try:
        other.open("/topics")  # not before one has logged in
        assert urlsplit(other.page.url).path == "/login"
        other.shoot("log-in-light")
        assert not other.audit()
        other.page.emulate_media(color_scheme="dark")
        other.shoot("log-in-dark")
        assert not other.audit(["color-contrast"])
        other.page.set_viewport_size(PHONE)
        assert not other.overflow()
    finally:
        other.close()
    for path in ("/nothing", "/topics/nothing", "/groups/nothing/here", "/brokers/99"):
        tab.open(path, 404)
        assert not tab.audit()


def test_thousands_of_topics_are_paged_and_filtered(tab: Tab, admin: AdminClient) -> None:
    known = admin.list_topics(timeout=60).topics
    assert len(known) > contents.TOPICS
    assert sum(len(each.partitions) for each in known.values()) > 10_000
    tab.open("/")
    tab.see(f"{len(known):,}")
    tab.open("/topics?sort=name")
    seen: list[str] = []
    while True:
        seen += tab.page.locator("tbody th").all_inner_texts()
        following = tab.page.get_by_role("link", name="Next page")
        if not following.count() or len(seen) > 700:
            break
        with tab.page.expect_event("load"):
            following.click()
    assert len(seen) == len(set(seen)) > 500
    assert seen == sorted(known)[: len(seen)]
    tab.open("/topics")
    tab.page.get_by_role("searchbox").fill("stream-1234")
    tab.press("Filter")
    assert tab.page.locator("tbody th").all_inner_texts() == ["team-34.stream-1234"]


@pytest.mark.parametrize("name", [*contents.NAMES.values(), contents.NULL], ids=repr)
def test_a_hostile_group_is_shown_and_harmless(tab: Tab, name: str) -> None:
    tab.open(f"/groups/{quote(name, safe='')}")
    shown = tab.page.locator("h1").inner_text()
    assert _readable(name) in shown
    assert not re.search("[\x00-\x08\x0b-\x1f\u202e]", tab.page.content())


def test_hostile_names_are_in_the_lists_as_what_they_are(
    tab: Tab, cluster_options: dict[str, Any]
) -> None:
    [asked, *_] = cluster_options["bootstrap.servers"].split(",")
    rude = {**cluster_options, "bootstrap.servers": asked, "client.id": contents.SCRIPT}
    AdminClient(rude).list_topics(contents.ORDERS, timeout=60)
    producer = Producer(rude)
    for partition in range(3):  # this broker leads one of them, and knows who writes to that
        producer.produce(contents.JOURNAL, b"{}", b"rude", partition)
    assert producer.flush(60) == 0
    for path in ("/groups", "/brokers", "/requests", f"/topics/{contents.JOURNAL}"):
        tab.open(path)
        assert contents.SCRIPT in tab.text(), path
    tab.open("/groups")
    names = tab.page.locator("tbody th a").all_inner_texts()
    assert len(names) >= len(contents.NAMES) + 3
    # A link leads to the very group that it names.
    for at in range(len(names)):
        address = tab.page.locator("tbody th a").nth(at).get_attribute("href")
        assert address is not None
        assert _readable(unquote(address.removeprefix("/groups/"))) in names[at]


@pytest.mark.parametrize("number", range(len(contents.PAYLOADS)), ids=list(contents.PAYLOADS))
def test_a_hostile_record_is_shown_and_harmless(tab: Tab, number: int) -> None:
    name = list(contents.PAYLOADS)[number]
    payload = contents.PAYLOADS[name]
    tab.open(f"/topics/{contents.HOSTILE}/0/{number}")
    tab.see("Value", "Headers" if len(payload) < 100_000 else "Record and batch")
    with tab.page.expect_download() as download:
        tab.page.locator('a[href$="/value.bin"]').click()
    path = download.value.path()
    assert path.read_bytes() == payload
    for each in ("hex", "json", "text"):
        tab.open(f"/topics/{contents.HOSTILE}/0/{number}?vd={each}&kd={each}")
    tab.open(f"/topics/{contents.HOSTILE}/0/{number}?whole=1")
    assert not tab.overflow()


def test_all_is_done_with_the_keyboard_alone(tab: Tab) -> None:
    tab.open("/topics")
    keyboard = tab.page.keyboard
    keyboard.press("Tab")
    assert _focused(tab) == "Skip to the content"
    assert tab.page.evaluate("document.activeElement.getBoundingClientRect().left >= 0")
    keyboard.press("Enter")
    assert tab.page.evaluate("document.activeElement.id") == "main"
    keyboard.press("/")
    keyboard.type("stream-0042")
    with tab.page.expect_event("load"):
        keyboard.press("Enter")
    for _ in range(60):
        keyboard.press("Tab")
        if _focused(tab) == "team-02.stream-0042":
            break
    outline = tab.page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline not in ("none", ""), "what has the focus is not seen to have it"
    with tab.page.expect_event("load"):
        keyboard.press("Enter")
    assert tab.page.locator("h1").inner_text() == "team-02.stream-0042"
    keyboard.press("?")
    assert tab.page.locator("#keys").get_attribute("open") is not None
    # Every control of the page has its turn, and the last leads out of it.
    reached = set()
    for _ in range(150):
        keyboard.press("Tab")
        reached.add(tab.page.evaluate(_PLACE))
    wanted = set(tab.page.evaluate(_PLACES))
    assert wanted <= reached, wanted - reached


def test_a_theme_and_a_zone_are_kept(tab: Tab) -> None:
    tab.open("/topics")
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    light = tab.page.evaluate(ground)
    header = tab.page.locator("header")
    tab.field("Theme", header).select_option("dark")
    with tab.page.expect_event("load"):
        header.get_by_role("button", name="Set").first.click()
    assert urlsplit(tab.page.url).path == "/topics"
    assert tab.page.evaluate(ground) != light
    tab.open("/groups")
    assert tab.page.evaluate(ground) != light
    tab.field("Theme", header).select_option("auto")
    with tab.page.expect_event("load"):
        header.get_by_role("button", name="Set").first.click()
    assert tab.page.evaluate(ground) == light


def test_charts_are_drawn(tab: Tab) -> None:
    tab.open("/")
    charts = tab.page.locator(".chart canvas")
    charts.first.wait_for()
    assert charts.count() == 3
    drawn = """(canvas) => canvas.getContext("2d")
      .getImageData(0, 0, canvas.width, canvas.height).data.some((each) => each)"""
    assert all(tab.page.evaluate(drawn, each.element_handle()) for each in charts.all())
    tab.check()


def test_every_console_of_the_cluster_shows_it(
    site: ConsoleCluster, browser: Any, tab: Tab
) -> None:
    for number in (1, 2):
        other = Tab(browser, site.url(number))
        try:
            other.log_in(ADMIN, PASSWORDS[ADMIN])
            other.open("/groups")
            other.see(contents.BILLING)
            other.open(f"/topics/{contents.ORDERS}/records")
            assert other.page.locator("tbody tr").count() == 50
            other.open("/brokers/0")
            other.see("Directories")
        finally:
            other.close()


def test_there_is_no_page_that_was_not_looked_at(tab: Tab) -> None:
    """Follow one link of each kind, until no new kind of page turns up."""
    known = {_kind(path) for _, path in PAGES}
    found: dict[str, str] = {}
    missed: dict[str, str] = {}
    waiting = [path for _, path in PAGES]
    seen: set[str] = set()
    while waiting:
        path = waiting.pop()
        kind = _kind(path)
        if kind in found or path in seen:
            continue
        seen.add(path)
        answer = tab.context.request.get(path)
        if answer.status != 200:  # the diary names groups that other tests have deleted
            missed[kind] = f"{answer.status} for {path}"
            continue
        found[kind] = path
        if "text/html" in answer.headers["content-type"]:
            for href in re.findall(r'href="(/[^"]*)"', answer.text()):
                if not href.startswith("/static/") and not DOWNLOADS.search(href):
                    waiting.append(unescape(href))
        else:
            known.add(kind)  # a list as JSON or CSV
    assert set(found) == known, {kind: found[kind] for kind in set(found) - known}
    assert set(missed) <= set(found), missed


_PLACE = """() => {
  const each = document.activeElement;
  return [...document.querySelectorAll("a, button, input, select, textarea, summary, [tabindex]")]
    .indexOf(each);
}"""
_PLACES = """() => [...document.querySelectorAll("a, button, input, select, textarea, summary")]
  .map((each, at) => [each, at])
  .filter(([each]) => each.checkVisibility() && each.type !== "hidden" && !each.disabled)
  .map(([each]) => [...document.querySelectorAll(
    "a, button, input, select, textarea, summary, [tabindex]")].indexOf(each))"""


def _focused(tab: Tab) -> str:
    return tab.page.evaluate("document.activeElement.textContent.trim()")


def _readable(name: str) -> str:
    """Return the part of a name before anything that cannot be seen, as the page has it."""
    found = re.match("[\x20-\x7e]*", name)
    assert found is not None
    return re.sub(r"\s+", " ", found[0]).strip()


def _kind(path: str) -> str:
    """Return a path without names and numbers, with the parameters that make another page."""
    parts = urlsplit(path)
    kind = re.sub(r"^/(topics|groups|transactions)/[^/]+(?=/|$)", r"/\1/NAME", parts.path)
    kind = re.sub(r"/\d+(?=/|$)", "/N", kind)
    kind = re.sub(r"/header-?\d+", "/header", kind)
    keys = {key for key, _ in parse_qsl(parts.query)} & {"whole"}
    return kind + "".join(f"?{key}" for key in sorted(keys))

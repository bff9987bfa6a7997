"""Every page, and what all of them have in common."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.unit.console.site import Site, text_of

PAGES = (
    "/",
    "/brokers",
    "/brokers/0",
    "/topics",
    "/new-topic",
    "/groups",
    "/transactions",
    "/acls",
    "/users",
    "/quotas",
    "/configs",
    "/diary",
)
LISTS = (
    "/brokers", "/topics", "/groups", "/transactions", "/acls", "/users", "/quotas", "/configs",
    "/diary",
)  # fmt: skip
ID = re.compile(r' id="([^"]*)"')
LABEL = re.compile(r'<label for="([^"]*)"')
CONTROL = re.compile(r"<(input|select|textarea)([^>]*)>")


@pytest.mark.parametrize("path", PAGES)
def test_every_page_is_complete_and_accessible_in_its_bones(site: Site, path: str) -> None:
    page = site.page(path)
    assert page.count("<h1>") == 1
    assert page.count("<main ") == 1
    assert '<html lang="en"' in page
    ids = ID.findall(page)
    assert len(ids) == len(set(ids)), "an id occurs twice"
    labels = set(LABEL.findall(page))
    for kind, attributes in CONTROL.findall(page):
        if 'type="hidden"' in attributes:
            continue
        found = ID.search(attributes)
        assert found is not None, f"a {kind} without an id: {attributes}"
        assert found[1] in labels, f"a {kind} without a label: {attributes}"
    for table in re.findall(r"<table.*?</table>", page, re.DOTALL):
        assert "<caption>" in table
        assert not re.search(r"<th(?![^>]*scope=)[ >]", table), "a <th> without a scope"


@pytest.mark.parametrize("path", PAGES)
def test_no_page_has_code_or_another_host_in_it(site: Site, path: str) -> None:
    page = site.page(path)
    assert not re.search(r"<script(?![^>]* src=\"/static/)", page)
    assert "<style" not in page
    assert not re.search(r"\son[a-z]+=", page), "an inline handler"
    assert not re.search(r"\sstyle=", page), "an inline style"
    assert not re.search(r"""\s(src|href|action|srcset|data)=["']?(https?:)?//""", page)


@pytest.mark.parametrize("path", LISTS)
def test_every_list_is_also_json_and_csv(site: Site, path: str) -> None:
    answer = site.get(f"{path}.json")
    assert answer.headers["content-type"] == "application/json"
    assert set(answer.json()) == {"rows", "missing"}
    table = site.get(f"{path}.csv")
    assert table.headers["content-disposition"].startswith("attachment")
    assert table.headers["content-type"] == "application/octet-stream"
    assert table.text.splitlines()[0].count(",") >= 1


def test_a_page_that_does_not_exist_says_so(site: Site) -> None:
    answer = site.get("/no-such-page")
    assert answer.status_code == 404
    assert "There is no such page." in text_of(answer.text)
    assert json.loads(site.get("/no-such-page.json").text) == {"error": "There is no such page."}


def test_what_the_broker_rejects_is_shown_in_its_words(site: Site) -> None:
    answer = site.get("/topics/absent")
    assert answer.status_code == 404
    assert "absent" in text_of(answer.text)


def test_without_an_authorizer_every_page_says_so(site: Site) -> None:
    assert "This broker has no authorizer" in site.page("/")


def test_the_theme_is_kept_in_a_cookie(site: Site) -> None:
    assert "data-theme" not in site.page("/")
    answer = site.post("/theme", {"theme": "dark", "next": "/topics"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/topics")
    assert 'data-theme="dark"' in site.page("/topics")
    site.post("/theme", {"theme": "auto"})
    assert "data-theme" not in site.page("/")


def test_pages_do_not_name_modules_that_are_missing() -> None:
    from importlib.util import find_spec

    from barnabas.console.app import PAGES as MODULES

    for name in MODULES:
        assert find_spec(f"barnabas.console.pages.{name}") is not None
    folder = Path(__file__).parents[3] / "src" / "barnabas" / "console" / "pages"
    assert {each.stem for each in folder.glob("*.py")} - {"__init__"} == set(MODULES)

"""What the tests of pages about records share."""

from __future__ import annotations

import json
import re
from html import unescape
from html.parser import HTMLParser
from typing import Any

import httpx
from tests.unit.broker.serving import TIMESTAMP
from tests.unit.console.site import Site, text_of

HIDDEN = re.compile("[\0-\x08\x0b-\x1f\x7f\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")


class _Checker(HTMLParser):
    """Collects what a page must not have."""

    def __init__(self) -> None:
        super().__init__()
        self.wrong: list[str] = []
        self.scripts = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = dict(attrs)
        if tag == "script":
            self.scripts += 1
            if not (names.get("src") or "").startswith("/static/"):
                self.wrong.append(f"inline script: {attrs}")
        if tag in ("style", "img", "iframe"):
            self.wrong.append(tag)
        for name, value in attrs:
            if name.startswith(("on", "hx-on")) or name == "style":
                self.wrong.append(f"{tag} {name}={value}")
            if value and re.match(r"(?i)\s*javascript:", value):
                self.wrong.append(f"{tag} {name}={value}")


def check(response: httpx.Response, status: int = 200) -> str:
    """Hold that a page has nothing of a record unescaped, and no hidden character."""
    assert response.status_code == status, (response.status_code, text_of(response.text)[:500])
    page = response.text
    checker = _Checker()
    checker.feed(page)
    assert checker.wrong == []
    hidden = HIDDEN.search(page)
    assert hidden is None, page[max(0, hidden.start() - 80) : hidden.end() + 80]
    return page


def offsets_in(page: str) -> list[int]:
    return [int(found) for found in re.findall(r'name="place" value="0:([0-9]+)"', page)]


def link(page: str, title: str) -> str:
    found = re.search(rf'<a href="([^"]*)"[^>]*>{re.escape(title)}</a>', page)
    assert found is not None, text_of(page)
    return unescape(found[1])


def confirm(site: Site, page: str) -> httpx.Response:
    """Send the form of a preview as a browser would."""
    form = re.search(
        r'<form method="post" action="([^"]*)">((?:(?!</form>).)*name="confirmed".*?)</form>',
        page,
        re.DOTALL,
    )
    assert form is not None, text_of(page)
    fields = re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)">', form[2])
    fields += re.findall(r'<textarea name="([^"]*)" hidden>\n(.*?)</textarea>', form[2], re.DOTALL)
    return site.send(unescape(form[1]), [(unescape(n), unescape(v)) for n, v in fields])


def rows_of(count: int, start: int = 0) -> list[Any]:
    return [
        (TIMESTAMP + each, f"key-{each}".encode(), json.dumps({"n": each}).encode(), ())
        for each in range(start, start + count)
    ]


def token(site: Site, base: str) -> list[tuple[str, str]]:
    page = site.get(f"{base}/records/produce").text
    found = re.search(r'name="_token" value="([^"]*)"', page)
    assert found is not None
    return [("_token", found[1])]

"""A real Chromium: found, started, and watched. Whatever a page does wrong fails the test.

Debian's browser is driven by Playwright's Python package, which downloads nothing. It resolves no
name but the loopback's address, so that a page could not reach another host if it tried.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import (
        Browser,
        BrowserContext,
        ConsoleMessage,
        Dialog,
        Locator,
        Request,
        Response,
        ViewportSize,
    )

ROOT = Path(__file__).parents[3]
AXE = ROOT / ".deps" / "axe-core" / "node_modules" / "axe-core" / "axe.min.js"
SCREENSHOTS = ROOT / "build" / "console-screenshots"
DEADLINE_MS = 30_000
DESKTOP: ViewportSize = {"width": 1280, "height": 900}
PHONE: ViewportSize = {"width": 390, "height": 844}
ARGUMENTS = [
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--disable-dev-shm-usage",
    "--disable-gpu",
]
CANARY = "canary"
"""What every hostile script would write to the browser's console, if it ran."""
INJECTED = """
() => [...document.querySelectorAll("*")].filter((each) =>
  each.matches("script:not([src]), iframe, object, embed, base, main img, [style*=url]") ||
  [...each.attributes].some(({name, value}) =>
    name.startsWith("on") || (name !== "value" && /^javascript:/i.test(value)))
).map((each) => each.outerHTML.slice(0, 200))
"""
SERIOUS = ("serious", "critical")


def program() -> str:
    """Return the path of Debian's Chromium; skip the test without it, or without its driver."""
    pytest.importorskip("playwright.sync_api", reason="pip install playwright")
    found = shutil.which("chromium")
    if found is None:
        pytest.skip("chromium is missing: make deps installs Debian's package")
    return found


@cache
def axe_source() -> str:
    """Return axe-core; skip the test without it."""
    if not AXE.exists():
        pytest.skip("axe-core is missing: make deps fetches it from npm")
    return AXE.read_text()


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start the browser, and end it."""
    path = program()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


class Tab:
    """One tab with cookies of its own, of one console; it keeps what its pages did wrong."""

    def __init__(self, browser: Browser, url: str, **options: Any) -> None:
        self.url = url.rstrip("/")
        self.complaints: list[str] = []
        self.expected: set[int] = set()
        """Statuses of answers that are no complaint."""
        context: BrowserContext = browser.new_context(
            base_url=self.url, viewport=DESKTOP, color_scheme="light", **options
        )
        context.set_default_timeout(DEADLINE_MS)
        self.context = context
        self.page = context.new_page()
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.complaints.append(f"uncaught: {error}"))
        self.page.on("dialog", self._dialog)
        self.page.on("request", self._request)
        self.page.on("response", self._response)

    def close(self) -> None:
        """Close the tab."""
        self.context.close()

    def take_complaints(self) -> list[str]:
        """Return what was wrong since the last call."""
        taken, self.complaints = self.complaints, []
        return taken

    def open(self, path: str, status: int = 200) -> None:
        """Load a page, which answers with a status, and look whether it is harmless."""
        self.expected.add(status)
        try:
            answer = self.page.goto(path, wait_until="load")
        finally:
            self.expected.discard(status)
        assert answer is not None, path
        assert answer.status == status, (path, answer.status, self.text())
        self.check()

    def check(self) -> None:
        """Fail for what the page has done wrong so far, or has become."""
        injected = self.page.evaluate(INJECTED)
        assert not injected, (self.page.url, injected)
        assert not self.complaints, (self.page.url, self.complaints)

    def text(self, selector: str = "main") -> str:
        """Return what one reads on the page."""
        return re.sub(r"\s+", " ", self.page.locator(selector).inner_text())

    def see(self, *texts: str) -> None:
        """Wait until the page says each of some texts, and look whether it is harmless."""
        from playwright.sync_api import expect

        for text in texts:
            expect(self.page.locator("main")).to_contain_text(text, timeout=DEADLINE_MS)
        self.check()

    def field(self, label: str, within: Locator | None = None) -> Locator:
        """Return the field with a label."""
        return (within or self.page.locator("main")).get_by_label(label, exact=True)

    def unfold(self, summary: str) -> Locator:
        """Open a part of the page that is folded, and return it."""
        # By its beginning, and a whole word: "Delete it" is no "Delete its offsets".
        title = re.compile(rf"^\s*{re.escape(summary)}\b")
        part = self.page.locator("details", has=self.page.locator("summary", has_text=title))
        if part.get_attribute("open") is None:
            part.locator("summary").click()
        return part

    def press(self, button: str, within: Locator | None = None) -> None:
        """Press a button that sends a form, and wait for the answer, which is another document."""
        place = within or self.page.locator("main")
        with self.page.expect_event("load"):
            place.get_by_role("button", name=button, exact=True).click()
        self.check()

    def log_in(self, name: str, password: str) -> None:
        """Log in, by the form."""
        self.open("/login")
        self.field("Name").fill(name)
        self.field("Password").fill(password)
        self.press("Log in")

    def shoot(self, name: str, *, whole: bool = False) -> None:
        """Keep a picture of the page."""
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=whole)

    def audit(self, rules: Sequence[str] = ()) -> list[str]:
        """Return the serious findings of axe-core on this page, of some rules or of all."""
        if not self.page.evaluate("typeof axe === 'object'"):
            self.page.evaluate(axe_source())
        options: dict[str, Any] = {"resultTypes": ["violations"]}
        if rules:
            options["runOnly"] = list(rules)
        found = self.page.evaluate("(options) => axe.run(document, options)", options)
        return [
            f"{each['id']} ({each['impact']}): {node['html'][:160]} {node['failureSummary']}"
            for each in found["violations"]
            if each["impact"] in SERIOUS
            for node in each["nodes"][:3]
        ]

    def overflow(self) -> str:
        """Return which element makes the page scroll sideways; empty if none does."""
        return self.page.evaluate(
            """() => {
              const width = document.documentElement.clientWidth;
              if (document.documentElement.scrollWidth <= width) return "";
              const wide = [...document.querySelectorAll("body *")].filter((each) =>
                each.getBoundingClientRect().right > width + 1 && !each.closest(".scroll, pre"));
              return `${document.documentElement.scrollWidth} > ${width}: ` +
                wide.slice(0, 3).map((each) => each.outerHTML.slice(0, 160)).join(" | ");
            }"""
        )

    def _console(self, message: ConsoleMessage) -> None:
        # Answers with an error are seen by `_response`, which knows which were expected.
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.complaints.append(f"console: {message.text}")

    def _dialog(self, dialog: Dialog) -> None:
        self.complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _request(self, request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme == "data":
            return
        if f"{parts.scheme}://{parts.netloc}" != self.url:
            self.complaints.append(f"request to another host: {request.url}")

    def _response(self, response: Response) -> None:
        if response.status >= 400 and response.status not in self.expected:
            self.complaints.append(f"{response.status} for {response.url}")

"""Texts, numbers, sizes, durations and times, as pages show them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta, timezone

import pytest
from markupsafe import Markup

from barnabas.console import rendering
from barnabas.console.rendering import Page, duration, moment, number, size, visible
from barnabas.console.segments import segment


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("plain äöü 漢字 \t\n", "plain äöü 漢字 \t\n"),
        ("a\0b", "a\u2400b"),
        ("\x1b[2J", "\u241b[2J"),
        ("\x7f", "\u2421"),
        ("\u202e", "\u27e8U+202E\u27e9"),
        ("\u2066\u2069", "\u27e8U+2066\u27e9\u27e8U+2069\u27e9"),
        ("\r", "\u240d"),
        ("\ud800", "\u27e8U+D800\u27e9"),
        ("\U000e0041", "\u27e8U+E0041\u27e9"),
    ],
)
def test_what_is_invisible_becomes_a_symbol(given: str, shown: str) -> None:
    assert visible(given) == shown


@pytest.mark.parametrize(
    ("given", "shown"),
    [(0, "0"), (1234567, "1,234,567"), (2**63, "9,223,372,036,854,775,808"), (1.25, "1.2"),
     (0.00123, "0.00123"), (None, "–"), (float("nan"), "–"), (3.0, "3")],
)  # fmt: skip
def test_numbers(given: float | None, shown: str) -> None:
    assert number(given) == shown


@pytest.mark.parametrize(
    ("given", "shown"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (1_500_000, "1.5 MB"), (5e15, "5000.0 TB"),
     (None, "–"), (-1, "–"), (float("nan"), "–")],
)  # fmt: skip
def test_sizes(given: float | None, shown: str) -> None:
    assert size(given) == shown


@pytest.mark.parametrize(
    ("given", "shown"),
    [(0, "0 ms"), (999, "999 ms"), (1500, "1.5 s"), (60_000, "1 min"), (61_000, "1 min 1 s"),
     (3_660_000, "1 h 1 min"), (90_000_000, "1 d 1 h"), (None, "–"), (-1, "–")],
)  # fmt: skip
def test_durations(given: float | None, shown: str) -> None:
    assert duration(given) == shown


def test_moments_are_absolute_and_in_utc() -> None:
    assert moment(0) == Markup(
        '<time datetime="1970-01-01T00:00:00.000Z">1970-01-01 00:00:00.000 UTC</time>'
    )
    assert moment(None) == moment(-1) == moment(10**18) == "–"


@pytest.mark.parametrize(
    ("given", "sent"),
    [("orders", "orders"), ("a/b", "a%2Fb"), ("..", "%2E%2E"), (".", "%2E"), ("a.b", "a.b"),
     ("ä?#%", "%C3%A4%3F%23%25")],
)  # fmt: skip
def test_a_name_is_one_segment_of_a_path(given: str, sent: str) -> None:
    assert segment(given) == sent


def test_a_page_lets_the_loop_run_while_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendering, "AT_ONCE_S", -1.0)
    seen: list[str] = []

    def pieces() -> Iterator[str]:
        for each in "abc":
            seen.append(each)
            yield each + str(moment(0))

    async def play() -> Page:
        page = Page(pieces, timezone(timedelta(hours=1)), 200)

        async def other() -> None:
            seen.append("another")

        task = asyncio.create_task(other())
        await page.finish()
        await task
        await page.finish()
        return page

    page = asyncio.run(play())
    assert seen == ["a", "another", "b", "c"]
    assert bytes(page.body).decode().count("1970-01-01 01:00:00.000 +01:00") == 3
    assert page.headers["content-length"] == str(len(page.body))
    assert "00:00:00.000 UTC" in moment(0), "the zone is that of the page alone"

"""The diary's list."""

from __future__ import annotations

import pytest
from tests.unit.console.site import Site, text_of

from barnabas.console.window import DiaryEntry


def test_without_a_diary_the_page_says_so(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site.window, "diary", lambda subject="", limit=100: None)
    assert "This broker keeps no diary." in site.page("/diary")


def test_what_the_broker_notes_is_there(site: Site) -> None:
    site.create_topic("noted")
    rows = site.get("/diary.json").json()["rows"]
    about = {each["event"]: each for each in rows if "noted" in each["subject"]}
    row = about["topic.created"]
    assert row["count"] == 1
    found = site.get("/diary.json?q=" + row["subject"]).json()["rows"]
    assert row in found
    assert {each["subject"] for each in found} == {row["subject"]}
    assert row["text"] in text_of(site.page("/"))


def test_entries_are_listed_newest_first_and_escaped(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    def entry(at: int, text: str) -> DiaryEntry:
        return DiaryEntry(at, "group.rebalance", "group:<g>", "member-left", text, {}, 2)

    entries = [entry(2000, "second <script>"), entry(1000, "first")]
    asked = []

    def diary(subject: str = "", limit: int = 100) -> list[DiaryEntry]:
        asked.append(subject)
        return entries

    monkeypatch.setattr(site.window, "diary", diary)
    page = site.page("/diary?q=group:x")
    assert asked == ["group:x"]
    assert "<script>" not in page
    text = text_of(page)
    assert text.index("second <script>") < text.index("1970-01-01 00:00:01.000 UTC")
    assert "1970-01-01 00:00:02.000 UTC" in text
    assert "second <script>" in text_of(site.page("/"))

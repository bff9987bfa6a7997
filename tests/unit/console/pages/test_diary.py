"""The diary's list: of all brokers, filtered, with links to what its entries are about."""

from __future__ import annotations

import pytest
from tests.unit.console.site import SECURED, Site, text_of

from barnabas.console.window import Diary, DiaryEntry
from barnabas.diary.concerns import Concerns
from barnabas.diary.entry import Entry


def test_what_the_broker_notes_is_there(site: Site) -> None:
    site.create_topic("noted")
    rows = site.get("/diary.json").json()["rows"]
    about = {each["event"]: each for each in rows if "noted" in each["subject"]}
    row = about["topic.created"]
    assert (row["count"], row["broker"]) == (1, 0)
    found = site.get("/diary.json?q=" + row["subject"].upper()).json()["rows"]
    assert row in found
    assert {each["subject"] for each in found} == {row["subject"]}
    assert row["text"] in text_of(site.page("/"))
    kinds = {each["event"] for each in site.get("/diary.json?kind=topic").json()["rows"]}
    assert kinds == {"topic.created"}
    page = site.page("/diary?kind=topic")
    assert 'href="/topics/noted"' in page
    assert 'href="/diary.json?kind=topic' in page, "downloads keep the filter"
    assert "There is no such entry." in site.page("/diary?q=absent")


def test_entries_of_other_brokers_are_listed_newest_first_and_escaped(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    def entry(at: int, text: str) -> DiaryEntry:
        return DiaryEntry(at, "group.rebalance", "group:<g>", "member-left", text, {}, 2, 7)

    entries = [entry(2000, "second <script>"), entry(1000, "first")]
    asked: list[bool] = []

    async def diary(limit: int = 100, wanted: Concerns | None = None) -> Diary:
        if wanted is not None:
            some = Entry(1, 7, 1, "group.rebalance", "group:x", "member-left", {})
            other = Entry(1, 7, 1, "isr.shrink", "orders-1", "lag-time", {})
            asked.extend([wanted(some), wanted(other)])
        return Diary(entries, "broker 3 is <b>not</b> alive")

    monkeypatch.setattr(site.window, "diary", diary)
    page = site.page("/diary?q=group:x&kind=group")
    assert asked == [True, False]
    assert "<script>" not in page
    assert "<b>not" not in page
    text = text_of(page)
    assert "Entries of other brokers may be missing: broker 3 is <b>not</b> alive" in text
    assert text.index("second <script>") < text.index("1970-01-01 00:00:01.000 UTC")
    assert "1970-01-01 00:00:02.000 UTC" in text
    assert 'href="/groups/%3Cg%3E"' in page
    assert "second <script>" in text_of(site.page("/"))


def test_a_user_without_rights_sees_no_entries(tmp_path: object) -> None:
    with Site(tmp_path, SECURED) as secured:  # type: ignore[arg-type]
        secured.create_topic("secret-plans")
        secured.log_in("alice", "alice-secret")
        for path in ("/diary", "/diary?kind=topic", "/"):
            assert "secret-plans" not in secured.page(path)
        assert "You may not see the diary" in secured.page("/diary")
        secured.serving.lines.clear()

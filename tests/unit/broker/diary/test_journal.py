"""One note is an entry, a log line and a count, which agree."""

from __future__ import annotations

import logging

import pytest

from barnabas.broker.diary.journal import Journal
from barnabas.diary.entry import Entry
from barnabas.metrics.catalogue.diary import ENTRIES, REBALANCES
from barnabas.metrics.registry import Registry
from barnabas.model.note import Note

JOINED = Note(
    "group.rebalance",
    "group:g",
    "member-joined",
    {"generation": 1, "member": "m1", "host": "10.0.0.7"},
)
THROTTLED = Note(
    "throttle.begin",
    "client:app@::1",
    "fetch",
    {"entity": "user a", "rate": 2.0, "limit": 1.0, "delay_ms": 5},
)
LEADS = Note(
    "role.leads",
    "t-0",
    "assigned",
    {
        "leader": 7,
        "leader_epoch": 0,
        "offset": 0,
        "version": 0,
        "high_watermark": 0,
        "isr": [7],
        "adding": [],
        "removing": [],
        "previous": -1,
        "previous_epoch": -1,
    },
)


@pytest.fixture
def metrics() -> Registry:
    return Registry()


@pytest.fixture
def journal(metrics: Registry, caplog: pytest.LogCaptureFixture) -> Journal:
    caplog.set_level(logging.INFO, "barnabas")
    made = Journal(metrics, lambda: 1_000)
    made.identify(7)
    return made


def test_the_three_agree(
    journal: Journal, metrics: Registry, caplog: pytest.LogCaptureFixture
) -> None:
    journal.note(JOINED)
    [entry] = journal.ring
    assert (entry.broker, entry.at_ms, entry.event, entry.cause) == (
        7,
        1_000,
        "group.rebalance",
        "member-joined",
    )
    [line] = caplog.records
    assert line.name == "barnabas.groups"
    assert vars(line)["event"] == "group.rebalance"
    assert vars(line)["fields"] == {"subject": "group:g", "cause": "member-joined", **entry.data}
    assert "member m1 (10.0.0.7) joined" in line.getMessage()
    assert metrics.value(ENTRIES, "group.rebalance") == 1
    assert metrics.value(REBALANCES, "member-joined") == 1


def test_what_clients_repeat_is_logged_once_and_counted_each_time(
    journal: Journal, metrics: Registry, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(5):
        journal.note(THROTTLED)
    [entry] = journal.ring
    assert entry.count == 5
    assert len(caplog.records) == 1
    assert metrics.value(ENTRIES, "throttle.begin") == 5


def test_roles_are_logged_and_counted_alone(
    journal: Journal, metrics: Registry, caplog: pytest.LogCaptureFixture
) -> None:
    journal.note(LEADS)
    assert len(journal.ring) == 0
    assert [record.name for record in caplog.records] == ["barnabas.state_change"]
    assert metrics.value(ENTRIES, "role.leads") == 1


@pytest.mark.parametrize("note", [Note("a.new", "x", "y"), JOINED._replace(cause="a-new-one")])
def test_a_cause_outside_of_the_closed_list_is_reported(
    journal: Journal, metrics: Registry, caplog: pytest.LogCaptureFixture, note: Note
) -> None:
    journal.note(note)
    assert len(journal.ring) == 0
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert metrics.value(ENTRIES, note.event) == 0


def test_long_names_are_cut(journal: Journal) -> None:
    journal.note(JOINED._replace(data={**JOINED.data, "said": "x" * 100_000}))
    [entry] = journal.ring
    assert len(entry.data["said"]) < 300


def test_what_keeps_the_diary_gets_earlier_entries_too(journal: Journal) -> None:
    kept: list[Entry] = []
    journal.note(JOINED)
    journal.keep_with(kept.append)
    journal.note(JOINED)
    journal.note(THROTTLED)
    journal.note(LEADS)
    assert [(entry.event, entry.count) for entry in kept] == [
        ("group.rebalance", 2),
        ("group.rebalance", 2),
        ("throttle.begin", 1),
    ]

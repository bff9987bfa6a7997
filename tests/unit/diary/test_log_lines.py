"""Log lines of notes: Kafka's words where tools look for them."""

from __future__ import annotations

import pytest
from tests.unit.diary.test_sentences import DATA

from barnabas.diary.catalogue import EVENTS
from barnabas.diary.log_lines import log_line
from barnabas.model.note import Note

ROLE = {
    "leader": 1,
    "leader_epoch": 7,
    "offset": 884_213,
    "version": 9,
    "high_watermark": 884_210,
    "isr": [1, 2],
    "adding": [],
    "removing": [],
    "previous": 3,
    "previous_epoch": 6,
}
ELECTED = {**DATA["leader.elected"], "controller_epoch": 5, "from_state": "OfflinePartition"}
SHRUNK = {
    **DATA["isr.shrink"],
    "high_watermark": 884_210,
    "end_offset": 884_221,
    "replicas": [{"id": 3, "end_offset": 883_740, "behind": 481, "caught_up_ms_ago": 30_412}],
}
TRUNCATED = {"from": 9, "to": 5, "leader": 1, "leader_epoch": 7}


@pytest.mark.parametrize(
    ("note", "parts"),
    [
        (
            Note("role.leads", "orders-0", "assigned", ROLE),
            [
                "[Broker id=1] Leader orders-0 starts at leader epoch 7 from offset 884213 with ",
                "partition epoch 9, high watermark 884210, ISR [1,2]",
                "Previous leader 3",
            ],
        ),
        (
            Note("role.follows", "orders-0", "assigned", ROLE),
            ["[Broker id=1] Follower orders-0 starts at leader epoch 7", "Current leader is 1"],
        ),
        (
            Note("leader.elected", "orders-0", "unclean", ELECTED),
            [
                "[Controller id=1 epoch=5] Changed partition orders-0 from OfflinePartition to ",
                "OnlinePartition with leader 1, ISR [1,2], leader epoch 7",
                "Cause: unclean",
            ],
        ),
        (
            Note("isr.shrink", "orders-0", "lag-time", SHRUNK),
            [
                "[Partition orders-0 broker=1] Shrinking ISR from 1,2,3 to 1,2. Leader: ",
                "(highWatermark: 884210, endOffset: 884221). Out of sync replicas: (brokerId: 3, ",
                "endOffset: 883740",
                "Cause: lag-time, 3 is 481 behind",
            ],
        ),
        (
            Note("isr.expand", "orders-0", "caught-up", {**DATA["isr.expand"], "version": 48}),
            ["ISR updated to 1,2,3 and version updated to 48", "Cause: caught-up 3"],
        ),
        (
            Note("group.rebalance", "group:g", "session-timeout", DATA["group.rebalance"]),
            ["Preparing to rebalance group g", "old generation 6", "Cause: session-timeout"],
        ),
        (
            Note("group.stable", "group:g", "member-left", DATA["group.stable"]),
            ["Stabilized group g generation 7 with 2 members"],
        ),
        (
            Note("log.truncated", "orders-0", "diverged", TRUNCATED),
            ["[Partition orders-0 broker=1] Truncating to offset 5"],
        ),
    ],
)
def test_what_tools_look_for(note: Note, parts: list[str]) -> None:
    line = log_line(note, 1)
    for part in parts:
        assert part in line


@pytest.mark.parametrize("event", [name for name, each in EVENTS.items() if each.logged])
def test_every_logged_event_has_a_line_even_without_data(event: str) -> None:
    for cause in EVENTS[event].causes:
        line = log_line(Note(event, "orders-0", cause), 1)
        assert line.startswith("orders-0: ")
        assert "\n" not in line


def test_others_are_sentences() -> None:
    note = Note("session.lost", "broker:2", "expired", {"epoch": 5})
    assert log_line(note, 2).startswith("broker:2: its session with the coordination service")

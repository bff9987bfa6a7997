"""What happened to groups, in words: who, how many, and why."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.diary.group_sentences import GROUP_SENTENCES

STABLE = {"generation": 7, "before": 1, "after": 2, "took_ms": 3_200, "assigning_ms": 0}


def said(event: str, cause: str, **data: Any) -> str:
    return GROUP_SENTENCES[event](cause, data)


@pytest.mark.parametrize(
    ("data", "who"),
    [
        ({"member": "m1", "host": "10.0.0.7"}, "member m1 (10.0.0.7) left"),
        ({"member": "m1"}, "member m1 left"),
        ({"member": "m1", "said": "bye"}, 'member m1 left; it said: "bye"'),
        ({}, "a member left"),
    ],
)
def test_a_member_is_named_as_far_as_it_is_known(data: dict[str, str], who: str) -> None:
    text = said("group.rebalance", "member-left", generation=6, **data)
    assert text == f"rebalance began in generation 6: {who}"


@pytest.mark.parametrize(
    ("step", "missed"),
    [
        ("join", "did not rejoin"),
        ("sync", "did not ask for its assignment"),
        ("revoke", "did not give up its partitions"),
        ("another", "was too slow"),
    ],
)
def test_what_a_slow_member_has_missed(step: str, missed: str) -> None:
    data = {"generation": 6, "missing": ["m1", "m2"], "timeout_ms": 60_000, "step": step}
    assert said("group.rebalance", "rebalance-timeout", **data).endswith(
        f"m1, m2 {missed} within 60.0 s (rebalance timeout)"
    )


def test_a_member_that_never_sent_a_heartbeat_had_not_joined() -> None:
    data = {"generation": 6, "member": "m1", "timeout_ms": 10_000}
    first = said("group.rebalance", "session-timeout", **data)
    assert first.endswith("member m1 did not complete its first join")
    later = said("group.rebalance", "session-timeout", **data, silent_ms=11_000)
    assert later.endswith("sent no heartbeat for 11.0 s (session timeout 10.0 s)")


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"a": [3, 6], "b": [1, 2]}, "a has 6 partitions, not 3; b has 2 partitions, not 1"),
        ({}, "recreated"),
    ],
)
def test_changed_topics(changes: dict[str, list[int]], text: str) -> None:
    found = said("group.rebalance", "topic-changed", generation=6, changes=changes)
    assert found.endswith(f": the subscribed topics changed: {text}")


def test_only_the_leader_of_a_group_is_called_so() -> None:
    texts = [
        said("group.rebalance", "member-rejoined", generation=6, member="m1", leader=leader)
        for leader in (True, False)
    ]
    assert ["m1, the leader, joined again" in text for text in texts] == [True, False]


def test_a_round_names_who_came_and_went_and_nobody_else() -> None:
    quiet = "stable in generation 7 after 3.2 s, with 2 members instead of 1; begun by a new member"
    assert said("group.stable", "member-joined", **STABLE) == quiet
    busy = {"joined": ["m2", "m3"], "left": [], "timed_out": ["m1"]}
    text = said("group.stable", "member-joined", **STABLE, **busy)
    assert text == f"{quiet}; joined: m2, m3; timed out: m1"
    assert said("group.empty", "member-left", generation=8, left=["m2"]) == (
        "empty since generation 8, by a member that left; left: m2"
    )


def test_the_end_of_groups_and_offsets() -> None:
    assert "its last offsets expired" in said("group.deleted", "expired")
    assert said("group.deleted", "admin", offsets=1, principal="User:alice") == (
        "deleted with 1 offset by User:alice"
    )
    assert said("offsets.expired", "retention", offsets=1_200, retention_ms=7_200_000) == (
        "1,200 offsets expired after 2.0 h (offsets.retention.minutes)"
    )


@pytest.mark.parametrize(("partitions", "rest"), [({}, ""), ({"partitions": 5}, " and 3 more")])
def test_moves_that_are_not_named_are_counted(partitions: dict[str, int], rest: str) -> None:
    moves = {"a-0": [20, 3], "a-1": [None, 4]}
    assert said("offsets.reset", "admin", client_id="app", moves=moves, **partitions) == (
        f"offsets set by app, without members: a-0 from 20 to 3, a-1 from None to 4{rest}"
    )

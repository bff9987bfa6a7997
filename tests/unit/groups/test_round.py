"""Why groups rebalance, as the coordinator notes it: causes, members and durations."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.groups.host import Host, commit, heartbeat, join, leave, protocols
from tests.unit.groups.host import stable as static_alone
from tests.unit.groups.host import sync as sync_request
from tests.unit.groups.test_classic import enter, settle, stable
from tests.unit.groups.test_consumer import BAR, FOO, TOPICS, Consumer, beat
from tests.unit.groups.test_consumer import settle as settle_consumers

from barnabas.assignment.contract import Member
from barnabas.assignment.embedded import encode_subscription
from barnabas.groups.options import GroupOptions
from barnabas.groups.round import Round, Trigger, leaving_cause
from barnabas.model.error_codes import ErrorCode
from barnabas.model.note import Note
from barnabas.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity

SESSION_MS = 10_000


def taken(host: Host) -> list[Note]:
    notes, host.notes = host.notes, []
    return notes


def events(notes: list[Note]) -> list[tuple[str, str]]:
    return [(note.event.removeprefix("group."), note.cause) for note in notes]


@pytest.fixture
def host() -> Host:
    return Host()


@pytest.fixture
def modern() -> Host:
    return Host(topics=dict(TOPICS))


# -- classic groups


def test_members_join(host: Host) -> None:
    stable(host)
    began, settled = taken(host)
    assert events([began, settled]) == [
        ("rebalance", "member-joined"),
        ("stable", "member-joined"),
    ]
    assert began.subject == settled.subject == "group:g"
    assert began.data["client_id"] == "c"
    assert began.data["host"] == "127.0.0.1"
    assert settled.data["generation"] == 1
    assert (settled.data["before"], settled.data["after"]) == (0, 2)
    assert len(settled.data["joined"]) == 2
    assert settled.data["took_ms"] == settled.data["joining_ms"] == 6_000
    assert settled.data["assigning_ms"] == 0


def test_a_silent_member_and_how_long_each_step_took(host: Host) -> None:
    first, second = stable(host)
    taken(host)
    host.advance(6_000)
    host.send(heartbeat(first, 1))
    host.advance(4_500)
    [began] = taken(host)
    assert events([began]) == [("rebalance", "session-timeout")]
    assert began.data["member"] == second
    assert began.data["silent_ms"] == began.data["timeout_ms"] == SESSION_MS
    assert began.data["state"] == "Stable"
    host.advance(2_000)
    host.send(join(first))
    host.advance(700)
    host.send(sync_request(first, 2, {first: b"all"}))
    [settled] = taken(host)
    assert events([settled]) == [("stable", "session-timeout")]
    assert settled.data["timed_out"] == [second]
    assert (settled.data["before"], settled.data["after"]) == (2, 1)
    assert settled.data["joining_ms"] == 2_500
    assert settled.data["assigning_ms"] == 700
    assert settled.data["took_ms"] == 3_200


@pytest.mark.parametrize(
    ("reason", "cause"),
    [
        (None, "member-left"),
        ("the consumer was closed", "member-left"),
        ("consumer poll timeout has expired.", "poll-interval"),
        ("member was removed by an admin: upgrade", "admin-removed"),
    ],
)
def test_a_member_leaves_and_says_why(host: Host, reason: str | None, cause: str) -> None:
    first, second = stable(host)
    taken(host)
    host.send(
        LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id=second, reason=reason)])
    )
    [began] = taken(host)
    assert events([began]) == [("rebalance", cause)]
    assert (began.data["member"], began.data["said"]) == (second, reason or "")
    host.send(join(first))
    host.send(sync_request(first, 2, {first: b"all"}))
    [settled] = taken(host)
    assert settled.data["left"] == [second]


def test_a_tool_removes_a_static_member_by_its_instance_id(host: Host) -> None:
    static_alone(host)
    taken(host)
    host.send(leave(("", "i")))
    assert events(taken(host)) == [("rebalance", "admin-removed"), ("empty", "admin-removed")]


def test_the_last_member_leaves(host: Host) -> None:
    ids = stable(host)
    taken(host)
    host.send(leave(*((name, None) for name in ids)))
    notes = taken(host)
    assert events(notes) == [("rebalance", "member-left"), ("empty", "member-left")]
    assert notes[-1].data["left"] == ids
    assert notes[-1].data["after"] == 0


def test_members_that_do_not_rejoin_are_named(host: Host) -> None:
    first, second = stable(host)
    taken(host)
    host.send(join(first, protocols=protocols("range", metadata=b"other")))
    assert events(taken(host)) == [("rebalance", "member-rejoined")]
    for _ in range(8):
        host.advance(8_000)
        host.send(heartbeat(second, 1))
    [late] = [note for note in taken(host) if note.cause == "rebalance-timeout"]
    assert late.data["missing"] == [second]
    assert late.data["timeout_ms"] == 60_000
    assert late.data["step"] == "join"


def test_members_that_do_not_sync_are_named(host: Host) -> None:
    first, second = stable(host)
    host.send(join(first))
    host.send(join(second))
    taken(host)
    host.send(sync_request(first, 2))
    for _ in range(8):
        host.advance(8_000)
        host.send(heartbeat(first, 2))
        host.send(heartbeat(second, 2))
    notes = [note for note in taken(host) if note.cause == "rebalance-timeout"]
    assert [note.data["step"] for note in notes] in (["sync"], ["sync", "join"])
    assert second in notes[0].data["missing"] or first in notes[0].data["missing"]


def subscribing(*topics: str) -> list[Any]:
    metadata = encode_subscription(Member("", list(topics)))
    return protocols("range", metadata=metadata)


def test_a_changed_subscription(host: Host) -> None:
    _, second = stable(host, protocols=subscribing("a"))
    taken(host)
    host.send(join(second, protocols=subscribing("a", "b")))
    [began] = taken(host)
    assert events([began]) == [("rebalance", "subscription-changed")]
    assert (began.data["topics_before"], began.data["topics_after"]) == (["a"], ["a", "b"])


def test_changed_assignors(host: Host) -> None:
    _, second = stable(host)
    taken(host)
    host.send(join(second, protocols=protocols("range", "sticky")))
    [began] = taken(host)
    assert events([began]) == [("rebalance", "protocol-changed")]
    assert began.data["protocols_after"] == ["range", "sticky"]


def test_the_leader_joins_again(host: Host) -> None:
    first, _ = stable(host)
    taken(host)
    host.send(join(first, reason="cached metadata has changed"))
    [began] = taken(host)
    assert events([began]) == [("rebalance", "member-rejoined")]
    assert began.data["leader"] is True
    assert began.data["said"] == "cached metadata has changed"


def test_a_restarted_static_member_with_another_protocol(host: Host) -> None:
    token = host.send(join("", "i", protocols=protocols("range", "sticky")), 9)
    host.advance(3_000)
    name = host.answers[token].member_id
    host.ask(sync_request(name, 1, {name: b"mine"}))
    taken(host)
    host.send(join("", "i", protocols=protocols("sticky")))
    [began] = taken(host)
    assert events([began]) == [("rebalance", "static-replaced")]
    assert began.data["instance"] == "i"


def test_a_coordinator_that_allows_fewer_members() -> None:
    host = Host(GroupOptions(size_max=2))
    stable(host)
    host.options = GroupOptions(size_max=1)
    taken(host)
    host.restart()
    [began] = taken(host)
    assert events([began]) == [("rebalance", "coordinator-moved")]
    assert (began.data["size"], began.data["limit"]) == (2, 1)


def test_what_could_not_be_written_is_not_noted(host: Host) -> None:
    first, _ = enter(host)
    host.advance(6_000)
    taken(host)
    host.fail_with = ErrorCode.NOT_ENOUGH_REPLICAS
    host.send(sync_request(first, 1, {first: b"all"}))
    assert taken(host) == []
    host.fail_with = None
    host.send(join(first))
    settle(host, [first], 2)
    assert events(taken(host)) == [("stable", "member-joined")]


# -- consumer groups


def test_members_of_a_consumer_group_join(modern: Host) -> None:
    first = Consumer(modern, "m1", "foo")
    assert events(taken(modern)) == [("rebalance", "member-joined"), ("stable", "member-joined")]
    second = Consumer(modern, "m2", "foo")
    modern.advance(400)
    settle_consumers(first, second)
    began, settled = taken(modern)
    assert events([began, settled]) == [
        ("rebalance", "member-joined"),
        ("stable", "member-joined"),
    ]
    assert began.data["member"] == "m2"
    assert settled.data["joined"] == ["m2"]
    assert (settled.data["before"], settled.data["after"]) == (1, 2)
    assert settled.data["took_ms"] == 400


def test_a_silent_member_of_a_consumer_group(modern: Host) -> None:
    Consumer(modern, "m1", "foo")
    taken(modern)
    modern.advance(45_000)
    began, emptied = taken(modern)
    assert events([began, emptied]) == [
        ("rebalance", "session-timeout"),
        ("empty", "session-timeout"),
    ]
    assert began.data["silent_ms"] == began.data["timeout_ms"] == 45_000


def test_a_member_that_does_not_give_up_its_partitions(modern: Host) -> None:
    first = Consumer(modern, "m1", "foo", rebalance_timeout_ms=20_000)
    second = Consumer(modern, "m2", "foo")
    taken(modern)
    first.beat()  # is told to give some up, and keeps them
    for _ in range(5):
        modern.advance(5_000)
        second.beat()
    late = [note for note in taken(modern) if note.cause == "rebalance-timeout"]
    assert [note.data["step"] for note in late if note.event == "group.rebalance"] == ["revoke"]
    assert late[0].data["missing"] == ["m1"]


def test_topics_grow_and_subscriptions_change(modern: Host) -> None:
    first = Consumer(modern, "m1", "foo")
    taken(modern)
    modern.topics["foo"] = (FOO, 8)
    modern.advance(5_000)
    settle_consumers(first)
    began, _ = taken(modern)
    assert events([began]) == [("rebalance", "topic-changed")]
    assert began.data["changes"] == {"foo": [6, 8]}
    modern.topics["bar"] = (BAR, 3)
    first.take(
        modern.ask(beat("m1", first.epoch, first.owned, subscribed_topic_names=["bar", "foo"]))
    )
    began, *_ = taken(modern)
    assert events([began]) == [("rebalance", "subscription-changed")]
    assert began.data["topics_after"] == ["bar", "foo"]


def test_a_member_of_a_consumer_group_leaves(modern: Host) -> None:
    first = Consumer(modern, "m1", "foo")
    second = Consumer(modern, "m2", "foo")
    settle_consumers(first, second)
    taken(modern)
    modern.ask(beat("m2", -1))
    settle_consumers(first)
    began, settled = taken(modern)
    assert events([began, settled]) == [("rebalance", "member-left"), ("stable", "member-left")]
    assert settled.data["left"] == ["m2"]


def test_a_group_changes_its_protocol() -> None:
    host = Host(GroupOptions(initial_rebalance_delay_ms=0), dict(TOPICS))
    member_id = host.ask(join(protocols=subscribing("foo"))).member_id
    host.send(join(member_id, protocols=subscribing("foo")))
    host.send(sync_request(member_id, 1, {member_id: b""}))
    taken(host)
    Consumer(host, "m2", "foo")
    assert ("rebalance", "migration") in events(taken(host))


# -- offsets


def test_offsets_that_are_set_from_outside(host: Host) -> None:
    host.send(commit({("t", 0): 10}), client_id="app")
    assert taken(host) == [], "a consumer without a group, which goes forward"
    host.send(commit({("t", 0): 20, ("t", 1): 5}), client_id="adminclient-1")
    [tool] = taken(host)
    assert (tool.event, tool.cause) == ("offsets.reset", "tool")
    assert tool.data["moves"] == {"t-0": [10, 20], "t-1": [-1, 5]}
    host.send(commit({("t", 0): 3}), client_id="app")
    [back] = taken(host)
    assert (back.cause, back.data["moves"]) == ("moved-back", {"t-0": [20, 3]})
    assert back.data["client_id"] == "app"


def test_offsets_expire_and_groups_with_them(host: Host) -> None:
    host.send(commit({("t", 0): 10}))
    taken(host)
    host.now_ms += host.options.offsets_retention_ms
    host.apply(host.coordinator.expire_offsets(host.now_ms))
    [expired] = [note for note in taken(host) if note.event == "offsets.expired"]
    assert expired.cause == "retention"
    assert expired.data["offsets"] == 1
    ids = stable(host)
    host.send(leave(*((name, None) for name in ids)))
    taken(host)
    host.apply(host.coordinator.expire_offsets(host.now_ms))
    [gone] = taken(host)
    assert (gone.event, gone.cause) == ("group.deleted", "expired")


def test_a_group_is_deleted(host: Host) -> None:
    host.send(commit({("t", 0): 10}))
    taken(host)
    host.delete("g")
    [gone] = taken(host)
    assert (gone.event, gone.cause, gone.data["offsets"]) == ("group.deleted", "client", 1)


# -- by itself


def test_a_round_counts_the_members_before_it() -> None:
    trigger = Trigger("session-timeout", timed_out=("a", "b"))
    round_ = Round.begun(trigger, 1_000, 3)
    round_.add(trigger)
    result = round_.result(7, 3, 4_000)
    assert (result["before"], result["after"], result["took_ms"]) == (5, 3, 3_000)
    assert result["timed_out"] == ["a", "b"]


def test_only_a_tool_names_a_member_by_its_instance_alone() -> None:
    assert leaving_cause(None, by_instance=True) == "admin-removed"
    assert leaving_cause(None, by_instance=False) == "member-left"

"""The consumer group protocol: heartbeats, epochs, fencing, migration, and whole groups."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.groups.host import Host, commit, commit_codes, fetch, heartbeat, join, leave, sync

from barnabas.groups.classic_group import ClassicGroup
from barnabas.groups.consumer_group import ConsumerGroup
from barnabas.groups.coordinator import GroupCoordinator
from barnabas.groups.options import GroupOptions
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.wire.codec import decode, encode
from barnabas.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeResponse,
)
from barnabas.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)

FOO = b"foo-" * 4
BAR = b"bar-" * 4
TOPICS = {"foo": (FOO, 6), "bar": (BAR, 3)}

Owned = set[tuple[bytes, int]]


@pytest.fixture
def host() -> Host:
    return Host(topics=dict(TOPICS))


def beat(member_id: str, epoch: int, owned: Owned | None = None, **values: Any) -> Any:
    topics: dict[bytes, list[int]] = {}
    for topic_id, number in sorted(owned or ()):
        topics.setdefault(topic_id, []).append(number)
    return ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id=member_id,
        member_epoch=epoch,
        topic_partitions=None
        if owned is None
        else [TopicPartitions(topic_id=t, partitions=n) for t, n in topics.items()],
        **values,
    )


def enter(member_id: str, *topics: str, **values: Any) -> Any:
    merged = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": list(topics), **values}
    return beat(member_id, 0, set(), **merged)


class Consumer:
    """A client that does what it is told: gives back at once, takes over at once."""

    def __init__(self, host: Host, member_id: str, *topics: str, **values: Any) -> None:
        self.host = host
        self.member_id = member_id
        self.owned: Owned = set()
        self.values = values
        self.take(host.ask(enter(member_id, *topics, **values)))

    def take(self, response: Any) -> None:
        assert response.error_code == 0, response
        self.epoch = response.member_epoch
        if response.assignment is not None:
            self.owned = {
                (topic.topic_id, number)
                for topic in response.assignment.topic_partitions
                for number in topic.partitions
            }

    def beat(self) -> None:
        instance_id = self.values.get("instance_id")
        self.take(
            self.host.ask(beat(self.member_id, self.epoch, self.owned, instance_id=instance_id))
        )


def settle(*consumers: Consumer) -> None:
    """Let heartbeats go round until nothing moves; nothing may have two owners meanwhile."""
    for _ in range(20):
        before = [(c.epoch, set(c.owned)) for c in consumers]
        for consumer in consumers:
            consumer.beat()
            owned = [p for c in consumers for p in c.owned]
            assert len(owned) == len(set(owned))
        if before == [(c.epoch, c.owned) for c in consumers]:
            return
    raise AssertionError("does not settle")


def same_state(host: Host, reader: GroupCoordinator | None = None) -> None:
    """A coordinator that reads the log knows what this one knows."""
    live, read = host.coordinator.groups.get("g"), (reader or host.reader).groups.get("g")
    assert isinstance(live, ConsumerGroup)
    assert isinstance(read, ConsumerGroup)
    for name in ("epoch", "target_epoch", "members", "target", "topics", "static", "holders"):
        assert getattr(live, name) == getattr(read, name), name


# -- requests


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (enter("", "foo"), ErrorCode.INVALID_REQUEST),
        (enter("a", "foo", instance_id=""), ErrorCode.INVALID_REQUEST),
        (enter("a", "foo", rack_id=""), ErrorCode.INVALID_REQUEST),
        (enter("a", "foo", rebalance_timeout_ms=-1), ErrorCode.INVALID_REQUEST),
        (enter("a"), ErrorCode.INVALID_REQUEST),
        (beat("a", 0, {(FOO, 1)}, rebalance_timeout_ms=1), ErrorCode.INVALID_REQUEST),
        (beat("a", -3), ErrorCode.INVALID_REQUEST),
        (beat("a", -2), ErrorCode.INVALID_REQUEST),
        (enter("a", "foo", server_assignor="best"), ErrorCode.UNSUPPORTED_ASSIGNOR),
        (enter("a", subscribed_topic_regex="("), ErrorCode.INVALID_REGULAR_EXPRESSION),
        (beat("a", 3), ErrorCode.GROUP_ID_NOT_FOUND),
        (beat("a", -1), ErrorCode.GROUP_ID_NOT_FOUND),
    ],
)
def test_heartbeats_that_are_refused(host: Host, request_: Any, code: ErrorCode) -> None:
    response = host.ask(request_)
    assert response.error_code == code
    assert response.error_message
    assert host.coordinator.groups == {}


def test_group_needs_a_name_and_the_protocol_must_be_on(host: Host) -> None:
    request = enter("a", "foo")
    request.group_id = ""
    assert host.ask(request).error_code == ErrorCode.INVALID_REQUEST
    off = Host(GroupOptions(consumer_protocol=False))
    assert off.ask(enter("a", "foo")).error_code == ErrorCode.UNSUPPORTED_VERSION


def test_first_version_lets_the_broker_name_members(host: Host) -> None:
    response = host.ask(enter("", "foo"), 0)
    assert response.error_code == 0
    assert response.member_id in host.coordinator.groups["g"].members


def test_member_gets_everything_at_once(host: Host) -> None:
    response = host.ask(enter("a", "foo", "gone"))
    assert (response.member_epoch, response.heartbeat_interval_ms) == (1, 5_000)
    (topic,) = response.assignment.topic_partitions
    assert (topic.topic_id, topic.partitions) == (FOO, list(range(6)))
    same_state(host)
    quiet = host.ask(beat("a", 1))
    assert (quiet.member_epoch, quiet.assignment) == (1, None)
    full = host.ask(
        beat(
            "a", 1, {(FOO, 0)}, rebalance_timeout_ms=60_000, subscribed_topic_names=["foo", "gone"]
        )
    )
    assert full.assignment is not None


def test_quiet_heartbeats_write_nothing(host: Host) -> None:
    consumer = Consumer(host, "a", "foo")
    written = len(host.log)
    for _ in range(10):
        host.advance(5_000)
        consumer.beat()
    assert len(host.log) == written


def test_members_share_as_they_come_and_go(host: Host) -> None:
    a = Consumer(host, "a", "foo", "bar")
    assert len(a.owned) == 9
    b = Consumer(host, "b", "foo", "bar")
    assert b.owned == set()
    settle(a, b)
    assert sorted([len(a.owned), len(b.owned)]) == [4, 5]
    assert host.coordinator.groups["g"].state_name == "Stable"
    same_state(host)
    assert host.ask(beat("a", -1)).member_epoch == -1
    settle(b)
    assert len(b.owned) == 9
    same_state(host)
    host.ask(beat("b", -1))
    assert host.coordinator.groups["g"].state_name == "Empty"
    same_state(host)


def test_states_of_a_group(host: Host) -> None:
    a = Consumer(host, "a", "foo")
    Consumer(host, "b", "foo")
    group = host.coordinator.groups["g"]
    assert group.state_name == "Reconciling"
    host.ask(beat("b", -1))
    assert group.state_name == "Assigning"
    a.beat()
    assert group.state_name == "Stable"


def test_new_partitions_and_new_topics_are_noticed(host: Host) -> None:
    a = Consumer(host, "a", "foo", "new")
    host.topics["foo"] = (FOO, 8)
    host.topics["new"] = (BAR, 1)
    a.beat()
    assert len(a.owned) == 6
    host.advance(5_000)
    a.beat()
    assert len(a.owned) == 9
    same_state(host)


def test_deleted_topic_is_given_back(host: Host) -> None:
    a = Consumer(host, "a", "foo", "bar")
    del host.topics["bar"]
    host.advance(5_000)
    settle(a)
    assert a.owned == {(FOO, n) for n in range(6)}
    same_state(host)


def test_subscription_by_expression(host: Host) -> None:
    a = Consumer(host, "a", subscribed_topic_regex="b.r|fo+")
    assert len(a.owned) == 9
    host.topics["foobar"] = (b"n" * 16, 1)
    host.topics["baar"] = (b"m" * 16, 1)
    host.topics["fooo"] = (b"l" * 16, 1)
    host.advance(5_000)
    a.beat()
    assert {topic_id for topic_id, _ in a.owned} == {FOO, BAR, b"l" * 16}
    same_state(host)
    a.take(
        host.ask(
            beat("a", a.epoch, a.owned, subscribed_topic_regex="", subscribed_topic_names=["bar"])
        )
    )
    settle(a)
    assert {topic_id for topic_id, _ in a.owned} == {BAR}
    same_state(host)


def test_most_wanted_assignor_is_used(host: Host) -> None:
    a = Consumer(host, "a", "foo", "bar", server_assignor="range")
    b = Consumer(host, "b", "foo", "bar", server_assignor="range")
    settle(a, b)
    assert b.owned == {(FOO, 3), (FOO, 4), (FOO, 5), (BAR, 2)}


class ToTheFirst:
    """An assignor of somebody else: the first member reads everything."""

    name = "first"
    is_cooperative = True

    def user_data(self, owned: Any, generation: int) -> None:
        """Nothing."""

    def assign(self, partition_counts: Any, members: Any) -> Any:
        everything = [
            TopicPartition(topic, n) for topic, c in partition_counts.items() for n in range(c)
        ]
        first = min(member.member_id for member in members)
        return {m.member_id: everything if m.member_id == first else [] for m in members}


def test_custom_assignor_is_used(host: Host) -> None:
    options = GroupOptions(consumer_assignors=("first",))
    host.coordinator = GroupCoordinator(options, str, lambda: host.topics, [ToTheFirst()])
    b = Consumer(host, "b", "foo")
    assert len(b.owned) == 6
    a = Consumer(host, "a", "foo", server_assignor="first")
    settle(a, b)
    assert (len(a.owned), len(b.owned)) == (6, 0)


def test_group_has_a_size_limit() -> None:
    host = Host(GroupOptions(consumer_size_max=1), dict(TOPICS))
    a = Consumer(host, "a", "foo")
    assert host.ask(enter("b", "foo")).error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    a.beat()


# -- fencing


def test_epochs_are_checked(host: Host) -> None:
    a = Consumer(host, "a", "foo")
    fenced = ErrorCode.FENCED_MEMBER_EPOCH
    assert host.ask(beat("a", a.epoch + 1, a.owned)).error_code == fenced
    assert host.ask(beat("x", 1)).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert host.ask(beat("x", -1)).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    Consumer(host, "b", "foo")
    a.beat()
    a.beat()
    assert a.epoch == 2
    assert host.ask(beat("a", 1)).error_code == fenced
    assert host.ask(beat("a", 1, {(FOO, n) for n in range(6)})).error_code == fenced
    # The answer with the new epoch may have been lost.
    assert host.ask(beat("a", 1, a.owned)).member_epoch == 2


def test_member_may_begin_anew_under_its_id(host: Host) -> None:
    a = Consumer(host, "a", "foo")
    response = host.ask(enter("a", "foo"))
    assert response.error_code == 0
    assert response.assignment is not None
    assert len(a.owned) == 6


def test_silent_member_is_given_up(host: Host) -> None:
    a = Consumer(host, "a", "foo")
    b = Consumer(host, "b", "foo")
    settle(a, b)
    for _ in range(10):
        host.advance(5_000)
        b.beat()
    assert "a" not in host.coordinator.groups["g"].members
    assert len(b.owned) == 6
    assert host.ask(beat("a", a.epoch)).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    same_state(host)


def test_member_that_does_not_give_back_is_given_up(host: Host) -> None:
    a = Consumer(host, "a", "foo", rebalance_timeout_ms=20_000)
    b = Consumer(host, "b", "foo")
    stubborn = set(a.owned)
    for _ in range(3):
        response = host.ask(beat("a", a.epoch, stubborn))
        assert response.error_code == 0
        host.advance(6_000)
        b.beat()
    assert len(b.owned) == 0
    host.advance(2_000)
    b.beat()
    assert len(b.owned) == 6
    assert host.ask(beat("a", a.epoch)).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_static_member_comes_back_to_its_partitions(host: Host) -> None:
    a = Consumer(host, "a", "foo", instance_id="i")
    b = Consumer(host, "b", "foo")
    settle(a, b)
    epoch, owned = host.coordinator.groups["g"].epoch, set(a.owned)
    unreleased = host.ask(enter("a2", "foo", instance_id="i"))
    assert unreleased.error_code == ErrorCode.UNRELEASED_INSTANCE_ID
    assert host.ask(beat("a", -2, instance_id="i")).member_epoch == -2
    same_state(host)
    b.beat()
    again = Consumer(host, "a2", "foo", instance_id="i")
    assert again.owned == owned
    assert host.coordinator.groups["g"].epoch == epoch
    same_state(host)
    for former in (beat("a", a.epoch, instance_id="i"), beat("a", -1, instance_id="i")):
        assert host.ask(former).error_code == ErrorCode.FENCED_INSTANCE_ID
    stranger = host.ask(beat("x", 1, instance_id="x"))
    assert stranger.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_static_member_that_stays_away_is_given_up(host: Host) -> None:
    Consumer(host, "a", "foo", instance_id="i")
    host.ask(beat("a", -2, instance_id="i"))
    host.advance(45_000)
    assert host.coordinator.groups["g"].is_empty
    same_state(host)


def test_administrator_removes_members(host: Host) -> None:
    Consumer(host, "a", "foo", instance_id="i")
    Consumer(host, "b", "foo")
    response = host.ask(leave(("x", None), ("x", "i"), ("", "i"), ("b", None)))
    assert [member.error_code for member in response.members] == [25, 82, 0, 0]
    assert host.coordinator.groups["g"].is_empty
    same_state(host)


# -- failures


def test_failed_writes_change_nothing(host: Host) -> None:
    a = Consumer(host, "a", "foo")
    host.fail_with = ErrorCode.NOT_ENOUGH_REPLICAS
    unavailable = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert host.ask(enter("b", "foo")).error_code == unavailable
    same_state(host)
    assert host.ask(beat("a", -1)).error_code == unavailable
    assert host.ask(leave(("a", None))).error_code == unavailable
    host.advance(45_000)
    same_state(host)
    a.beat()
    assert len(a.owned) == 6
    host.fail_with = None
    host.advance(45_000)
    assert host.coordinator.groups["g"].is_empty
    same_state(host)


def test_failed_changes_are_taken_back_in_any_order(host: Host) -> None:
    Consumer(host, "a", "foo")
    group = host.coordinator.groups["g"]
    assert isinstance(group, ConsumerGroup)
    for order in ((0, 1), (1, 0)):
        numbers = []
        before = dict(group.members)
        for name in ("b", "c"):
            number, snapshot = group.changes + 1, group.snapshot()
            numbers.append((number, snapshot))
            host.send(enter(name, "foo"))
        for index in order:
            group.restore(*numbers[index])
        assert group.members == before


# -- offsets and administration


def test_offsets_are_for_members_of_the_present_epoch(host: Host) -> None:
    a = Consumer(host, "a", "foo")
    for member_id, epoch, version, code in (
        ("a", a.epoch, 9, ErrorCode.NONE),
        ("a", a.epoch + 1, 9, ErrorCode.STALE_MEMBER_EPOCH),
        ("x", a.epoch, 9, ErrorCode.UNKNOWN_MEMBER_ID),
        ("", -1, 9, ErrorCode.UNKNOWN_MEMBER_ID),
        ("a", a.epoch, 8, ErrorCode.UNSUPPORTED_VERSION),
    ):
        response = host.ask(commit({("foo", 0): 5}, member_id, epoch), version)
        assert commit_codes(response) == [code]
    read = host.coordinator
    assert fetch(read, "foo") == (5, 0)
    assert fetch(read, "foo", member_id="a", member_epoch=a.epoch) == (5, 0)
    stale = ErrorCode.STALE_MEMBER_EPOCH
    assert fetch(read, "foo", member_id="a", member_epoch=9) == (-1, stale)
    unknown = ErrorCode.UNKNOWN_MEMBER_ID
    assert fetch(read, "foo", member_id="x", member_epoch=1) == (-1, unknown)
    host.ask(beat("a", -1))
    assert commit_codes(host.ask(commit({("foo", 0): 6}))) == [0]


def test_description_tells_what_members_have_and_should_have(host: Host) -> None:
    a = Consumer(host, "a", "foo")
    Consumer(host, "b", "foo")
    described = host.coordinator.administration.describe_consumer("g")
    assert (described.group_state, described.group_epoch) == ("Reconciling", 2)
    assert described.assignor_name == "uniform"
    first, second = described.members
    assert first.assignment.topic_partitions[0].partitions == sorted(n for _, n in a.owned)
    assert first.assignment.topic_partitions[0].topic_name == "foo"
    assert second.assignment.topic_partitions == []
    assert len(second.target_assignment.topic_partitions[0].partitions) == 3
    missing = host.coordinator.administration.describe_consumer("x")
    assert missing.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    for version in (0, 1):
        response = ConsumerGroupDescribeResponse(groups=[described, missing])
        read, _ = decode(type(response), encode(response, version), version)
        assert len(read.groups[0].members) == 2


def test_groups_of_both_types_are_listed(host: Host) -> None:
    Consumer(host, "a", "foo")
    host.ask(commit({("t", 0): 1}, group_id="simple"))
    read = host.coordinator.administration
    assert {(g.group_id, g.group_type) for g in read.list_groups()} == {
        ("g", "consumer"),
        ("simple", "classic"),
    }
    assert [g.group_id for g in read.list_groups(types=["Consumer"])] == ["g"]
    assert [g.group_id for g in read.list_groups(states=["EMPTY"])] == ["simple"]
    assert [g.group_id for g in read.list_groups(["stable"], ["consumer"])] == ["g"]


def test_deleting_and_expiring_consumer_groups(host: Host) -> None:
    Consumer(host, "a", "foo")
    assert host.delete("g") == ErrorCode.NON_EMPTY_GROUP
    host.ask(beat("a", -1))
    assert host.delete("g") == 0
    assert host.replayed().groups == {}
    Consumer(host, "a", "foo")
    host.ask(beat("a", -1))
    host.apply(host.coordinator.expire_offsets(host.now_ms))
    assert host.coordinator.groups == host.replayed().groups == {}


def test_moved_coordinator_goes_on(host: Host) -> None:
    a = Consumer(host, "a", "foo")
    b = Consumer(host, "b", "foo")
    a.beat()
    host.restart()
    settle(a, b)
    assert sorted([len(a.owned), len(b.owned)]) == [3, 3]
    host.advance(45_000)
    assert host.coordinator.groups["g"].is_empty
    same_state(host)


# -- between the protocols


def test_empty_classic_group_becomes_a_consumer_group_and_back(host: Host) -> None:
    token = host.send(join(), 3)
    host.advance(3_000)
    name = host.answers[token].member_id
    host.ask(sync(name, 1))
    host.ask(commit({("foo", 0): 7}, name, 1))
    assert host.ask(enter("a", "foo")).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    host.ask(leave((name, None)))

    host.fail_with = ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert host.ask(enter("a", "foo")).error_code == ErrorCode.NOT_COORDINATOR
    assert isinstance(host.coordinator.groups["g"], ClassicGroup)
    host.fail_with = None

    Consumer(host, "a", "foo")
    assert fetch(host.coordinator, "foo") == (7, 0)
    same_state(host)
    assert host.ask(join()).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert host.ask(heartbeat("a", 1)).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert host.ask(sync("a", 1)).error_code == ErrorCode.UNKNOWN_MEMBER_ID

    host.ask(beat("a", -1))
    token = host.send(join(), 3)
    host.advance(3_000)
    host.ask(sync(host.answers[token].member_id, 1))
    assert isinstance(host.coordinator.groups["g"], ClassicGroup)
    read = host.replayed()
    assert isinstance(read.groups["g"], ClassicGroup)
    assert list(read.groups["g"].members) == [host.answers[token].member_id]
    assert fetch(read, "foo") == (7, 0)

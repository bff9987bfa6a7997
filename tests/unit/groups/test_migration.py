"""Groups that change their protocol while members stay: both kinds of members in one group."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from tests.unit.groups.host import (
    Host,
    commit,
    commit_codes,
    fetch,
    heartbeat,
    join,
    leave,
    protocols,
    sync,
)
from tests.unit.groups.test_consumer import BAR, FOO, TOPICS, Consumer, beat, enter, same_state

from barnabas.assignment.contract import Member
from barnabas.assignment.embedded import (
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from barnabas.groups.classic_group import ClassicGroup, State
from barnabas.groups.consumer_group import ConsumerGroup
from barnabas.groups.options import GroupOptions, MigrationPolicy
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.wire.messages.join_group import JoinGroupRequestProtocol

IDS = {"foo": FOO, "bar": BAR}
REBALANCE = ErrorCode.REBALANCE_IN_PROGRESS
RETRIED = (
    REBALANCE,
    ErrorCode.MEMBER_ID_REQUIRED,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.ILLEGAL_GENERATION,
)
"""The errors after which a client joins again."""


@pytest.fixture
def host() -> Host:
    return Host(GroupOptions(initial_rebalance_delay_ms=0), dict(TOPICS))


class Classic:
    """A client of the classic protocol that follows it, eagerly or cooperatively."""

    def __init__(
        self, host: Host, *, eager: bool = True, instance_id: str | None = None, topic: str = "foo"
    ) -> None:
        self.host = host
        self.eager = eager
        self.instance_id = instance_id
        self.topic = topic
        self.member_id = ""
        self.generation = -1
        self.owned: set[tuple[bytes, int]] = set()
        self.joining: int | None = None
        self.syncing: int | None = None
        self.needs_join = True

    def subscription(self) -> list[JoinGroupRequestProtocol]:
        names = {topic_id: name for name, topic_id in IDS.items()}
        owned = [TopicPartition(names[topic_id], n) for topic_id, n in sorted(self.owned)]
        said = Member(self.member_id, [self.topic], self.instance_id, owned, self.generation)
        return protocols("range", metadata=encode_subscription(said))

    def beat(self) -> None:
        """Do the next thing that the protocol asks for."""
        if self.joining is not None:
            self._joined()
        elif self.syncing is not None:
            self._synced()
        elif self.needs_join:
            if self.eager:
                self.owned = set()
            request = join(self.member_id, self.instance_id, protocols=self.subscription())
            self.joining = self.host.send(request)
            self.needs_join = False
            self._joined()
        else:
            request = heartbeat(self.member_id, self.generation, self.instance_id)
            self._refused(self.host.ask(request).error_code)

    def _refused(self, code: int) -> bool:
        """Join again after an error; one that lost its place gives up what it had."""
        assert code in (0, *RETRIED), code
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION):
            self.owned = set()
            self.member_id = "" if code == ErrorCode.UNKNOWN_MEMBER_ID else self.member_id
        self.needs_join = code != 0
        return self.needs_join

    def _joined(self) -> None:
        answer = self.host.answers.get(self.joining)
        if answer is None:
            return
        self.joining = None
        self.member_id = answer.member_id or self.member_id
        if self._refused(answer.error_code):
            return
        self.generation = answer.generation_id
        shares: dict[str, bytes] = {}
        if answer.leader == self.member_id:
            shares = deal(self.topic, answer.members)
        self.syncing = self.host.send(
            sync(self.member_id, self.generation, shares, group_instance_id=self.instance_id)
        )
        self._synced()

    def _synced(self) -> None:
        answer = self.host.answers.get(self.syncing)
        if answer is None:
            return
        self.syncing = None
        if self._refused(answer.error_code):
            return
        told = {(IDS[topic], n) for topic, n in decode_assignment(answer.assignment).partitions}
        # A cooperative client that has to give something up joins again when it has.
        self.needs_join = not self.eager and bool(self.owned - told)
        self.owned = told


def deal(topic: str, members: list[Any]) -> dict[str, bytes]:
    """Share a topic out as a cooperative leader does: what others still own is left out."""
    said = [decode_subscription(m.member_id, None, m.metadata) for m in members]
    owner = {place: member.member_id for member in said for place in member.owned}
    shares: dict[str, list[TopicPartition]] = {member.member_id: [] for member in members}
    for number in range(TOPICS[topic][1]):
        place = TopicPartition(topic, number)
        name = members[number % len(members)].member_id
        if owner.get(place, name) == name:
            shares[name].append(place)
    return {name: encode_assignment(places) for name, places in shares.items()}


def settle(*members: Classic | Consumer, topic: str = "foo") -> None:
    """Let everybody act in turn until the topic is shared; nothing has two owners meanwhile."""
    wanted = {(IDS[topic], n) for n in range(TOPICS[topic][1])}
    quiet = 0
    for _ in range(40):
        before = [(set(m.owned)) for m in members]
        for member in members:
            member.beat()
            owned = [p for m in members for p in m.owned]
            assert len(owned) == len(set(owned)), "a partition has two owners"
        same = before == [m.owned for m in members]
        quiet = quiet + 1 if same and set().union(*before) == wanted else 0
        if quiet == 5:
            return
    raise AssertionError("does not settle")


def group_of(host: Host) -> Any:
    return host.coordinator.groups["g"]


@pytest.mark.parametrize("eager", [True, False], ids=["eager", "cooperative"])
def test_members_roll_from_one_protocol_to_the_other_and_back(host: Host, eager: bool) -> None:
    olds = [Classic(host, eager=eager) for _ in range(3)]
    settle(*olds)
    assert commit_codes(
        host.ask(commit({("foo", 0): 7}, olds[0].member_id, olds[0].generation))
    ) == [0]
    generation = olds[0].generation

    news = [Consumer(host, "n0", "foo")]
    assert isinstance(group_of(host), ConsumerGroup)
    assert news[0].epoch == generation + 1
    settle(*olds, *news)
    same_state(host)
    for number in (1, 2):
        gone = olds.pop()
        host.ask(leave((gone.member_id, None)))
        news.append(Consumer(host, f"n{number}", "foo"))
        settle(*olds, *news)
    host.ask(leave((olds.pop().member_id, None)))
    settle(*news)
    assert fetch(host.coordinator, "foo") == (7, 0)
    same_state(host)
    assert commit_codes(host.ask(commit({("foo", 0): 8}, "n0", news[0].epoch))) == [0]

    backs = []
    for new in list(news):
        backs.append(Classic(host, eager=eager))
        settle(*news, *backs)
        assert host.ask(beat(new.member_id, -1)).error_code == 0
        news.remove(new)
        if news:
            settle(*news, *backs)
    assert isinstance(group_of(host), ClassicGroup)
    settle(*backs)
    assert isinstance(host.reader.groups["g"], ClassicGroup)
    assert set(host.reader.groups["g"].members) == {member.member_id for member in backs}
    assert fetch(host.reader, "foo") == (8, 0)


def test_both_kinds_survive_a_move_of_the_coordinator(host: Host) -> None:
    members: list[Any] = [Classic(host), Classic(host, eager=False)]
    settle(*members)
    members.append(Consumer(host, "n", "foo"))
    settle(*members)
    host.restart()
    same_state(host)
    described = host.coordinator.administration.describe_consumer("g")
    kinds = {member.member_id: member.member_type for member in described.members}
    assert kinds == {members[0].member_id: 0, members[1].member_id: 0, "n": 1}
    settle(*members)


def test_classic_members_are_told_to_rejoin_only_when_there_is_a_step_to_take(host: Host) -> None:
    old = Classic(host)
    settle(old)
    new = Consumer(host, "n", "foo")
    ask = heartbeat(old.member_id, old.generation)
    assert host.ask(ask).error_code == REBALANCE
    assert host.ask(sync(old.member_id, old.generation)).error_code == REBALANCE
    settle(old, new)
    ask = heartbeat(old.member_id, old.generation)
    assert host.ask(ask).error_code == 0
    wrong = heartbeat(old.member_id, old.generation + 1)
    assert host.ask(wrong).error_code == ErrorCode.ILLEGAL_GENERATION
    assert host.ask(heartbeat("n", new.epoch)).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    other = sync(old.member_id, old.generation, protocol_name="sticky")
    assert host.ask(other).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    stale = commit({("foo", 0): 1}, old.member_id, old.generation - 1)
    assert commit_codes(host.ask(stale, 7)) == [ErrorCode.ILLEGAL_GENERATION]
    good = commit({("foo", 0): 1}, old.member_id, old.generation)
    assert commit_codes(host.ask(good, 7)) == [0]


def test_joins_that_wait_are_told_to_join_again(host: Host) -> None:
    host.options = GroupOptions(initial_rebalance_delay_ms=3_000)
    host.coordinator = host.new_coordinator()
    old = Classic(host)
    old.beat()
    old.beat()
    assert old.joining is not None
    assert group_of(host).state is State.PREPARING
    new = Consumer(host, "n", "foo")
    assert host.answers[old.joining].error_code == REBALANCE
    settle(old, new)


@pytest.mark.parametrize(
    ("policy", "upgrades", "downgrades"),
    [
        (MigrationPolicy.DISABLED, False, False),
        (MigrationPolicy.UPGRADE, True, False),
        (MigrationPolicy.DOWNGRADE, False, True),
        (MigrationPolicy.BIDIRECTIONAL, True, True),
    ],
)
def test_the_policy_decides(policy: MigrationPolicy, upgrades: bool, downgrades: bool) -> None:
    options = GroupOptions(initial_rebalance_delay_ms=0, migration=policy)
    host = Host(options, dict(TOPICS))
    old = Classic(host)
    settle(old)
    code = host.ask(enter("n", "foo")).error_code
    assert code == (0 if upgrades else ErrorCode.GROUP_ID_NOT_FOUND)
    assert isinstance(group_of(host), ConsumerGroup) == upgrades

    host = Host(options, dict(TOPICS))
    new, old = Consumer(host, "n", "foo"), Classic(host)
    settle(new, old)
    host.ask(beat("n", -1))
    assert isinstance(group_of(host), ClassicGroup) == downgrades
    settle(old)


def test_groups_that_are_not_of_consumers_stay_classic(host: Host) -> None:
    host.ask(join(protocol_type="connect", protocols=protocols("v1")), 3)
    assert host.ask(enter("n", "foo")).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    host.ask(join(group_id="own", protocols=protocols("range", metadata=b"?")), 3)
    request = enter("n", "foo")
    request.group_id = "own"
    assert host.ask(request).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert isinstance(host.coordinator.groups["own"], ClassicGroup)


def test_size_limits_hold_across_protocols() -> None:
    options = GroupOptions(initial_rebalance_delay_ms=0, consumer_size_max=2, size_max=1)
    host = Host(options, dict(TOPICS))
    new = Consumer(host, "n", "foo")
    old, more = Classic(host), join("x", protocols=Classic(host).subscription())
    settle(new, old)
    assert host.ask(more).error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert host.ask(enter("m", "foo")).error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    host.ask(beat("n", -1))
    assert isinstance(group_of(host), ClassicGroup)


@pytest.mark.parametrize("eager", [True, False])
def test_a_silent_member_ends_the_mixture_or_its_part_in_it(host: Host, eager: bool) -> None:
    old = Classic(host, eager=eager)
    settle(old)
    new = Consumer(host, "n", "foo")
    settle(old, new)
    for _ in range(8):  # only the classic member is heard of, for 48 s
        host.advance(6_000)
        old.beat()
    assert isinstance(group_of(host), ClassicGroup)
    settle(old)

    new = Consumer(host, "n", "foo")
    settle(old, new)
    host.advance(10_001)
    new.beat()
    assert list(group_of(host).members) == ["n"]
    settle(new)


@pytest.mark.parametrize("step", ["sync", "rejoin"])
def test_a_classic_member_that_does_not_follow_is_given_up(host: Host, step: str) -> None:
    old = Classic(host)
    settle(old)
    new = Consumer(host, "n", "foo")
    if step == "sync":
        host.ask(join(old.member_id, protocols=old.subscription()))
    for _ in range(14):  # it is alive, but does nothing else
        host.advance(5_000)
        new.beat()
        generation = group_of(host).members.get(old.member_id)
        if generation is not None:
            host.ask(heartbeat(old.member_id, generation.current.epoch))
    assert list(group_of(host).members) == ["n"]
    settle(new)


def test_a_static_member_changes_its_protocol_under_its_name(host: Host) -> None:
    old = Classic(host, instance_id="one")
    other = Classic(host)
    settle(old, other)
    had = set(old.owned)
    new = Consumer(host, "n", "foo", instance_id="one")
    assert new.owned == had
    ask = heartbeat(old.member_id, old.generation, "one")
    assert host.ask(ask).error_code == ErrorCode.FENCED_INSTANCE_ID
    settle(new, other)
    back = join("", "one", protocols=Classic(host).subscription())
    assert host.ask(back).error_code == ErrorCode.UNRELEASED_INSTANCE_ID
    host.ask(beat("n", -2, instance_id="one"))
    again = Classic(host, instance_id="one")
    again.beat()
    assert isinstance(group_of(host), ClassicGroup)
    settle(again, other)


def test_what_cannot_be_written_is_taken_back(host: Host) -> None:
    old = Classic(host)
    settle(old)
    had = set(old.owned)
    host.fail_with = ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert host.ask(enter("n", "foo")).error_code == ErrorCode.NOT_COORDINATOR
    assert isinstance(group_of(host), ClassicGroup)
    ask = heartbeat(old.member_id, old.generation)
    assert host.ask(ask).error_code == 0
    assert old.owned == had

    host.fail_with = None
    new = Consumer(host, "n", "foo")
    settle(old, new)
    host.fail_with = ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert host.ask(beat("n", -1)).error_code == ErrorCode.NOT_COORDINATOR
    assert isinstance(group_of(host), ConsumerGroup)
    assert host.ask(leave(("n", None))).error_code == ErrorCode.NOT_COORDINATOR
    host.fail_with = None
    settle(old, new)
    same_state(host)


@pytest.mark.parametrize("seed", range(40))
def test_any_order_of_comings_and_goings(host: Host, seed: int) -> None:
    """Nothing has two owners at any time, and the log always tells what the coordinator knows."""
    random = Random(seed)
    members: list[Any] = []
    for number in range(12):
        act = random.choice(["classic", "cooperative", "consumer", "leave", "restart"])
        if act in ("classic", "cooperative"):
            members.append(Classic(host, eager=act == "classic"))
        elif act == "consumer":
            members.append(Consumer(host, f"n{number}", "foo"))
        elif act == "leave" and len(members) > 1:
            gone = members.pop(random.randrange(len(members)))
            if isinstance(gone, Consumer):
                assert host.ask(beat(gone.member_id, -1)).error_code == 0
            elif gone.member_id:
                host.ask(leave((gone.member_id, None)))
        elif act == "restart":
            host.restart()
        for _ in range(random.randrange(8)):
            if members:
                random.choice(members).beat()
        owned = [p for m in members for p in m.owned]
        assert len(owned) == len(set(owned))
    if members:
        for _ in range(
            3
        ):  # who left between two records and a restart is a member until it expires
            for member in members:
                member.beat()
            host.advance(4_000)
        settle(*members)
        live, read = group_of(host), host.reader.groups["g"]
        assert type(live) is type(read)
        assert set(live.members) == set(read.members)

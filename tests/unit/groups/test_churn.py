"""Whole groups in virtual time: members come, go, fall silent and start again, from a seed.

What must hold whatever happens: in one generation a partition has one owner; nobody who is not (or
no longer) the owner moves a committed offset; whoever reads the log knows what the coordinator
knows; and when the trouble ends, everybody is served.
"""

from __future__ import annotations

import random
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
from tests.unit.groups.test_consumer import TOPICS as CONSUMER_TOPICS
from tests.unit.groups.test_consumer import beat, enter, same_state

from barnabas.assignment.contract import Member
from barnabas.assignment.embedded import (
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from barnabas.assignment.range import RangeAssignor
from barnabas.groups.classic_group import ClassicGroup, State
from barnabas.groups.consumer_group import ConsumerGroup
from barnabas.groups.coordinator import GroupCoordinator
from barnabas.groups.options import GroupOptions
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition

COUNTS = {"t": 5, "u": 4}
TICK_MS = 500


class Client:
    """A classic consumer, as far as the coordinator can see it."""

    def __init__(self, world: World, instance_id: str | None = None) -> None:
        self.world = world
        self.instance_id = instance_id
        self.member_id = ""
        self.generation = -1
        self.owned: dict[TopicPartition, int] = {}
        self.token: int | None = None
        self.step = "join"
        self.silent_until_ms = 0
        self.is_fenced = False

    @property
    def name(self) -> str:
        return self.instance_id or self.member_id

    def tick(self) -> None:
        host = self.world.host
        if host.now_ms < self.silent_until_ms or self.is_fenced:
            return
        if self.token is None:
            self.send()
        elif self.token in host.answers:
            answer, self.token = host.answers[self.token], None
            getattr(self, f"after_{self.step}")(answer)

    def send(self) -> None:
        host = self.world.host
        if self.step == "join":
            metadata = encode_subscription(Member("", list(COUNTS)))
            request = join(
                self.member_id,
                self.instance_id,
                rebalance_timeout_ms=20_000,
                protocols=protocols("range", metadata=metadata),
            )
            self.token = host.send(request, 9)
        elif self.step == "sync":
            self.token = host.send(
                sync(self.member_id, self.generation, self.plan, group_instance_id=self.instance_id)
            )
        elif host.now_ms % 3_000 < TICK_MS:
            self.token = host.send(heartbeat(self.member_id, self.generation, self.instance_id))
        elif self.owned:
            self.commit()

    def after_join(self, answer: Any) -> None:
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
        elif answer.error_code:
            self.failed(answer.error_code)
        else:
            self.member_id, self.generation = answer.member_id, answer.generation_id
            self.owned = {}  # eager: nothing is kept over a rebalance
            self.plan = {}
            if answer.leader == self.member_id and not answer.skip_assignment:
                members = [
                    decode_subscription(m.member_id, m.group_instance_id, m.metadata)
                    for m in answer.members
                ]
                self.plan = {
                    name: encode_assignment(partitions)
                    for name, partitions in RangeAssignor().assign(COUNTS, members).items()
                }
            self.step = "sync"

    def after_sync(self, answer: Any) -> None:
        if answer.error_code:
            self.failed(answer.error_code)
            return
        self.step = "stay"
        coordinator = self.world.host.coordinator
        for partition in decode_assignment(answer.assignment).partitions:
            self.world.assigned(self.generation, partition, self.name)
            self.owned[partition] = fetch(coordinator, *partition)[0]

    def after_stay(self, answer: Any) -> None:
        if answer.error_code:
            self.failed(answer.error_code)

    def failed(self, code: int) -> None:
        if code == ErrorCode.FENCED_INSTANCE_ID:
            self.is_fenced = True
        elif code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION):
            self.member_id = ""
            self.owned = {}
        self.step = "join"

    def commit(self) -> None:
        """Read a little further and say so; the answer decides whether that was ours to say."""
        moved = {partition: offset + 1 for partition, offset in self.owned.items()}
        request = commit(
            dict(moved), self.member_id, self.generation, group_instance_id=self.instance_id
        )
        codes = commit_codes(self.world.host.ask(request))
        if not any(codes):
            self.owned.update(moved)
            self.world.committed(moved)


class World:
    """A group of clients, and what has been seen of it."""

    def __init__(self, seed: int, *, with_failures: bool) -> None:
        self.random = random.Random(seed)
        self.with_failures = with_failures
        self.host = Host(GroupOptions(initial_rebalance_delay_ms=1_000))
        self.clients: list[Client] = []
        self.owners: dict[tuple[int, TopicPartition], str] = {}
        self.offsets: dict[TopicPartition, int] = {}
        self.names = 0

    def assigned(self, generation: int, partition: TopicPartition, name: str) -> None:
        owner = self.owners.setdefault((generation, partition), name)
        assert owner == name, f"{partition} has two owners in generation {generation}"

    def committed(self, moved: dict[TopicPartition, int]) -> None:
        for partition, offset in moved.items():
            assert offset > self.offsets.get(partition, -1), f"{partition} went back"
            self.offsets[partition] = offset

    def trouble(self) -> None:
        """Let something happen, or nothing."""
        chance = self.random.random()
        if self.with_failures:
            self.host.fail_with = (
                ErrorCode.NOT_ENOUGH_REPLICAS if self.random.random() < 0.1 else None
            )
        if chance < 0.03 and len(self.clients) < 6:
            self.names += 1
            instance_id = f"i{self.names}" if self.random.random() < 0.4 else None
            self.clients.append(Client(self, instance_id))
        elif not self.clients:
            return
        elif chance < 0.04:
            client = self.random.choice(self.clients)
            self.clients.remove(client)
            if client.member_id and self.random.random() < 0.7:
                self.host.send(leave((client.member_id, client.instance_id)))
        elif chance < 0.06:
            client = self.random.choice(self.clients)
            client.silent_until_ms = self.host.now_ms + self.random.choice([4_000, 15_000, 40_000])
        elif chance < 0.08:
            client = self.random.choice(self.clients)
            if client.instance_id is not None:
                # The former self lives on for a while, and must not get in the way.
                self.clients.append(Client(self, client.instance_id))
        elif chance < 0.085:
            self.host.restart()

    def tick(self) -> None:
        for client in list(self.clients):
            client.tick()
            if client.is_fenced:
                self.clients.remove(client)
        self.host.advance(TICK_MS)
        self.check_log()

    def check_log(self) -> None:
        self.check_against(self.host.reader)

    def check_against(self, read: GroupCoordinator) -> None:
        live = self.host.coordinator
        assert {g: o.committed for g, o in live.offsets.by_group.items()} == {
            g: o.committed for g, o in read.offsets.by_group.items()
        }
        group, known = live.groups.get("g"), read.groups.get("g")
        assert group is None or isinstance(group, ClassicGroup)
        if group is None or group.state not in (State.STABLE, State.EMPTY):
            return
        if group.state is State.EMPTY and (group.generation == 0 or self.with_failures):
            return
        assert isinstance(known, ClassicGroup)
        for name in ("state", "generation", "protocol", "leader", "static", "state_ms"):
            if name == "state_ms" and group.state is State.STABLE:
                continue
            assert getattr(group, name) == getattr(known, name), name
        assert {m.member_id: m.assignment for m in group.members.values()} == {
            m.member_id: m.assignment for m in known.members.values()
        }


@pytest.mark.parametrize("with_failures", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_classic_group_under_churn(seed: int, with_failures: bool) -> None:
    world = World(seed, with_failures=with_failures)
    for _ in range(600):
        world.trouble()
        world.tick()
    world.host.fail_with = None
    for client in world.clients:
        client.silent_until_ms = 0
    for _ in range(200):
        world.tick()
    world.check_against(world.host.replayed())
    world.check_against(world.host.compacted())
    group = world.host.coordinator.groups.get("g")
    if not world.clients:
        assert group is None or group.is_empty
        return
    assert group is not None
    assert group.state_name == "Stable"
    owned = sorted(partition for client in world.clients for partition in client.owned)
    assert owned == [TopicPartition(t, n) for t, count in COUNTS.items() for n in range(count)]
    assert {client.member_id for client in world.clients} == set(group.members)
    assert len(world.offsets) > 0


class NewClient:
    """A consumer of the consumer protocol that may be slow to give back, or lose answers."""

    def __init__(self, host: Host, name: str, topics: list[str]) -> None:
        self.host = host
        self.name = name
        self.topics = topics
        self.epoch = 0
        self.owned: set[tuple[bytes, int]] = set()
        self.wanted: set[tuple[bytes, int]] = set()
        self.silent_until_ms = 0
        self.lost_answer = False

    def tick(self, chance: random.Random) -> None:
        if self.host.now_ms < self.silent_until_ms:
            return
        if chance.random() < 0.7:  # gives back and takes over, or is still busy with that
            self.owned = set(self.wanted)
        if self.epoch == 0:
            response = self.host.ask(enter(self.name, *self.topics))
        else:
            # After a lost answer it says everything again, to be told everything again.
            everything = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": self.topics}
            values = everything if self.lost_answer else {}
            response = self.host.ask(beat(self.name, self.epoch, self.owned, **values))
        self.lost_answer = chance.random() < 0.1
        if self.lost_answer:
            return
        if response.error_code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH):
            self.epoch, self.owned, self.wanted = 0, set(), set()
        elif response.error_code == 0:
            self.epoch = response.member_epoch
            if response.assignment is not None:
                self.wanted = {
                    (topic.topic_id, number)
                    for topic in response.assignment.topic_partitions
                    for number in topic.partitions
                }
                self.owned &= self.wanted if chance.random() < 0.5 else self.owned


def check_holders(host: Host, clients: list[NewClient]) -> None:
    group = host.coordinator.groups.get("g")
    if group is None:
        return
    assert isinstance(group, ConsumerGroup)
    held = [(m.member_id, p) for m in group.members.values() for p in m.holds]
    assert {p: name for name, p in held} == group.holders
    assert len(held) == len(group.holders)
    # What a member of the present epoch reads is held for it.
    for client in clients:
        member = group.members.get(client.name)
        if member is not None and client.epoch == member.current.epoch:
            assert client.owned <= member.holds


@pytest.mark.parametrize("with_failures", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_consumer_group_under_churn(seed: int, with_failures: bool) -> None:
    chance = random.Random(seed)
    host = Host(topics=dict(CONSUMER_TOPICS))
    clients: list[NewClient] = []
    for step in range(400):
        if with_failures:
            host.fail_with = ErrorCode.NOT_ENOUGH_REPLICAS if chance.random() < 0.1 else None
        draw = chance.random()
        if draw < 0.08 and len(clients) < 6:
            topics = chance.choice([["foo"], ["bar"], ["foo", "bar"]])
            clients.append(NewClient(host, f"m{step}", topics))
        elif draw < 0.11 and clients:
            client = clients.pop(chance.randrange(len(clients)))
            if client.epoch > 0 and chance.random() < 0.6:
                host.ask(beat(client.name, -1))
        elif draw < 0.14 and clients:
            silence_ms = chance.choice([20_000, 60_000, 100_000])
            chance.choice(clients).silent_until_ms = host.now_ms + silence_ms
        elif draw < 0.15:
            host.topics["foo"] = (host.topics["foo"][0], host.topics["foo"][1] + 1)
        elif draw < 0.16:
            host.restart()
        for client in clients:
            client.tick(chance)
            check_holders(host, clients)
        host.advance(2_000)
        if isinstance(host.coordinator.groups.get("g"), ConsumerGroup) and (
            host.coordinator.groups["g"].epoch > 0  # type: ignore[union-attr]
        ):
            same_state(host)
    if "g" in host.coordinator.groups:
        same_state(host, host.replayed())
        same_state(host, host.compacted())
    host.fail_with = None
    for client in clients:
        client.silent_until_ms = 0
    for _ in range(60):
        for client in clients:
            client.tick(chance)
        host.advance(2_000)
    if not clients:
        return
    group = host.coordinator.groups["g"]
    assert isinstance(group, ConsumerGroup)
    assert group.state_name == "Stable"
    assert set(group.members) == {client.name for client in clients}
    subscribed = {name for client in clients for name in client.topics}
    expected = {(host.topics[t][0], n) for t in subscribed for n in range(host.topics[t][1])}
    assert {tuple(p) for p in group.holders} == expected

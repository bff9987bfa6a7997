"""Consumers of one group: connections break, processes stop and die, and the broker falls.

Every seed is one history of a few members (how many, which protocol, which assignor and how they
commit is drawn too). Records are numbers: a member that owns a partition counts on from the offset
that was committed. Whatever happens, a partition has one owner per generation at most, every record
is processed by somebody before an offset behind it is committed, and a committed offset never goes
back. Members that nobody disturbs never own a partition at the same time.

`BARNABAS_CHAOS_SEEDS` asks for more histories than the suite runs.
"""

from __future__ import annotations

import asyncio
import os
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random

import pytest
from tests.simulation.test_broker_crash import PORT, connect, serve

from barnabas.client.addresses import Address
from barnabas.client.cluster_client import ClusterClient
from barnabas.client.errors import CommitFailedError, KafkaTimeoutError
from barnabas.config.clients.consumer import ConsumerOptions
from barnabas.config.clients.options import parse_client_options
from barnabas.consumer.core import group_member
from barnabas.consumer.group.callbacks import ConsumerRebalanceListener
from barnabas.consumer.subscription import Subscription
from barnabas.groups import consumer
from barnabas.groups.reconciliation import Current, Partitions, reconcile
from barnabas.model.errors import BarnabasError
from barnabas.model.ids import TopicPartition
from barnabas.simulation.world import Host, World
from barnabas.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic

SEEDS = int(os.environ.get("BARNABAS_CHAOS_SEEDS", "200")) // 5
WORKERS = 4
"""Seeds are run in a few tests, so that several workers share them."""

GROUP = "g"
TOPIC = "t"
RECORDS = 40
"""How many records each partition has."""

OBLIVION = 9.0
"""Seconds after which a member knows that the group went on without it, and says so in a poll."""

BROKER_OPTIONS = {
    "log.flush.interval.messages": "1",  # what a commit acknowledged survives a crash
    "group.coordinator.rebalance.protocols": "classic,consumer",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "3000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "300",
    "offsets.topic.num.partitions": "1",
}


@dataclass
class Witness:
    """What happened, as members and an onlooker saw it."""

    partitions: int
    owners: dict[tuple[int, TopicPartition], str] = field(default_factory=dict)
    """By generation and partition."""
    processed: dict[TopicPartition, set[int]] = field(default_factory=lambda: defaultdict(set))
    committed: dict[TopicPartition, int] = field(default_factory=dict)
    holders: dict[TopicPartition, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Who was told that it has a partition, and not yet that it has it no more."""
    disturbed: dict[str, float] = field(default_factory=dict)
    """Until when members cannot know what the group thinks of them: those that hold a partition
    that went to another, and those that take one by a response that waited while they stood still.
    """
    undisturbed: int = 0
    """How many partitions came to members that nobody had disturbed."""
    complaints: list[str] = field(default_factory=list)

    def holds(self, name: str, partition: TopicPartition) -> None:
        now = asyncio.get_running_loop().time()
        if now > self.disturbed.get(name, 0):
            self.undisturbed += 1
            for other in self.holders[partition] - {name}:
                if now > self.disturbed.get(other, 0):
                    self.complaints.append(f"{partition} is {other}'s and comes to {name} at {now}")
        self.holders[partition].add(name)

    def died(self, name: str) -> None:
        """A process that ended holds nothing, though it could not say so."""
        for holders in self.holders.values():
            holders.discard(name)

    def disturb(self, names: Iterable[str], seconds: float) -> None:
        """Members may be out of the group for a while and not know it."""
        until = asyncio.get_running_loop().time() + seconds + OBLIVION
        for name in names:
            self.disturbed[name] = max(until, self.disturbed.get(name, 0))

    def owns(self, name: str, generation: int, partition: TopicPartition) -> None:
        owner = self.owners.setdefault((generation, partition), name)
        if owner != name:
            self.complaints.append(f"{partition} is {owner}'s and {name}'s in {generation}")

    def saw_committed(self, partition: TopicPartition, offset: int) -> None:
        before = self.committed.get(partition, 0)
        if offset < before:
            self.complaints.append(f"{partition} went back from {before} to {offset}")
        missing = set(range(offset)) - self.processed[partition]
        if missing:
            self.complaints.append(f"{partition} is committed to {offset} without {min(missing)}")
        self.committed[partition] = offset

    @property
    def is_done(self) -> bool:
        return len(self.committed) == self.partitions and all(
            offset == RECORDS for offset in self.committed.values()
        )


@dataclass
class Ledger(ConsumerRebalanceListener):
    """One life of a member, as its listener hears it."""

    name: str
    witness: Witness
    owned: set[TopicPartition] = field(default_factory=set)
    complaints: list[str] = field(default_factory=list)

    def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        if assigned & self.owned:
            self.complaints.append(f"{assigned & self.owned} came twice")
        self.owned |= assigned
        for partition in assigned:
            self.witness.holds(self.name, partition)

    def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        if not revoked or revoked - self.owned:
            self.complaints.append(f"{revoked} went, {self.owned} was owned")
        self.owned -= revoked
        for partition in revoked:
            self.witness.holders[partition].discard(self.name)


@dataclass(frozen=True)
class Plan:
    """What the members of a history are like."""

    members: int
    partitions: int
    options: dict[str, object]
    commits: str

    @classmethod
    def draw(cls, random: Random) -> Plan:
        commits = random.choice(["auto", "awaited", "soon"])
        options: dict[str, object] = {
            "group.id": GROUP,
            "session.timeout.ms": 3000,
            "heartbeat.interval.ms": 300,
            "max.poll.interval.ms": 5000,
            "request.timeout.ms": 2000,
            "fetch.max.wait.ms": 100,
            "enable.auto.commit": commits == "auto",
            "auto.commit.interval.ms": 200,
        }
        kind = random.choice(["range", "sticky", "cooperative-sticky", "both", "consumer"])
        if kind == "consumer":
            options["group.protocol"] = "consumer"
        else:
            strategies = ["roundrobin", "cooperative-sticky"] if kind == "both" else [kind]
            options["partition.assignment.strategy"] = strategies
        return cls(random.randint(1, 4), random.randint(1, 5), options, commits)


Stops = dict[str, asyncio.Event]
"""By which members are asked to leave."""


class Life:
    """One life of a member's process."""

    def __init__(self, host: Host, plan: Plan, witness: Witness, stops: Stops) -> None:
        options = parse_client_options(
            ConsumerOptions, {"bootstrap.servers": f"broker:{PORT}", **plan.options}
        )
        self._name, self._random = host.name, host.random
        self._plan, self._witness, self._stop = plan, witness, stops[host.name]
        self._client = ClusterClient(
            [Address("broker", PORT)],
            client_id=host.name,
            request_timeout_ms=2000,
            connect_timeout_ms=1000,
            random=host.random,
        )
        self._ledger = Ledger(host.name, witness)
        self._subscription = Subscription()
        self._subscription.subscribe([TOPIC], listener=self._ledger)
        self._member = group_member(
            self._client, self._subscription, options, wake=lambda: None, random=host.random
        )

    async def run(self) -> None:
        await self._member.start()
        while not self._stop.is_set():
            self._member.user_polled(asyncio.get_running_loop().time() * 1000)
            try:
                if await self._member.poll(200):
                    await self._work()
            except (CommitFailedError, KafkaTimeoutError):
                pass  # others read it again
            await asyncio.sleep(self._random.uniform(0, 0.08))
        await self._member.close(timeout_ms=3000)
        await self._client.close()
        if self._subscription.assigned or self._ledger.owned:
            self._ledger.complaints.append(f"kept {self._ledger.owned} after close")
        self._witness.complaints += self._ledger.complaints

    async def _work(self) -> None:
        subscription, witness = self._subscription, self._witness
        missing = subscription.missing_positions()
        if missing:
            committed = await self._member.committed(missing, timeout_ms=1000)
            for partition in missing:
                if subscription.is_assigned(partition):
                    known = committed.get(partition)
                    subscription.seek(partition, 0 if known is None else known.offset)
        if set(subscription.assigned) != self._ledger.owned:
            witness.complaints.append(
                f"{self._name} has {set(subscription.assigned)}, was told of {self._ledger.owned}"
            )
        self._member.maybe_auto_commit(asyncio.get_running_loop().time() * 1000)
        for partition, state in subscription.assigned.items():
            witness.owns(self._name, self._member.generation, partition)
            assert state.position is not None
            if state.position < RECORDS:
                witness.processed[partition].add(state.position)
                state.position += 1
        if self._plan.commits == "awaited" and self._random.random() < 0.5:
            await self._member.commit(subscription.all_consumed(), timeout_ms=1500)
        elif self._plan.commits == "soon" and self._random.random() < 0.5:
            self._member.commit_soon(subscription.all_consumed(), lambda *_: None)


async def create_topic(plan: Plan) -> None:
    connection = await connect("broker")
    topic = CreatableTopic(name=TOPIC, num_partitions=plan.partitions, replication_factor=1)
    await connection.send(CreateTopicsRequest(topics=[topic], timeout_ms=5000), version=4)
    # The topic of offsets comes with the first question about it.
    await connection.send(FindCoordinatorRequest(key=GROUP), version=2)
    connection.close()


async def watch(plan: Plan, witness: Witness) -> None:
    """Look at the committed offsets until all records are behind them."""
    wanted = OffsetFetchRequestTopic(name=TOPIC, partition_indexes=list(range(plan.partitions)))
    while not witness.is_done:
        connection = await connect("broker")
        try:
            while not witness.is_done:
                request = OffsetFetchRequest(group_id=GROUP, topics=[wanted])
                answer = await connection.send(request, version=5, timeout_ms=2000)
                if answer.error_code == 0:
                    for found in answer.topics[0].partitions:
                        if found.error_code == 0 and found.committed_offset >= 0:
                            partition = TopicPartition(TOPIC, found.partition_index)
                            witness.saw_committed(partition, found.committed_offset)
                await asyncio.sleep(0.05)
        except BarnabasError:
            await asyncio.sleep(0.05)
        finally:
            connection.close()


async def disturb(
    world: World, witness: Witness, lives: dict[str, asyncio.Task[None]], stops: Stops
) -> None:
    """Break one thing after the other, for a while, and mend all in the end."""
    random = world.random
    kinds = ["reset", "reset", "cut", "pause", "kill", "crash", "broker", "leave", "leave"]
    for _ in range(random.randint(2, 7)):
        await asyncio.sleep(random.uniform(0.1, 2.5))
        name, kind = random.choice(list(lives)), random.choice(kinds)
        seconds = random.uniform(0.1, 8 if kind == "pause" else 4)
        if kind != "leave":
            witness.disturb(lives if kind == "broker" else [name], seconds)
        if kind == "reset":
            world.network.reset(name, "broker")
        elif kind == "cut":
            world.network.cut(name, "broker")
            await asyncio.sleep(seconds)
            world.network.heal(name, "broker")
        elif kind == "pause":
            world.pause(name)
            await asyncio.sleep(seconds)
            world.resume(name)
        elif kind == "broker":
            world.crash("broker")
            await asyncio.sleep(seconds)
            world.restart("broker")
        else:
            if kind == "leave":
                stops[name].set()
                await lives[name]
                stops[name].clear()
            (world.crash if kind == "crash" else world.kill)(name)
            witness.died(name)
            await asyncio.sleep(seconds)
            lives[name] = world.restart(name)


def history(seed: int) -> Witness:
    """Run the members of one seed to the end."""
    with World(seed) as world:
        plan = Plan.draw(world.random)
        witness = Witness(plan.partitions)
        stops = {f"member-{number}": asyncio.Event() for number in range(plan.members)}

        async def scenario() -> None:
            world.start("broker", lambda host: serve(host, **BROKER_OPTIONS))
            await create_topic(plan)
            lives = {
                name: world.start(name, lambda host: Life(host, plan, witness, stops).run())
                for name in stops
            }
            watching = asyncio.create_task(watch(plan, witness))
            await disturb(world, witness, lives, stops)
            await watching
            for stop in stops.values():
                stop.set()
            await asyncio.gather(*lives.values())

        world.run(scenario(), until=400)
        return witness


@pytest.mark.parametrize("worker", range(WORKERS))
def test_members_share_every_partition_and_lose_no_record(worker: int) -> None:
    """One owner per generation, nothing skipped, no committed offset taken back."""
    undisturbed = 0
    for seed in range(worker, SEEDS, WORKERS):
        witness = history(seed)
        assert witness.complaints == [], f"seed {seed}"
        undisturbed += witness.undisturbed
    assert undisturbed > 0


def test_partitions_that_are_given_away_too_early_are_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def hasty(
        current: Current, target: Partitions, epoch: int, owned: Partitions | None, _: object
    ) -> Current:
        """Wait for nobody to revoke what others shall have."""
        return reconcile(current, target, epoch, owned, lambda _: True)

    monkeypatch.setattr(consumer, "reconcile", hasty)
    complaints = [complaint for seed in range(25, 40) for complaint in history(seed).complaints]
    assert any("comes to" in complaint for complaint in complaints)

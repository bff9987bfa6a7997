"""A broker that falls silent: who waits is told, who asks is sent away, nothing is appended."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.simulation.cluster.brokers import PORT, SESSION_MS, Brokers, WatchedBroker
from tests.simulation.cluster.witness import BOUND_S, Witness

from barnabas.client.addresses import Address
from barnabas.client.connection import Connection
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError
from barnabas.model.ids import TopicPartition
from barnabas.records.builder import build_batch
from barnabas.replication.standing import ASK_EVERY_MS, LEASE
from barnabas.simulation.world import COORDINATION, World
from barnabas.wire.apis import API_BY_NAME
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.broker_standing import (
    BrokerStandingRequest,
    LedPartition,
    LedTopic,
)
from barnabas.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from barnabas.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from barnabas.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas.wire.messages.list_groups import ListGroupsRequest
from barnabas.wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from barnabas.wire.messages.list_transactions import ListTransactionsRequest
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from barnabas.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

SESSION_S = SESSION_MS / 1000
OFF = {"barnabas.lost.session.silence.enable": "false"}


class Scene:
    """Three brokers at rest, and a topic of which one leads the only partition."""

    def __init__(self, world: World, **options: str) -> None:
        self.world = world
        self.brokers = Brokers(world, 3, Witness(), **options)
        self.key = TopicPartition("t", 0)

    async def found(self) -> None:
        self.brokers.start()
        assert await self.brokers.come_to_rest(30)
        line = await self.line(self.controller())
        topic = CreatableTopic(name="t", num_partitions=1, replication_factor=3)
        answer = await line.send(CreateTopicsRequest(topics=[topic], timeout_ms=5000), version=5)
        assert answer.topics[0].error_code == 0
        await line.send(FindCoordinatorRequest(key="g", key_type=0), version=3)
        await line.send(FindCoordinatorRequest(key="x", key_type=1), version=3)
        assert await self.brokers.come_to_rest(30)
        line.close()

    async def line(self, number: int) -> Connection:
        return await Connection.open(
            Address(self.brokers.name(number), PORT), client_id="test", request_timeout_ms=20_000
        )

    def leader(self, key: TopicPartition) -> int:
        state = self.brokers.state(key)
        assert state is not None
        return state.leader

    def controller(self) -> int:
        brokers = self.brokers.running
        return next(number for number in brokers if brokers[number].controller.term is not None)

    def silent(self) -> set[int]:
        brokers = self.brokers.running
        return {number for number in brokers if brokers[number].silence.is_silent}

    async def after_heartbeat(self, number: int) -> None:
        """Wait until a broker was just heard: so its lease ends some time before its session."""

        def was_heard() -> bool:
            contact = self.brokers.running[number].tree.contact
            return contact is not None and contact.asked_ago_ms < 20

        await self.until(was_heard)

    async def until(self, holds: Callable[[], bool]) -> None:
        for _ in range(10_000):
            if holds():
                return
            await asyncio.sleep(0.001)
        raise AssertionError("not within ten seconds")

    def cut_off_tree(self, number: int) -> None:
        self.world.network.cut(self.brokers.name(number), COORDINATION)

    def lose_service(self) -> None:
        """Take the coordination service away from all."""
        self.world.coordination_store.go_away()
        self.world.network.set_down(COORDINATION, True)

    def find_service(self) -> None:
        self.world.network.set_down(COORDINATION, False)
        self.world.coordination_store.come_back()


def play(act: Callable[[Scene], Awaitable[None]], **options: str) -> None:
    with World(11) as world:
        scene = Scene(world, **options)

        async def run() -> None:
            await scene.found()
            await act(scene)

        world.run(run(), until=300)


def produce(acks: int, *, timeout_ms: int = 20_000) -> ProduceRequest:
    data = PartitionProduceData(index=0, records=build_batch([(1_700_000_000_000, None, b"v")]))
    return ProduceRequest(
        acks=acks,
        timeout_ms=timeout_ms,
        topic_data=[TopicProduceData(name="t", partition_data=[data])],
    )


def produced(answer: Any) -> ErrorCode:
    return ErrorCode.of(answer.responses[0].partition_responses[0].error_code)


def fetch(offset: int, wait_ms: int) -> FetchRequest:
    wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    return FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=1,
        max_bytes=1 << 20,
        topics=[FetchTopic(topic="t", partitions=[wanted])],
    )


def fetched(answer: Any) -> ErrorCode:
    return ErrorCode.of(answer.responses[0].partitions[0].error_code)


def test_who_waits_is_told_and_nothing_more_is_appended() -> None:
    async def act(scene: Scene) -> None:
        zombie = scene.leader(scene.key)
        name, broker = scene.brokers.name(zombie), scene.brokers.running[zombie]
        loop = scene.world.loop
        poll, write, blind, plain = [await scene.line(zombie) for _ in range(4)]
        assert produced(await plain.send(produce(-1), version=9)) is ErrorCode.NONE
        polled = asyncio.ensure_future(poll.send(fetch(1, 15_000), version=11))
        # Its followers cannot fetch any more: what is written is not safe, and so not answered.
        for other in scene.brokers.numbers:
            if other != zombie:
                scene.world.network.cut(scene.brokers.name(other), name, both=False)
        scene.cut_off_tree(zombie)
        cut_s = loop.time()
        await asyncio.sleep(0.1)
        written = asyncio.ensure_future(write.send(produce(-1), version=9))
        assert fetched(await polled) is ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert SESSION_S * (LEASE - 1 / 6) - 0.1 < loop.time() - cut_s <= SESSION_S * LEASE
        assert broker.silence.is_silent
        assert produced(await written) is ErrorCode.NOT_LEADER_OR_FOLLOWER
        end = broker.partitions[scene.key].log.log_end_offset
        assert produced(await plain.send(produce(1), version=9)) is ErrorCode.NOT_LEADER_OR_FOLLOWER
        await blind.post(produce(0), version=9)
        await blind.wait_closed(5_000)
        assert blind.closed, "a producer that expects no answer is told by that"
        assert broker.partitions[scene.key].log.log_end_offset == end
        for version in (10, 11):
            read = await plain.send(fetch(0, 0), version=version)
            assert fetched(read) is ErrorCode.NOT_LEADER_OR_FOLLOWER
        for each in (poll, write, plain):
            each.close()

    play(act)


def test_whoever_debugs_is_shown_what_a_silent_broker_has() -> None:
    """Replica id -2 asks no leader, but for what this broker's own log has."""

    async def act(scene: Scene) -> None:
        zombie = scene.leader(scene.key)
        line = await scene.line(zombie)
        assert produced(await line.send(produce(-1), version=9)) is ErrorCode.NONE
        scene.cut_off_tree(zombie)
        await scene.until(lambda: zombie in scene.silent())
        for replica_id, code in ((-1, ErrorCode.NOT_LEADER_OR_FOLLOWER), (-2, ErrorCode.NONE)):
            asked = fetch(0, 0)
            asked.replica_id = replica_id
            for version in (4, 11):
                read = await line.send(asked, version=version)
                assert fetched(read) is code, (replica_id, version)
                assert bool(read.responses[0].partitions[0].records) == (replica_id == -2)
        line.close()

    play(act)


def test_a_silent_coordinator_sends_members_away() -> None:
    async def act(scene: Scene) -> None:
        zombie = scene.leader(TopicPartition("__consumer_offsets", 0))
        joining, line = await scene.line(zombie), await scene.line(zombie)
        asked = OffsetFetchRequestTopic(name="t", partition_indexes=[0])
        offsets = OffsetFetchRequest(group_id="g", topics=[asked])
        assert (await line.send(offsets, version=5)).error_code == ErrorCode.NONE
        # The first member waits for others: group.initial.rebalance.delay.ms is 3 s.
        join = JoinGroupRequest(
            group_id="g",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
        )
        scene.cut_off_tree(zombie)
        joined = asyncio.ensure_future(joining.send(join, version=3))
        assert (await joined).error_code == ErrorCode.NOT_COORDINATOR
        assert (await line.send(offsets, version=5)).error_code == ErrorCode.NOT_COORDINATOR
        listed = await line.send(ListGroupsRequest(), version=3)
        assert listed.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        listed = await line.send(ListTransactionsRequest(), version=0)
        assert listed.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        joining.close()
        line.close()

    play(act)


def test_clients_of_a_silent_broker_are_not_sent_to_it() -> None:
    async def act(scene: Scene) -> None:
        zombie = scene.leader(scene.key)
        line = await scene.line(zombie)
        metadata = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
        told = await line.send(metadata, version=9)
        assert told.topics[0].partitions[0].leader_id == zombie
        scene.cut_off_tree(zombie)
        await asyncio.sleep(SESSION_S * LEASE)
        told = await line.send(metadata, version=9)
        partition = told.topics[0].partitions[0]
        assert partition.error_code == ErrorCode.LEADER_NOT_AVAILABLE
        assert partition.leader_id == -1
        others = {number for number in scene.brokers.numbers if number != zombie}
        assert {each.node_id for each in told.brokers} == others, "whom to ask instead"
        assert told.controller_id != zombie
        refused = await line.send(produce(1), version=10)
        assert produced(refused) is ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert refused.responses[0].partition_responses[0].current_leader is None
        if scene.leader(TopicPartition("__consumer_offsets", 0)) == zombie:
            found = await line.send(FindCoordinatorRequest(key="g", key_type=0), version=3)
            assert found.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        line.close()

    play(act)


def test_it_speaks_again_when_its_session_turns_out_to_be_alive() -> None:
    """Cut off everybody for less than a session, and longer than a lease."""

    async def act(scene: Scene) -> None:
        zombie = scene.leader(scene.key)
        broker, line = scene.brokers.running[zombie], await scene.line(zombie)
        epoch, life = broker.partitions[scene.key].leader_epoch, broker.broker_epoch
        await scene.after_heartbeat(zombie)
        scene.cut_off_tree(zombie)
        await asyncio.sleep(SESSION_S * LEASE + 0.05)
        assert broker.silence.is_silent
        scene.world.network.heal(scene.brokers.name(zombie), COORDINATION)
        await asyncio.sleep(ASK_EVERY_MS / 1000 + 0.05)
        assert not broker.silence.hides
        assert (broker.partitions[scene.key].leader_epoch, broker.broker_epoch) == (epoch, life)
        assert produced(await line.send(produce(-1), version=9)) is ErrorCode.NONE
        line.close()

    play(act)


def test_after_the_end_of_its_session_it_leads_nothing_until_it_is_told_to() -> None:
    async def act(scene: Scene) -> None:
        zombie = scene.leader(scene.key)
        broker = scene.brokers.running[zombie]
        life = broker.broker_epoch
        line = await scene.line(zombie)
        scene.brokers.expire(zombie)
        codes = []
        while broker.broker_epoch == life or broker.silence.hides:
            codes.append(produced(await line.send(produce(1), version=9)))
            await asyncio.sleep(0.001)
        silent = codes[codes.index(ErrorCode.NOT_LEADER_OR_FOLLOWER) :]
        assert set(silent) == {ErrorCode.NOT_LEADER_OR_FOLLOWER}, "registered is not told"
        assert await scene.brokers.come_to_rest(30)
        assert scene.leader(scene.key) != zombie
        line.close()

    play(act)


def test_a_role_for_the_ended_registration_is_not_the_one_that_is_awaited() -> None:
    async def act(scene: Scene) -> None:
        zombie = scene.leader(scene.key)
        broker = scene.brokers.running[zombie]
        partition, life = broker.partitions[scene.key], broker.broker_epoch
        scene.brokers.expire(zombie)
        await scene.until(lambda: broker.silence.hides)
        assert broker.broker_epoch == life, "it has not registered again yet"
        assert not broker.silence.role_assigned(partition, life)
        assert not partition.is_leader
        assert broker.silence.role_assigned(partition, life + 1)

    play(act)


@pytest.mark.parametrize("fenced", [False, True])
def test_a_fenced_fetcher_is_news_of_an_election(fenced: bool) -> None:
    """With it a broker is silent although nobody that it reaches has heard of the service."""

    async def act(scene: Scene) -> None:
        leader = scene.leader(scene.key)
        followers = {number for number in scene.brokers.numbers if number != leader}
        scene.lose_service()
        await asyncio.sleep(SESSION_S / 2)
        if fenced:  # they have not heard of the epoch in which it leads now
            scene.brokers.running[leader].partitions[scene.key].leader_epoch += 1
        await asyncio.sleep(SESSION_S)
        assert scene.silent() == (followers if fenced else set())
        scene.find_service()
        await asyncio.sleep(SESSION_S)
        assert scene.silent() == set()

    play(act)


def know_leader_epoch(scene: Scene, peer: WatchedBroker, _: int) -> None:
    peer.partitions[scene.key].leader_epoch += 1


def know_controller_epoch(_: Scene, peer: WatchedBroker, __: int) -> None:
    peer.control._controller_epoch += 1


def know_no_such_member(_: Scene, peer: WatchedBroker, number: int) -> None:
    del peer.cluster.brokers[number]


@pytest.mark.parametrize(
    ("learn", "reason"),
    [
        (know_leader_epoch, "another broker knows a newer leader epoch of t-0"),
        (know_controller_epoch, "knows controller epoch 2, not 1"),
        (know_no_such_member, "does not count it as a member of the cluster"),
    ],
)
def test_what_one_peer_knows_is_enough(
    learn: Callable[[Scene, WatchedBroker, int], None],
    reason: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Nobody is connected to the service any more, and one heard of an election before."""

    async def act(scene: Scene) -> None:
        zombie = scene.leader(scene.key)
        peer = next(number for number in scene.brokers.numbers if number != zombie)
        scene.lose_service()
        await asyncio.sleep(SESSION_S / 3)
        learn(scene, scene.brokers.running[peer], zombie)
        await asyncio.sleep(SESSION_S)
        assert zombie in scene.silent()
        line = await scene.line(zombie)
        assert produced(await line.send(produce(1), version=9)) is ErrorCode.NOT_LEADER_OR_FOLLOWER
        line.close()
        said = [
            each for each in caplog.messages if each.startswith(f"broker {zombie} stops serving")
        ]
        assert len(said) == 1
        assert reason in said[0]

    play(act)


def test_an_election_is_not_forgotten_when_all_lose_the_service() -> None:
    """Then no peer is in contact any more, but each of them knows who is a member."""

    async def act(scene: Scene) -> None:
        zombie = scene.leader(scene.key)
        scene.cut_off_tree(zombie)
        await asyncio.sleep(2 * SESSION_S)
        assert scene.leader(scene.key) != zombie
        scene.lose_service()
        line = await scene.line(zombie)
        for _ in range(30):
            await asyncio.sleep(SESSION_S / 10)
            answer = fetched(await line.send(fetch(0, 0), version=11))
            assert answer is ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert scene.silent() == {zombie}
        line.close()

    play(act)


def test_brokers_without_such_questions_are_asked_for_metadata(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As beside Apache Kafka's brokers: they count as reached, until they know of another."""

    async def act(scene: Scene) -> None:
        for broker in scene.brokers.running.values():
            del broker.served[API_BY_NAME["BrokerStanding"].key]
        zombie = scene.leader(scene.key)
        scene.lose_service()
        await asyncio.sleep(2 * SESSION_S)
        assert scene.silent() == set(), "all answer, and none knows anything newer"
        scene.find_service()
        assert await scene.brokers.come_to_rest(30)
        scene.cut_off_tree(zombie)
        await asyncio.sleep(SESSION_S + BOUND_S)
        assert scene.leader(scene.key) != zombie
        assert scene.silent() == {zombie}
        (said,) = [
            each for each in caplog.messages if each.startswith(f"broker {zombie} stops serving")
        ]
        assert "does not count it as a member" in said or "newer leader epoch" in said

    play(act)


def test_a_silent_controller_decides_nothing() -> None:
    async def act(scene: Scene) -> None:
        zombie = scene.controller()
        line = await scene.line(zombie)
        metadata = MetadataRequest(topics=[])
        assert (await line.send(metadata, version=9)).controller_id == zombie
        scene.cut_off_tree(zombie)
        await scene.until(lambda: zombie in scene.silent())
        assert (await line.send(metadata, version=9)).controller_id == -1
        topic = CreatableTopic(name="u", num_partitions=1, replication_factor=1)
        made = await line.send(CreateTopicsRequest(topics=[topic], timeout_ms=100), version=5)
        assert made.topics[0].error_code == ErrorCode.NOT_CONTROLLER
        moves = await line.send(ListPartitionReassignmentsRequest(topics=None), version=0)
        assert moves.error_code == ErrorCode.NOT_CONTROLLER
        assert scene.brokers.running[zombie].controller.term is not None, "it was not told yet"
        line.close()

    play(act)


def test_what_a_silent_broker_is_given_to_lead_is_silent_too() -> None:
    """The controller still reaches it, and its session has not ended yet."""

    async def act(scene: Scene) -> None:
        controller = scene.controller()
        zombie = next(number for number in scene.brokers.numbers if number != controller)
        line = await scene.line(controller)
        await scene.after_heartbeat(zombie)
        scene.cut_off_tree(zombie)
        await scene.until(lambda: zombie in scene.silent())
        replicas = sorted(scene.brokers.numbers, key=lambda number: number != zombie)
        more = CreatePartitionsTopic(
            name="t", count=2, assignments=[CreatePartitionsAssignment(broker_ids=replicas)]
        )
        asked = CreatePartitionsRequest(topics=[more], timeout_ms=50)
        made = asyncio.ensure_future(line.send(asked, version=1))
        partitions, key = scene.brokers.running[zombie].partitions, TopicPartition("t", 1)
        await scene.until(lambda: key in partitions)
        assert partitions[key].is_assigned_leader
        assert not partitions[key].is_leader
        await made
        line.close()

    play(act)


def test_a_process_that_stood_still_looks_at_the_clock_before_it_answers() -> None:
    async def act(scene: Scene) -> None:
        zombie = scene.leader(scene.key)
        name, line = scene.brokers.name(zombie), await scene.line(zombie)
        assert produced(await line.send(produce(-1), version=9)) is ErrorCode.NONE
        scene.world.pause(name)
        asked = asyncio.ensure_future(line.send(fetch(1, 0), version=11))
        await asyncio.sleep(2 * SESSION_S)
        assert scene.leader(scene.key) != zombie
        scene.world.resume(name)
        try:
            assert fetched(await asked) is ErrorCode.NOT_LEADER_OR_FOLLOWER
        except BarnabasError:
            assert line.closed, "an answer that was made before is not sent"
        line.close()

    play(act)


def test_brokers_tell_each_other_what_they_know_and_nobody_else() -> None:
    async def act(scene: Scene) -> None:
        leader = scene.leader(scene.key)
        other = next(number for number in scene.brokers.numbers if number != leader)
        line = await scene.line(other)
        led = LedTopic(name="t", partitions=[LedPartition(partition_index=0, leader_epoch=-1)])
        told = await line.send(BrokerStandingRequest(broker_id=leader, topics=[led]))
        epoch = scene.brokers.running[leader].partitions[scene.key].leader_epoch
        assert (told.error_code, told.is_member, told.in_contact) == (0, True, True)
        assert told.controller_epoch == scene.brokers.running[other].control.controller_epoch == 1
        assert told.topics == [
            LedTopic(name="t", partitions=[LedPartition(partition_index=0, leader_epoch=epoch)])
        ]
        led.partitions[0].leader_epoch = epoch
        told = await line.send(BrokerStandingRequest(broker_id=77, topics=[led]))
        assert (told.is_member, told.topics) == (False, [])
        scene.cut_off_tree(other)
        await asyncio.sleep(SESSION_S / 2)
        assert not (await line.send(BrokerStandingRequest(broker_id=leader))).in_contact
        own = BrokerStandingRequest.KEY
        for name, sees in (("barnabas", True), ("librdkafka", False)):
            asked = ApiVersionsRequest(client_software_name=name, client_software_version="1")
            listed = await line.send(asked, version=3)
            assert (own in {each.api_key for each in listed.api_keys}) == sees
        line.close()

    play(act)


@pytest.mark.parametrize("switched_off", [False, True])
def test_the_rule_can_be_switched_off(switched_off: bool) -> None:
    async def act(scene: Scene) -> None:
        zombie = scene.leader(scene.key)
        line = await scene.line(zombie)
        assert produced(await line.send(produce(-1), version=9)) is ErrorCode.NONE
        scene.cut_off_tree(zombie)
        await asyncio.sleep(2 * SESSION_S)
        assert scene.leader(scene.key) != zombie
        read = fetched(await line.send(fetch(0, 0), version=11))
        expected = ErrorCode.NONE if switched_off else ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert read is expected
        line.close()

    play(act, **(OFF if switched_off else {}))

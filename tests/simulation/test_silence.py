"""A broker that falls silent: who waits is told, who asks is sent away, nothing is appended."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.simulation.cluster.brokers import PORT, SESSION_MS, Brokers
from tests.simulation.cluster.witness import Witness

from barnabas.client.addresses import Address
from barnabas.client.connection import Connection
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError
from barnabas.model.ids import TopicPartition
from barnabas.records.builder import build_batch
from barnabas.replication.standing import ASK_EVERY_MS, LEASE
from barnabas.simulation.world import COORDINATION, World
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.broker_standing import (
    BrokerStandingRequest,
    LedPartition,
    LedTopic,
)
from barnabas.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from barnabas.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas.wire.messages.list_groups import ListGroupsRequest
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
        controller = next(b for b in self.brokers.running.values() if b.controller.term is not None)
        line = await self.line(controller.broker_id)
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

    def cut_off_tree(self, number: int) -> None:
        self.world.network.cut(self.brokers.name(number), COORDINATION)


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
        # The last heartbeat has just been sent: there is some time between the two ends.
        while True:
            contact = broker.tree.contact
            assert contact is not None
            if contact.asked_ago_ms < 20:
                break
            await asyncio.sleep(0.005)
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
        codes = set()
        while broker.broker_epoch == life or broker.silence.hides:
            codes.add(produced(await line.send(produce(1), version=9)))
            await asyncio.sleep(0.001)
        assert ErrorCode.NOT_LEADER_OR_FOLLOWER in codes
        assert await scene.brokers.come_to_rest(30)
        assert scene.leader(scene.key) != zombie
        line.close()

    play(act)


@pytest.mark.parametrize("fenced", [False, True])
def test_a_fenced_fetcher_is_news_of_an_election(fenced: bool) -> None:
    """With it a broker is silent although nobody that it reaches has heard of the service."""

    async def act(scene: Scene) -> None:
        follower = next(n for n in scene.brokers.numbers if n != scene.leader(scene.key))
        broker = scene.brokers.running[follower]
        scene.world.coordination_store.go_away()
        scene.world.network.set_down(COORDINATION, True)
        await asyncio.sleep(SESSION_S / 2)
        if fenced:
            broker.silence.fenced(scene.key)
        await asyncio.sleep(SESSION_S)
        assert broker.silence.is_silent == fenced
        others = [b for n, b in scene.brokers.running.items() if n != follower]
        assert not any(other.silence.is_silent for other in others)
        scene.world.network.set_down(COORDINATION, False)
        scene.world.coordination_store.come_back()
        await asyncio.sleep(SESSION_S)
        assert not broker.silence.is_silent

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

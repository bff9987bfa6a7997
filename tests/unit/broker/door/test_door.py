"""Requests through the door: like any client's, and no more than the console's mode allows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tests.unit.broker import neighbours
from tests.unit.broker.serving import Serving, batch_of, fetch_request, produce_request

from barnabas.admin.group_offsets import commit_offsets, group_offsets
from barnabas.admin.groups import list_groups
from barnabas.admin.offsets import LATEST
from barnabas.admin.topics import NewTopic, create_topics, delete_topics
from barnabas.broker.broker import Broker
from barnabas.broker.door.door import BrokerDoor
from barnabas.broker.door.requests import RULES
from barnabas.client.errors import KafkaTimeoutError
from barnabas.coordination.memory import MemoryStore
from barnabas.metadata.topic_store import NewTopic as StoredTopic
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.ids import TopicPartition
from barnabas.model.visitor import Mode, Visitor
from barnabas.security.authorizer import Operation, ResourceType
from barnabas.security.principal import Principal
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.join_group import JoinGroupRequest
from barnabas.wire.messages.list_groups import ListGroupsRequest
from barnabas.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

ANA = Visitor("User:ana", "192.0.2.7")
Scenario = Callable[["Hall"], Awaitable[None]]


@dataclass(slots=True)
class Rights:
    """An authorizer that allows what is listed to ana, and everything to brokers."""

    allowed: set[tuple[Operation, ResourceType, str]]
    asked: list[tuple[str, str, Operation, ResourceType, str]]

    def allows(
        self,
        principal: Principal,
        host: str,
        operation: Operation,
        resource: ResourceType,
        name: str,
    ) -> bool:
        if principal.name != "ana":
            return True
        self.asked.append((str(principal), host, operation, resource, name))
        return (operation, resource, name) in self.allowed

    def allows_any(
        self, principal: Principal, host: str, operation: Operation, resource: ResourceType
    ) -> bool:
        return self.allows(principal, host, operation, resource, "")


@dataclass(slots=True)
class Hall:
    """Two brokers; the door is in the first, which is the controller."""

    first: Broker
    second: Broker
    door: BrokerDoor
    rights: Rights

    def allow(self, operation: Operation, resource: ResourceType, name: str) -> None:
        self.rights.allowed.add((operation, resource, name))


@asynccontextmanager
async def hall(folder: Path) -> AsyncIterator[Hall]:
    """Start two brokers, with a topic of one partition led by the second."""
    store = MemoryStore()
    first, second = (
        neighbours.broker(store, folder, number, offsets_topic_replication_factor="1")
        for number in (0, 1)
    )
    await first.start()
    await second.start()
    rights = Rights(set(), [])
    first.authorizer = rights
    door = BrokerDoor(first, Mode.FULL)
    try:
        await neighbours.until(lambda: 1 in first.cluster.brokers, "the first knows the second")
        await neighbours.create(first, StoredTopic("far", 1, 1, {0: [1]}))
        await neighbours.until(lambda: ("far", 0) in second.partitions, "the second has it")
        await neighbours.until(
            lambda: second.partitions[TopicPartition("far", 0)].is_leader, "the second leads it"
        )
        yield Hall(first, second, door, rights)
    finally:
        door.close()
        await second.stop()
        await first.stop()


def in_hall(folder: Path, scenario: Scenario) -> None:
    async def play() -> None:
        async with hall(folder) as two:
            await scenario(two)

    asyncio.run(play())


def far(timestamp: int = LATEST) -> ListOffsetsRequest:
    """Return a request that only the leader can answer."""
    partition = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    return ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name="far", partitions=[partition])]
    )


def test_another_broker_is_asked_after_this_ones_authorizer(tmp_path: Path) -> None:
    async def scenario(two: Hall) -> None:
        with pytest.raises(RequestError, match="User:ana has no DESCRIBE permission") as denied:
            await two.door.ask(ANA, far(), to=1)
        assert denied.value.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert two.rights.asked[-1] == (
            "User:ana", "192.0.2.7", Operation.DESCRIBE, ResourceType.TOPIC, "far",
        )  # fmt: skip
        two.allow(Operation.DESCRIBE, ResourceType.TOPIC, "far")
        response = await two.door.ask(ANA, far(), to=1)
        assert response.topics[0].partitions[0].offset == 0

    in_hall(tmp_path, scenario)


def test_records_go_to_and_come_from_another_broker(tmp_path: Path) -> None:
    async def scenario(two: Hall) -> None:
        for operation in (Operation.WRITE, Operation.READ):
            two.allow(operation, ResourceType.TOPIC, "far")
        sent = produce_request("far", batch_of(["one", "two"]))
        response = await two.door.ask(ANA, sent, to=1, version=9)
        assert response.responses[0].partition_responses[0].error_code == 0
        fetch = fetch_request("far", max_wait_ms=60_000, min_bytes=1_000_000)
        answer = await two.door.ask(ANA, fetch, to=1, version=12, timeout_ms=30_000)
        assert b"two" in bytes(answer.responses[0].partitions[0].records)

    in_hall(tmp_path, scenario)


def test_lists_of_other_brokers_have_only_what_one_may_see(tmp_path: Path) -> None:
    async def scenario(two: Hall) -> None:
        from barnabas.console.client import DoorClient

        admin = DoorClient(two.door, Visitor("User:root", "192.0.2.1"))
        names = [f"group-{number}" for number in range(6)]
        for name in names:
            await commit_offsets(admin, name, {TopicPartition("far", 0): 0})
        assert [each.name for each in await list_groups(admin)] == names
        assert {await _coordinator(two, name) for name in names} == {0, 1}, "both coordinate some"
        ana = DoorClient(two.door, ANA)
        assert await list_groups(ana) == []
        for name in names[:4]:
            two.allow(Operation.DESCRIBE, ResourceType.GROUP, name)
        assert [each.name for each in await list_groups(ana)] == names[:4]
        for name in names[:4]:
            assert await group_offsets(ana, name) == {}, "the topic is hidden"
        two.allow(Operation.DESCRIBE, ResourceType.TOPIC, "far")
        for name in names[:4]:
            assert list(await group_offsets(ana, name)) == [TopicPartition("far", 0)]
        with pytest.raises(RequestError):
            await group_offsets(ana, names[5])

    in_hall(tmp_path, scenario)


async def _coordinator(two: Hall, name: str) -> int:
    from barnabas.admin.coordinators import Kind, find_coordinator
    from barnabas.console.client import DoorClient

    return await find_coordinator(
        DoorClient(two.door, Visitor("User:root", "192.0.2.1")), name, Kind.GROUP
    )


def test_the_controller_is_found_wherever_it_is(tmp_path: Path) -> None:
    async def scenario(two: Hall) -> None:
        from barnabas.console.client import DoorClient

        door = BrokerDoor(two.second, Mode.FULL)  # not the controller's
        client = DoorClient(door, Visitor("User:root", "192.0.2.1"))
        try:
            [made] = await create_topics(client, [NewTopic("made", 2, 1)])
            assert made.error is None
            await neighbours.until(lambda: two.second.cluster.topic("made"), "it is known")
            [gone] = await delete_topics(client, ["made"])
            assert gone.error is None
        finally:
            door.close()

    in_hall(tmp_path, scenario)


def test_a_broker_that_is_gone_is_an_error_and_not_a_wait(tmp_path: Path) -> None:
    async def scenario(two: Hall) -> None:
        two.allow(Operation.DESCRIBE, ResourceType.TOPIC, "far")
        with pytest.raises(RequestError, match="broker 7 is not alive") as gone:
            await two.door.ask(ANA, far(), to=7)
        assert gone.value.code is ErrorCode.BROKER_NOT_AVAILABLE

    in_hall(tmp_path, scenario)


# one broker


@pytest.fixture
def door(serving: Serving) -> BrokerDoor:
    """The door of the module's broker."""
    return serving.inside(lambda: BrokerDoor(serving.broker, Mode.FULL))


def ask(serving: Serving, door: BrokerDoor, request: object, **more: object) -> object:
    """Ask through a door, on the broker's loop."""
    work = door.ask(ANA, request, **more)  # type: ignore[arg-type]
    return asyncio.run_coroutine_threadsafe(work, serving.broker.loop).result(60)


@pytest.mark.parametrize(
    ("mode", "request_", "allowed"),
    [
        (Mode.FULL, CreateTopicsRequest(topics=[]), True),
        (Mode.READ_ONLY, CreateTopicsRequest(topics=[]), False),
        (Mode.METADATA_ONLY, CreateTopicsRequest(topics=[]), False),
        (Mode.READ_ONLY, fetch_request("absent"), True),
        (Mode.METADATA_ONLY, fetch_request("absent"), False),
        (Mode.METADATA_ONLY, ListGroupsRequest(), True),
        (Mode.FULL, JoinGroupRequest(), False),
    ],
)
def test_the_mode_holds_for_requests_and_not_for_buttons(
    serving: Serving, mode: Mode, request_: object, allowed: bool
) -> None:
    door = serving.inside(lambda: BrokerDoor(serving.broker, mode))
    if allowed:
        version = 12 if type(request_).__name__ == "FetchRequest" else None
        assert ask(serving, door, request_, version=version) is not None
        return
    with pytest.raises(RequestError) as refused:
        ask(serving, door, request_)
    assert refused.value.code is ErrorCode.POLICY_VIOLATION


def test_every_rule_is_of_an_api_that_is_served(serving: Serving) -> None:
    served = {each.api.name for each in serving.broker.served.values()}
    assert set(RULES) - served == set()


def test_asking_for_a_topic_never_creates_it(serving: Serving, door: BrokerDoor) -> None:
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name="not-made")], allow_auto_topic_creation=True
    )
    response = ask(serving, door, request)
    [topic] = response.topics  # type: ignore[attr-defined]
    assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_request_that_waits_too_long_is_given_up(
    serving: Serving, door: BrokerDoor, topic: str
) -> None:
    parked = serving.inside(lambda: len(serving.broker.partitions.fetch_purgatory))
    with pytest.raises(KafkaTimeoutError, match="Fetch was not answered within 50 ms"):
        ask(
            serving, door, fetch_request(topic, max_wait_ms=60_000, min_bytes=1),
            version=12, timeout_ms=50,
        )  # fmt: skip
    assert serving.inside(lambda: len(serving.broker.partitions.fetch_purgatory)) == parked


def test_requests_of_one_user_run_together(serving: Serving, door: BrokerDoor, topic: str) -> None:
    async def both() -> tuple[object, object]:
        fetch = fetch_request(topic, max_wait_ms=60_000, min_bytes=1)
        waiting = asyncio.ensure_future(door.ask(ANA, fetch, version=12))
        await asyncio.sleep(0)
        sent = await door.ask(ANA, produce_request(topic, batch_of(["x"])), version=9)
        return sent, await waiting

    _, fetched = asyncio.run_coroutine_threadsafe(both(), serving.broker.loop).result(60)
    assert b"x" in bytes(fetched.responses[0].partitions[0].records)  # type: ignore[attr-defined]


def test_topics_are_sorted_and_filtered(serving: Serving, door: BrokerDoor, topic: str) -> None:
    async def names(visitor: Visitor) -> list[str]:
        return [each.name async for each in door.topics(visitor)]

    def listed(visitor: Visitor) -> list[str]:
        return asyncio.run_coroutine_threadsafe(names(visitor), serving.broker.loop).result(60)

    async def some(**more: str) -> list[str]:
        return [each.name async for each in door.topics(ANA, **more)]

    def part(**more: str) -> list[str]:
        return asyncio.run_coroutine_threadsafe(some(**more), serving.broker.loop).result(60)

    everything = listed(ANA)
    assert part(after=topic) == [name for name in everything if name > topic]
    assert part(containing=topic.upper()) == [name for name in everything if topic in name]
    assert part(after="\U0010ffff") == []
    assert topic in everything
    assert everything == sorted(everything)
    before = serving.broker.authorizer
    serving.broker.authorizer = Rights({(Operation.DESCRIBE, ResourceType.TOPIC, topic)}, [])
    try:
        assert listed(ANA) == [topic]
        assert listed(replace(ANA, principal="User:other")) == everything
    finally:
        serving.broker.authorizer = before

"""The cluster_client finds brokers, keeps connections, and repeats what is worth repeating."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import pytest
from tests.network.scripted_broker import CLOSE, Closing, ScriptedBroker

from barnabas.client.addresses import Address
from barnabas.client.cluster_client import CONTROLLER, ClusterClient
from barnabas.client.errors import ConnectError, KafkaTimeoutError, NoBrokersAvailable
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.ids import TopicPartition
from barnabas.simulation.world import Host, World
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from barnabas.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

T0 = TopicPartition("t", 0)


class Pair:
    """Two scripted brokers, 1 and 2, that tell the same story about topic `t`."""

    def __init__(self) -> None:
        self.brokers = [
            ScriptedBroker({MetadataRequest: self.metadata, DescribeClusterRequest: self.who(n)})
            for n in (1, 2)
        ]
        self.leader, self.controller = 2, 2
        self.topic_error = ErrorCode.NONE
        self.unlisted: set[int] = set()
        self.before_answering: Callable[[], Closing | None] = lambda: None

    def metadata(self, request: MetadataRequest, version: int) -> MetadataResponse:
        return MetadataResponse(
            brokers=[
                MetadataResponseBroker(
                    node_id=n, host=broker.address.host, port=broker.address.port
                )
                for n, broker in enumerate(self.brokers, 1)
                if n not in self.unlisted
            ],
            controller_id=self.controller,
            topics=[
                MetadataResponseTopic(
                    name="t",
                    error_code=self.topic_error,
                    partitions=[
                        MetadataResponsePartition(partition_index=0, leader_id=self.leader)
                    ],
                )
            ],
        )

    def who(self, n: int) -> Callable[[Any, int], DescribeClusterResponse | Closing]:
        def answer(request: Any, version: int) -> DescribeClusterResponse | Closing:
            return self.before_answering() or DescribeClusterResponse(controller_id=n)

        return answer


def converse(client: Callable[[ClusterClient, Pair], Awaitable[Any]], **options: Any) -> Any:
    async def conversation() -> Any:
        pair = Pair()
        async with pair.brokers[0], pair.brokers[1]:
            bootstrap = [pair.brokers[0].address]
            options.setdefault("retry_backoff_ms", (1, 2))
            async with ClusterClient(bootstrap, **options) as cluster_client:
                return await client(cluster_client, pair)

    return asyncio.run(conversation())


async def asked(cluster_client: ClusterClient, to: Any) -> int:
    response = await cluster_client.send(DescribeClusterRequest(), to)
    answered_by: int = response.controller_id
    return answered_by


def test_requests_reach_the_broker_they_are_for() -> None:
    async def client(cluster_client: ClusterClient, pair: Pair) -> list[int]:
        return [await asked(cluster_client, to) for to in (1, 2, CONTROLLER, T0)]

    assert converse(client) == [1, 2, 2, 2]


def test_a_broker_that_names_only_others_is_not_asked_again() -> None:
    """It was deposed, and knows nothing new: the others do."""

    async def client(cluster_client: ClusterClient, pair: Pair) -> list[int]:
        pair.unlisted = {1}
        await cluster_client.refresh()
        return [
            (await cluster_client.send(DescribeClusterRequest())).controller_id for _ in range(5)
        ]

    assert converse(client) == [2] * 5


def test_whoever_is_left_is_asked_when_those_it_names_do_not_answer() -> None:
    async def client(cluster_client: ClusterClient, pair: Pair) -> list[int]:
        pair.unlisted = {1}
        await cluster_client.refresh()
        await pair.brokers[1].__aexit__(None, None, None)
        return [
            (await cluster_client.send(DescribeClusterRequest())).controller_id for _ in range(5)
        ]

    assert converse(client) == [1] * 5


def test_brokers_with_as_little_to_do_are_asked_by_chance() -> None:
    async def client(cluster_client: ClusterClient, pair: Pair) -> set[int]:
        await asked(cluster_client, 1)
        await asked(cluster_client, 2)
        return {
            (await cluster_client.send(DescribeClusterRequest())).controller_id for _ in range(50)
        }

    assert converse(client) == {1, 2}


def test_connections_are_opened_when_needed_and_used_again() -> None:
    async def client(cluster_client: ClusterClient, pair: Pair) -> list[list[int]]:
        opened = []
        for to in (1, 2, 2, 1):
            await asked(cluster_client, to)
            opened.append([broker.connections for broker in pair.brokers])
        return opened

    assert converse(client) == [[1, 0], [1, 1], [1, 1], [1, 1]]


def test_simultaneous_callers_share_one_connection() -> None:
    async def client(cluster_client: ClusterClient, pair: Pair) -> int:
        await asyncio.gather(*(asked(cluster_client, 2) for _ in range(5)))
        return pair.brokers[1].connections

    assert converse(client) == 1


def test_a_lost_connection_is_opened_again() -> None:
    async def client(cluster_client: ClusterClient, pair: Pair) -> int:
        await asked(cluster_client, 2)
        (await cluster_client.connection(2)).close()
        await asked(cluster_client, 2)
        return pair.brokers[1].connections

    assert converse(client) == 2


def test_any_of_several_bootstrap_addresses_will_do() -> None:
    async def conversation() -> int:
        async with ScriptedBroker({}) as gone:
            dead = gone.address
        pair = Pair()
        async with (
            pair.brokers[0],
            pair.brokers[1],
            ClusterClient([dead, pair.brokers[0].address]) as cluster_client,
        ):
            return len((await cluster_client.refresh()).brokers)

    assert asyncio.run(conversation()) == 2


def test_no_bootstrap_address_that_answers_names_them_all() -> None:
    async def conversation() -> None:
        async with ScriptedBroker({}) as one, ScriptedBroker({}) as two:
            dead = [one.address, two.address]
        async with ClusterClient(dead, reconnect_backoff_ms=(1, 1)) as cluster_client:
            with pytest.raises(ConnectError) as failure:
                await cluster_client.refresh()
        assert all(f"cannot connect to {address}" in str(failure.value) for address in dead)

    asyncio.run(conversation())


def test_a_broker_that_refuses_is_not_tried_again_at_once() -> None:
    async def conversation() -> float:
        loop = asyncio.get_running_loop()
        async with ScriptedBroker({}) as gone:
            dead = gone.address
        async with ClusterClient([dead], reconnect_backoff_ms=(30, 30)) as cluster_client:
            with pytest.raises(ConnectError):
                await cluster_client.refresh()
            started = loop.time()
            with pytest.raises(ConnectError):
                await cluster_client.refresh()
            return loop.time() - started

    assert asyncio.run(conversation()) >= 0.8 * 0.030 - 0.002  # jitter; timers may round down


@pytest.mark.parametrize(
    ("leader", "topic_error", "to", "code", "message"),
    [
        (-1, ErrorCode.NONE, T0, ErrorCode.LEADER_NOT_AVAILABLE, "t-0 has no leader"),
        (
            -1,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            T0,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "topic 't'",
        ),
        (
            1,
            ErrorCode.NONE,
            TopicPartition("t", 9),
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "'t' has no partition 9",
        ),
        (1, ErrorCode.NONE, 7, ErrorCode.BROKER_NOT_AVAILABLE, r"broker 7 is not .* \[1, 2\]"),
    ],
)
def test_a_destination_that_is_not_there_is_named(
    leader: int, topic_error: ErrorCode, to: Any, code: ErrorCode, message: str
) -> None:
    async def client(cluster_client: ClusterClient, pair: Pair) -> RequestError:
        pair.leader, pair.topic_error = leader, topic_error
        with pytest.raises(RequestError, match=message) as failure:
            await asked(cluster_client, to)
        return failure.value

    assert converse(client).code is code


def test_retrying_follows_a_leader_that_moved() -> None:
    async def client(cluster_client: ClusterClient, pair: Pair) -> tuple[int, int]:
        pair.leader = 1
        await cluster_client.refresh(["t"])
        attempts = 0

        async def attempt() -> int:
            nonlocal attempts
            attempts += 1
            answered_by = await asked(cluster_client, T0)
            if answered_by == 1:
                pair.leader = 2
                raise RequestError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return answered_by

        return await cluster_client.retrying(attempt, topics=["t"]), attempts

    assert converse(client) == (2, 2)


def test_retrying_survives_lost_connections() -> None:
    closings = [CLOSE, CLOSE]

    async def client(cluster_client: ClusterClient, pair: Pair) -> int:
        pair.before_answering = lambda: closings.pop() if closings else None
        return await cluster_client.retrying(lambda: asked(cluster_client, 2))

    assert converse(client) == 2
    assert closings == []


def test_retrying_stops_at_a_final_failure() -> None:
    async def client(cluster_client: ClusterClient, pair: Pair) -> int:
        attempts = 0

        async def attempt() -> None:
            nonlocal attempts
            attempts += 1
            raise RequestError(ErrorCode.INVALID_CONFIG, "no such option")

        with pytest.raises(RequestError, match="no such option"):
            await cluster_client.retrying(attempt)
        return attempts

    assert converse(client) == 1


def test_retrying_gives_up_when_time_is_up() -> None:
    async def client(cluster_client: ClusterClient, pair: Pair) -> int:
        attempts = 0

        async def attempt() -> None:
            nonlocal attempts
            attempts += 1
            raise RequestError(ErrorCode.REQUEST_TIMED_OUT)

        with pytest.raises(RequestError):
            await cluster_client.retrying(attempt, timeout_ms=30)
        return attempts

    assert converse(client) > 2


def test_retrying_does_not_wait_for_an_attempt_that_outlasts_its_time() -> None:
    async def client(cluster_client: ClusterClient, pair: Pair) -> None:
        await cluster_client.refresh()
        with pytest.raises(KafkaTimeoutError, match="not completed within 20 ms"):
            await cluster_client.retrying(asyncio.Event().wait, timeout_ms=20)

    converse(client)


def test_retrying_tells_of_the_failure_before_an_attempt_that_outlasts_its_time() -> None:
    async def client(cluster_client: ClusterClient, pair: Pair) -> None:
        failures = [RequestError(ErrorCode.REQUEST_TIMED_OUT, "busy")]

        async def attempt() -> None:
            if failures:
                raise failures.pop()
            await asyncio.Event().wait()

        with pytest.raises(RequestError, match="busy"):
            await cluster_client.retrying(attempt, timeout_ms=50)

    converse(client)


def test_brokers_that_say_nothing_are_named_when_the_time_is_up() -> None:
    async def look() -> None:
        silent: dict[Any, Any] = {ApiVersionsRequest: lambda request, version: None}
        async with (
            ScriptedBroker(silent) as broker,
            ClusterClient([broker.address], connect_timeout_ms=60_000) as cluster_client,
        ):
            with pytest.raises(NoBrokersAvailable, match="no response within 20 ms") as caught:
                await cluster_client.retrying(cluster_client.refresh, timeout_ms=20)
            assert str(broker.address) in str(caught.value)

    asyncio.run(asyncio.wait_for(look(), 10))


def test_a_connection_that_is_there_is_given_and_none_is_opened() -> None:
    async def client(cluster_client: ClusterClient, pair: Pair) -> None:
        assert cluster_client.usable(2) is None
        await cluster_client.refresh()
        assert cluster_client.usable(2) is None
        assert cluster_client.usable(9) is None
        assert await asked(cluster_client, 2) == 2
        assert cluster_client.usable(2) is await cluster_client.connection(2)
        assert cluster_client.usable(2, channel="other") is None
        assert pair.brokers[1].connections == 1

    converse(client)


def test_bootstrap_addresses_may_be_text() -> None:
    cluster_client = ClusterClient("a:1,b:2")
    assert cluster_client._bootstrap == [Address("a", 1), Address("b", 2)]


def test_on_a_simulated_loop_it_outlives_a_broker_that_restarts() -> None:
    def metadata(request: MetadataRequest, version: int) -> MetadataResponse:
        broker = MetadataResponseBroker(node_id=1, host="broker", port=9092)
        return MetadataResponse(brokers=[broker], cluster_id="simulated")

    async def serve(host: Host) -> None:
        async with ScriptedBroker({MetadataRequest: metadata}, address=Address("broker", 9092)):
            await asyncio.Event().wait()

    async def scenario() -> list[str | None]:
        names = []
        async with ClusterClient([Address("broker", 9092)], random=Random(1)) as cluster_client:
            for _ in range(3):
                view = await cluster_client.retrying(cluster_client.refresh)
                names.append(view.cluster_id)
                world.kill("broker")
                asyncio.get_running_loop().call_later(0.5, world.restart, "broker")
        return names

    with World(seed=5) as world:
        world.start("broker", serve)
        assert world.run(scenario(), until=60) == ["simulated"] * 3

"""Requests without tasks: callbacks once and on the loop, queues, timeouts, throttles, counts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.network.scripted_broker import CLOSE, Closing, Script, ScriptedBroker

from barnabas.client.addresses import Address
from barnabas.client.connection import Connection
from barnabas.client.errors import ConnectionLostError, RequestTimeoutError, UnsupportedApiError
from barnabas.model.errors import LocalProtocolError
from barnabas.simulation.network import DRIVER
from barnabas.simulation.world import World
from barnabas.wire.messages.describe_cluster import DescribeClusterRequest
from barnabas.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)


def metadata(request: MetadataRequest, version: int) -> MetadataResponse:
    """Answer with the first topic's name as cluster id, so that answers can be told apart."""
    assert request.topics is not None
    return MetadataResponse(cluster_id=request.topics[0].name)


def ask(name: object) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name=str(name))])


def asked_for(broker: ScriptedBroker) -> list[str]:
    """Return the names that the broker was asked for, in order."""
    return [request.message.topics[0].name for request in broker.asked(MetadataRequest)]  # type: ignore[attr-defined]


HERE = Address(DRIVER, 9092)


class Answers:
    """Collects what callbacks are told, and lets a test wait for a number of them."""

    def __init__(self) -> None:
        self.told: list[Any] = []
        self._news = asyncio.Event()

    def __call__(self, response: Any, failure: BaseException | None) -> None:
        assert (response is None) is not (failure is None)
        self.told.append(failure if response is None else response.cluster_id)
        self._news.set()

    async def wait(self, count: int) -> list[Any]:
        async with asyncio.timeout(10):
            while len(self.told) < count:
                self._news.clear()
                await self._news.wait()
        return self.told


def talk(
    script: Script,
    client: Callable[[Connection, ScriptedBroker], Awaitable[Any]],
    **options: Any,
) -> Any:
    async def conversation() -> Any:
        async with ScriptedBroker(script, address=HERE) as broker:
            connection = await Connection.open(broker.address, client_id="test", **options)
            try:
                return await client(connection, broker)
            finally:
                connection.close()

    with World(seed=1) as world:
        return world.run(conversation(), until=60)


def test_answers_come_in_order_and_never_before_submit_returns() -> None:
    async def client(connection: Connection, broker: ScriptedBroker) -> list[Any]:
        answers = Answers()
        for n in range(12):
            connection.submit(ask(n), answers)
        assert answers.told == []
        assert connection.in_flight == 5
        assert connection.load == 12
        return await answers.wait(12)

    assert talk({MetadataRequest: metadata}, client) == [str(n) for n in range(12)]


def test_can_submit_says_whether_a_request_would_be_written_at_once() -> None:
    async def client(connection: Connection, broker: ScriptedBroker) -> list[bool]:
        answers = Answers()
        seen = [connection.can_submit]
        connection.submit(ask(1), answers)
        seen.append(connection.can_submit)
        connection.submit(ask(2), answers)
        seen.append(connection.can_submit)
        await answers.wait(2)
        seen.append(connection.can_submit)
        connection.close()
        seen.append(connection.can_submit)
        return seen

    seen = talk({MetadataRequest: metadata}, client, in_flight_max=2)
    assert seen == [True, True, False, True, False]


def test_a_closed_connection_answers_later_not_at_once() -> None:
    async def client(connection: Connection, broker: ScriptedBroker) -> Any:
        connection.close()
        answers = Answers()
        connection.submit(ask(1), answers)
        assert answers.told == []
        return (await answers.wait(1))[0]

    assert isinstance(talk({MetadataRequest: metadata}, client), ConnectionLostError)


def test_an_api_that_the_broker_lacks_is_told_by_the_callback() -> None:
    async def client(connection: Connection, broker: ScriptedBroker) -> Any:
        answers = Answers()
        connection.submit(DescribeClusterRequest(), answers)
        return (await answers.wait(1))[0]

    assert isinstance(talk({MetadataRequest: metadata}, client), UnsupportedApiError)


def test_a_message_that_cannot_be_encoded_is_raised_and_leaves_the_connection_alone() -> None:
    async def client(connection: Connection, broker: ScriptedBroker) -> list[Any]:
        answers = Answers()
        with pytest.raises(LocalProtocolError):
            connection.submit(
                MetadataRequest(topics=[MetadataRequestTopic(name="x" * 40_000)]),
                answers,
                version=1,
            )
        connection.submit(ask("good"), answers)
        return await answers.wait(1)

    assert talk({MetadataRequest: metadata}, client) == ["good"]


def test_each_request_hears_of_the_end_once_sent_or_not() -> None:
    async def client(connection: Connection, broker: ScriptedBroker) -> list[Any]:
        answers = Answers()
        for n in range(3):
            connection.submit(ask(n), answers)
        told = await answers.wait(3)
        await asyncio.sleep(0)
        return told

    script: Script = {MetadataRequest: lambda request, version: CLOSE}
    sent, *unsent = talk(script, client, in_flight_max=1)
    assert "closed by the broker before Metadata was answered (" in str(sent)
    assert ["before Metadata was sent (" in str(failure) for failure in unsent] == [True, True]


def test_a_request_that_is_never_sent_fails_alone() -> None:
    async def client(connection: Connection, broker: ScriptedBroker) -> list[Any]:
        slow, quick = Answers(), Answers()
        connection.submit(ask("slow"), slow)
        connection.submit(ask("quick"), quick, timeout_ms=20)
        (failure,) = await quick.wait(1)
        assert isinstance(failure, RequestTimeoutError)
        assert not connection.closed
        broker_may_answer.set()
        return [str(failure), *await slow.wait(1)]

    broker_may_answer = asyncio.Event()

    async def conversation() -> Any:
        async with SlowBroker(metadata, broker_may_answer) as broker:
            connection = await Connection.open(broker.address, client_id="test", in_flight_max=1)
            try:
                return await client(connection, broker)
            finally:
                connection.close()

    said, answer = asyncio.run(conversation())
    assert "Metadata could not be sent to" in said
    assert "within 20 ms: 1 requests were ahead of it" in said
    assert answer == "slow"


def test_requests_time_out_in_the_order_of_their_times() -> None:
    async def client(connection: Connection, broker: ScriptedBroker) -> list[str]:
        answers = Answers()
        connection.submit(ask("sent"), answers, timeout_ms=60)
        for name, timeout_ms in (("late", 40), ("later", 20), ("patient", 10_000)):
            connection.submit(ask(name), answers, timeout_ms=timeout_ms)
        told = [str(failure) for failure in await answers.wait(4)]
        assert connection.closed
        return told

    later, late, sent, patient = talk(
        {MetadataRequest: lambda request, version: None}, client, in_flight_max=1
    )
    assert "within 20 ms: 2 requests were ahead of it" in later
    assert "within 40 ms: 1 requests were ahead of it" in late
    assert "did not respond to Metadata within 60 ms" in sent
    assert "a request timed out before Metadata was sent" in patient


def test_an_answered_request_leaves_the_time_to_the_next() -> None:
    async def client(connection: Connection, broker: ScriptedBroker) -> str:
        answers = Answers()
        connection.submit(ask("first"), answers, timeout_ms=30)
        assert await answers.wait(1) == ["first"]
        connection.submit(ask("silent"), answers, timeout_ms=60)
        return str((await answers.wait(2))[1])

    def answer(request: MetadataRequest, version: int) -> Any:
        assert request.topics is not None
        silent = request.topics[0].name == "silent"
        return None if silent else metadata(request, version)

    assert "did not respond to Metadata within 60 ms" in talk({MetadataRequest: answer}, client)


class SlowBroker(ScriptedBroker):
    """Answers Metadata only once it is allowed to."""

    def __init__(self, answer: Callable[[Any, int], Any], allowed: asyncio.Event) -> None:
        super().__init__({MetadataRequest: answer})
        self._allowed = allowed

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await super()._serve(_Gate(reader, self._allowed), writer)  # type: ignore[arg-type]


class _Gate:
    """Lets the first request (ApiVersions) through and holds the others."""

    def __init__(self, reader: asyncio.StreamReader, allowed: asyncio.Event) -> None:
        self._reader, self._allowed, self._reads = reader, allowed, 0

    async def readexactly(self, count: int) -> bytes:
        self._reads += 1
        data = await self._reader.readexactly(count)
        if self._reads > 2:
            await self._allowed.wait()
        return data


def test_a_cancelled_send_that_was_not_sent_is_not_sent_later() -> None:
    async def client(connection: Connection, broker: ScriptedBroker) -> list[str]:
        first = asyncio.ensure_future(connection.send(ask("first")))
        second = asyncio.ensure_future(connection.send(ask("second")))
        await asyncio.sleep(0)
        second.cancel()
        await first
        await connection.send(ask("third"))
        return asked_for(broker)

    assert talk({MetadataRequest: metadata}, client, in_flight_max=1) == ["first", "third"]


def test_a_callback_that_fails_is_reported_and_hurts_nobody_else() -> None:
    async def client(connection: Connection, broker: ScriptedBroker) -> tuple[list[Any], list[Any]]:
        reports: list[Any] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: reports.append(context["exception"]))
        answers = Answers()

        def bug(response: Any, failure: BaseException | None) -> None:
            raise ZeroDivisionError

        connection.submit(ask(1), bug)
        connection.submit(ask(2), answers)
        return await answers.wait(1), list(reports)

    told, reports = talk({MetadataRequest: metadata}, client)
    assert told == ["2"]
    assert [type(report) for report in reports] == [ZeroDivisionError]


def test_a_throttled_client_is_quiet_as_long_as_it_was_asked_to_be() -> None:
    changed = asyncio.Event()

    def throttled(request: MetadataRequest, version: int) -> MetadataResponse:
        return MetadataResponse(throttle_time_ms=30)

    async def client(connection: Connection, broker: ScriptedBroker) -> float:
        loop = asyncio.get_running_loop()
        started = loop.time()
        await connection.send(ask(1))
        assert not connection.can_submit
        assert changed.is_set()  # those who watch learn when it begins, too
        changed.clear()
        await asyncio.wait_for(changed.wait(), 10)
        assert connection.can_submit
        return loop.time() - started

    elapsed = talk({MetadataRequest: throttled}, client, changed=changed.set)
    assert elapsed >= 0.03


def test_requests_bytes_and_times_are_counted() -> None:
    async def client(connection: Connection, broker: ScriptedBroker) -> Any:
        await asyncio.gather(*(connection.send(ask(n)) for n in range(3)))
        return connection.stats

    stats = talk({MetadataRequest: metadata}, client)
    assert (stats.requests, stats.answers) == (4, 4)  # one of them is ApiVersions
    assert stats.bytes_out > 4 * stats.request_bytes_max / 4 > 0
    assert stats.bytes_in > 0
    assert (stats.opened, stats.closed) == (1, 1)
    assert stats.latency_us.count == 4


def test_a_request_without_an_answer_is_posted_at_once() -> None:
    async def client(connection: Connection, broker: ScriptedBroker) -> list[str]:
        connection.post_now(ask("posted"))
        connection.close()
        with pytest.raises(ConnectionLostError):
            connection.post_now(ask("late"))
        await asyncio.wait_for(arrived.wait(), 10)
        return asked_for(broker)

    arrived = asyncio.Event()
    script: Script = {MetadataRequest: lambda request, version: arrived.set()}
    assert talk(script, client) == ["posted"]


def test_a_plain_client_of_a_tls_listener_gets_a_hint() -> None:
    def hang_up(request: Any, version: int) -> Closing:
        return CLOSE

    async def client(connection: Connection, broker: ScriptedBroker) -> None:
        raise AssertionError("the connection must not open")

    from barnabas.wire.messages.api_versions import ApiVersionsRequest

    with pytest.raises(ConnectionLostError, match="it may expect TLS"):
        talk({ApiVersionsRequest: hang_up}, client)

"""One connection against a scripted peer: negotiation, order, time, clear words at its end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.network.scripted_broker import CLOSE, Script, ScriptedBroker

from barnabas.client.addresses import Address
from barnabas.client.connection import Connection
from barnabas.client.errors import ConnectError, ConnectionLostError, RequestTimeoutError
from barnabas.model.errors import RemoteProtocolError, RequestError
from barnabas.wire.frame import response_frame
from barnabas.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.wire.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.wire.schema import Message

Loop = Callable[[], asyncio.AbstractEventLoop]


def new_uvloop() -> asyncio.AbstractEventLoop:
    uvloop = pytest.importorskip("uvloop")
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


def talk(
    script: Script,
    client: Callable[[Connection, ScriptedBroker], Awaitable[Any]],
    *,
    versions: dict[type[Message], tuple[int, int]] | None = None,
    loop: Loop = asyncio.new_event_loop,
    **options: Any,
) -> Any:
    """Run a client against a script and return what it returns."""

    async def conversation() -> Any:
        async with ScriptedBroker(script, versions) as broker:
            connection = await Connection.open(broker.address, client_id="test", **options)
            try:
                return await client(connection, broker)
            finally:
                connection.close()

    with asyncio.Runner(loop_factory=loop) as runner:
        return runner.run(conversation())


def metadata(request: MetadataRequest, version: int) -> MetadataResponse:
    """Answer with the first topic's name as cluster id, so that answers can be told apart."""
    assert request.topics is not None
    return MetadataResponse(cluster_id=request.topics[0].name)


def ask(name: str) -> MetadataRequest:
    from barnabas.wire.messages.metadata import MetadataRequestTopic

    return MetadataRequest(topics=[MetadataRequestTopic(name=name)])


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, new_uvloop])
def test_many_requests_in_flight_get_their_own_answers(loop: Loop) -> None:
    async def client(connection: Connection, broker: ScriptedBroker) -> list[str]:
        answers = await asyncio.gather(*(connection.send(ask(str(n))) for n in range(20)))
        return [answer.cluster_id for answer in answers]

    assert talk({MetadataRequest: metadata}, client, loop=loop) == [str(n) for n in range(20)]


def test_the_newest_common_versions_are_spoken() -> None:
    async def client(connection: Connection, broker: ScriptedBroker) -> list[int]:
        await connection.send(ask("a"))
        return [request.version for request in broker.requests]

    versions = {MetadataRequest: (2, 7)}
    assert talk({MetadataRequest: metadata}, client, versions=versions) == [4, 7]


@pytest.mark.parametrize("highest", [0, 2, 3])
def test_a_peer_that_does_not_know_our_negotiation_is_asked_in_its_own_version(
    highest: int,
) -> None:
    async def client(connection: Connection, broker: ScriptedBroker) -> list[int]:
        await connection.send(ask("a"))
        return [request.version for request in broker.asked(ApiVersionsRequest)]

    versions: dict[type[Message], tuple[int, int]] = {ApiVersionsRequest: (0, highest)}
    assert talk({MetadataRequest: metadata}, client, versions=versions) == [highest]


def test_an_empty_refusal_means_version_zero() -> None:
    def versions(request: ApiVersionsRequest, version: int) -> Message | bytes:
        if version > 0:
            return response_frame(ApiVersionsResponse(error_code=35), 0, 1)
        return ApiVersionsResponse()

    async def client(connection: Connection, broker: ScriptedBroker) -> list[int]:
        return [request.version for request in broker.requests]

    assert talk({ApiVersionsRequest: versions}, client) == [4, 0]


def test_another_refusal_to_negotiate_is_told() -> None:
    async def client(connection: Connection, broker: ScriptedBroker) -> None:
        raise AssertionError("the connection must not open")

    script: Script = {ApiVersionsRequest: lambda r, v: ApiVersionsResponse(error_code=42)}
    with pytest.raises(RequestError, match="failed to return its API versions"):
        talk(script, client)


def test_an_answer_to_a_later_request_breaks_the_connection() -> None:
    def swapped(request: MetadataRequest, version: int) -> bytes | None:
        # Correlation ids: 1 was the negotiation, 2 and 3 are ours; 3 is answered first.
        assert request.topics is not None
        if request.topics[0].name == "first":
            return None
        return response_frame(MetadataResponse(), version, 3)

    async def client(connection: Connection, broker: ScriptedBroker) -> list[Any]:
        return await asyncio.gather(
            connection.send(ask("first")), connection.send(ask("second")), return_exceptions=True
        )

    first, second = talk({MetadataRequest: swapped}, client)
    assert isinstance(first, RemoteProtocolError)
    assert "response to request 3 before request 2" in str(first)
    assert isinstance(second, ConnectionLostError)


def test_an_answer_without_a_question_breaks_the_connection() -> None:
    def twice(request: MetadataRequest, version: int) -> bytes:
        return 2 * response_frame(MetadataResponse(), version, 2)

    async def client(connection: Connection, broker: ScriptedBroker) -> None:
        await connection.send(ask("a"))
        await connection.send(ask("b"))

    with pytest.raises(ConnectionLostError, match="violated the protocol"):
        talk({MetadataRequest: twice}, client)


def test_an_answer_that_cannot_be_read_is_an_error_of_the_peer() -> None:
    def cut(request: MetadataRequest, version: int) -> bytes:
        frame = response_frame(MetadataResponse(cluster_id="cut"), version, 2)[4:-3]
        return len(frame).to_bytes(4, "big") + frame

    async def client(connection: Connection, broker: ScriptedBroker) -> None:
        await connection.send(ask("a"))

    with pytest.raises(RemoteProtocolError, match=r"^127\.0\.0\.1:\d+: MetadataResponse v\d+ ends"):
        talk({MetadataRequest: cut}, client)


def test_an_answer_that_is_too_large_names_the_peer() -> None:
    async def client(connection: Connection, broker: ScriptedBroker) -> None:
        await connection.send(ask("a"))

    with pytest.raises(RemoteProtocolError, match=r"^127\.0\.0\.1:\d+: frame of 99999 bytes"):
        talk(
            {MetadataRequest: lambda request, version: (99_999).to_bytes(4, "big")},
            client,
            response_bytes_max=10_000,
        )


def test_no_answer_in_time_closes_the_connection_and_names_the_api() -> None:
    async def client(connection: Connection, broker: ScriptedBroker) -> list[Any]:
        late, other = await asyncio.gather(
            connection.send(ask("a"), timeout_ms=20),
            connection.send(ask("b")),
            return_exceptions=True,
        )
        assert connection.closed
        return [late, other]

    late, other = talk({MetadataRequest: lambda request, version: None}, client)
    assert isinstance(late, RequestTimeoutError)
    assert "did not respond to Metadata within 20 ms" in str(late)
    assert isinstance(other, ConnectionLostError)
    assert "a request timed out before Metadata was answered" in str(other)


def test_a_peer_that_closes_is_named_with_the_unanswered_request() -> None:
    async def client(connection: Connection, broker: ScriptedBroker) -> None:
        await connection.send(ask("a"))

    with pytest.raises(ConnectionLostError, match="closed by the broker before Metadata was"):
        talk({MetadataRequest: lambda request, version: CLOSE}, client)


def test_nothing_is_sent_on_a_closed_connection() -> None:
    async def client(connection: Connection, broker: ScriptedBroker) -> int:
        connection.close()
        with pytest.raises(ConnectionLostError, match="closed by this client"):
            await connection.send(ask("a"))
        return len(broker.asked(MetadataRequest))

    assert talk({MetadataRequest: metadata}, client) == 0


def test_requests_beyond_the_limit_wait_for_a_free_place() -> None:
    seen: list[int] = []

    async def client(connection: Connection, broker: ScriptedBroker) -> None:
        async def one(name: str) -> None:
            await connection.send(ask(name))

        tasks = [asyncio.ensure_future(one(str(n))) for n in range(5)]
        while not all(task.done() for task in tasks):
            seen.append(connection.in_flight)
            await asyncio.sleep(0)

    talk({MetadataRequest: metadata}, client, in_flight_max=2)
    assert max(seen) == 2


def test_waiting_requests_fail_when_the_connection_ends() -> None:
    async def client(connection: Connection, broker: ScriptedBroker) -> list[Any]:
        return await asyncio.gather(
            *(connection.send(ask(str(n))) for n in range(4)), return_exceptions=True
        )

    script: Script = {MetadataRequest: lambda request, version: CLOSE}
    answers = talk(script, client, in_flight_max=1)
    assert [type(answer) for answer in answers] == [ConnectionLostError] * 4


def test_a_cancelled_request_leaves_the_order_intact() -> None:
    async def client(connection: Connection, broker: ScriptedBroker) -> str:
        abandoned = asyncio.ensure_future(connection.send(ask("abandoned")))
        await asyncio.sleep(0)
        abandoned.cancel()
        answer = await connection.send(ask("kept"))
        name: str = answer.cluster_id
        return name

    assert talk({MetadataRequest: metadata}, client) == "kept"


def test_a_posted_request_waits_for_nothing() -> None:
    async def client(connection: Connection, broker: ScriptedBroker) -> tuple[int, str]:
        await connection.post(ask("posted"))
        in_flight = connection.in_flight
        answer = await connection.send(ask("sent"))
        return in_flight, answer.cluster_id

    def only_sent(request: MetadataRequest, version: int) -> MetadataResponse | None:
        answer = metadata(request, version)
        return answer if answer.cluster_id == "sent" else None

    assert talk({MetadataRequest: only_sent}, client) == (0, "sent")


def test_a_refused_connection_is_told_in_plain_words() -> None:
    async def connect() -> None:
        async with ScriptedBroker({}) as broker:
            address = broker.address
        await Connection.open(address, client_id="test")

    with pytest.raises(ConnectError, match=r"cannot connect to 127.0.0.1:\d+: connection refused"):
        asyncio.run(connect())


def test_an_unknown_host_is_told_in_plain_words() -> None:
    async def connect() -> None:
        await Connection.open(Address("no-such-host.invalid", 1), client_id="test")

    with pytest.raises(ConnectError, match=r"cannot connect to no-such-host.invalid:1: \w"):
        asyncio.run(connect())


def test_a_silent_peer_does_not_hold_up_opening_for_ever() -> None:
    async def connect() -> None:
        script: Script = {ApiVersionsRequest: lambda request, version: None}
        async with ScriptedBroker(script) as broker:
            await Connection.open(broker.address, client_id="test", connect_timeout_ms=20)

    with pytest.raises(RequestTimeoutError, match="did not respond to ApiVersions within 20 ms"):
        asyncio.run(connect())

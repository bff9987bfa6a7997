"""The scripted peer behaves like a broker where its script does not say otherwise."""

from __future__ import annotations

import asyncio

from tests.network.scripted_broker import Script, ScriptedBroker

from barnabas.wire.frame import request_frame
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.metadata import MetadataRequest, MetadataResponse

SCRIPT: Script = {MetadataRequest: lambda request, version: MetadataResponse(cluster_id="c")}


def exchange(*frames: bytes) -> bytes:
    """Send frames and return all that comes back until the broker closes."""

    async def conversation() -> bytes:
        async with ScriptedBroker(SCRIPT, {MetadataRequest: (1, 9)}) as broker:
            reader, writer = await asyncio.open_connection(*broker.address)
            writer.write(b"".join(frames))
            writer.write_eof()
            answer = await reader.read()
            writer.close()
            return answer

    return asyncio.run(conversation())


def test_it_advertises_what_it_answers() -> None:
    answer = exchange(request_frame(ApiVersionsRequest(), 0, 7, "test"))
    # size, correlation id, no error, two APIs: ApiVersions 0-4, Metadata 1-9
    assert answer.hex(" ", 2) == (
        "0000 0016 0000 0007 0000 0000 0002 0012 0000 0004 0003 0001 0009"
    )


def test_an_unknown_version_of_api_versions_is_refused_in_version_zero() -> None:
    frame = bytearray(request_frame(ApiVersionsRequest(), 4, 7, "test"))
    frame[6:8] = b"\x00\x63"
    answer = exchange(bytes(frame))
    assert answer.hex(" ", 2) == "0000 0010 0000 0007 0023 0000 0001 0012 0000 0004"


def test_any_other_unknown_version_closes_the_connection() -> None:
    assert exchange(request_frame(MetadataRequest(), 10, 7, "test")) == b""


def test_requests_are_answered_in_order() -> None:
    frames = [request_frame(MetadataRequest(), 1, number, "test") for number in (1, 2)]
    answer = exchange(*frames)
    size = int.from_bytes(answer[:4], "big") + 4
    assert [answer[4:8], answer[size + 4 : size + 8]] == [b"\0\0\0\1", b"\0\0\0\2"]

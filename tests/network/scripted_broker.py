"""A peer that speaks the protocol and answers from a script: for tests of clients.

    answers = {MetadataRequest: lambda request, version: MetadataResponse(...)}
    async with ScriptedBroker(answers) as broker:
        ...  # connect to broker.address

It serves every API that it has an answer for, in the versions of our tables or of `versions`;
`requests` lists what it was asked. An answer is a function of request and version, and gives a
response, raw bytes (to break the protocol), None (silence) or `CLOSE`.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, NamedTuple

from barnabas.client.addresses import Address
from barnabas.wire.apis import API_VERSIONS_KEY, api, api_of
from barnabas.wire.codec import decode
from barnabas.wire.frame import response_frame
from barnabas.wire.header import decode_request_header
from barnabas.wire.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from barnabas.wire.schema import Message


class Closing(Enum):
    """The type of `CLOSE`."""

    CLOSE = "close the connection instead of answering"


CLOSE = Closing.CLOSE

ACCEPTING_TURNS = 5
"""Turns of the loop from the acceptance of a connection to the task that serves it, and some more.
"""

FRAME_BYTES_MAX = 100 << 20
"""Larger requests are not read, as brokers do; TLS that was not expected looks like one."""

ANYWHERE = Address("127.0.0.1", 0)

Answer = Message | bytes | Closing | None
Script = Mapping[type[Message], Callable[[Any, int], Answer]]


class Asked(NamedTuple):
    """One request as it came in."""

    version: int
    correlation_id: int
    client_id: str
    message: Message


class ScriptedBroker:
    """A server on the running loop, on a free port of this machine if no address is given."""

    def __init__(
        self,
        script: Script,
        versions: Mapping[type[Message], tuple[int, int]] | None = None,
        address: Address = ANYWHERE,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.requests: list[Asked] = []
        self.connections = 0
        self._script: Script = {ApiVersionsRequest: self._tell_versions, **script}
        self._versions = dict(versions or {})
        self._listen = address
        self._tls = tls
        self._server: asyncio.Server | None = None
        self._serving: dict[asyncio.StreamWriter, asyncio.Task[None] | None] = {}

    @property
    def address(self) -> Address:
        """Return where it listens."""
        assert self._server is not None
        host, port = self._server.sockets[0].getsockname()[:2]
        return Address(host, port)

    def asked(self, kind: type[Message]) -> list[Asked]:
        """Return the requests of one class."""
        return [request for request in self.requests if type(request.message) is kind]

    async def __aenter__(self) -> ScriptedBroker:
        self._server = await asyncio.start_server(self._serve, *self._listen, ssl=self._tls)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for _turn in range(ACCEPTING_TURNS):  # who was accepted just now is served from now on
            await asyncio.sleep(0)
        tasks = [task for task in self._serving.values() if task is not None]
        for writer in self._serving:
            writer.transport.abort()
        # Else the loop would cancel them at its end, which asyncio's streams log as a failure.
        await asyncio.gather(*tasks)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._serving[writer] = asyncio.current_task()
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(4), "big")
                if size > FRAME_BYTES_MAX:
                    break
                answer = self._answer(await reader.readexactly(size))
                if answer is CLOSE:
                    break
                if isinstance(answer, bytes):
                    writer.write(answer)
                    await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, ssl.SSLError):
            pass  # the client has gone
        finally:
            writer.close()
            del self._serving[writer]

    def _answer(self, frame: bytes) -> bytes | Closing | None:
        header, position = decode_request_header(frame)
        kind = api(header.api_key).request
        lowest, highest = self._range(kind)
        if not lowest <= header.api_version <= highest:
            if header.api_key != API_VERSIONS_KEY:
                return CLOSE
            refusal = ApiVersionsResponse(
                error_code=35,
                api_keys=[
                    ApiVersion(api_key=API_VERSIONS_KEY, min_version=lowest, max_version=highest)
                ],
            )
            return response_frame(refusal, 0, header.correlation_id)
        message, _ = decode(kind, frame, header.api_version, position)
        asked = Asked(header.api_version, header.correlation_id, header.client_id, message)
        self.requests.append(asked)
        answer = self._script[kind](message, header.api_version)
        if isinstance(answer, Message):
            return response_frame(answer, header.api_version, header.correlation_id)
        return answer

    def _range(self, kind: type[Message]) -> tuple[int, int]:
        return self._versions.get(kind) or api_of(kind).stable_versions

    def _tell_versions(self, request: ApiVersionsRequest, version: int) -> ApiVersionsResponse:
        entries = []
        for kind in self._script:
            lowest, highest = self._range(kind)
            key = api_of(kind).key
            entries.append(ApiVersion(api_key=key, min_version=lowest, max_version=highest))
        return ApiVersionsResponse(api_keys=entries)

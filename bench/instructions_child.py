"""One broker inside this process, and requests fed to one of its connections, for callgrind.

    python -m bench.instructions_child MODE REQUESTS DIRECTORY

There is no socket, no client and no second thread in the way: frames are built (and, with TLS,
encrypted) beforehand, written into the connection's buffer, and answers are only counted. A call of
`os.getsid` before and after each measured stretch is what callgrind divides its counts by. Only
what older checkouts have, too, is imported here; a mode that the checkout does not have ends the
process with the code UNSUPPORTED.
"""

from __future__ import annotations

import asyncio
import gc
import os
import ssl
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import uvloop

from barnabas.broker.broker import Broker
from barnabas.config.broker import BrokerOptions
from barnabas.records.builder import build_batch
from barnabas.wire.apis import api_of
from barnabas.wire.frame import decode_response, request_frame
from barnabas.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from barnabas.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.wire.schema import Message

MODES = ("off", "ACLs", "quotas", "ACLs and quotas", "TLS", "console")
KINDS = (
    "produce, 1 record",
    "produce, 16 KB batch",
    "fetch, nothing new",
    "metadata, 1 topic",
    "offset commit",
)
UNSUPPORTED = 3
WARM_REQUESTS = 300
"""Specialised bytecode, remembered answers and first samples are there before the count begins."""
ACLS = 10_000
RECORD_BYTES = 100
TOPIC, EMPTY, GROUP = "team-1.orders", "team-1.empty", "team-1.readers"
UNREACHED = "1000000000000"
"""A limit: quotas are measured, and nobody is throttled."""


class FactoryLoop(uvloop.Loop):
    """The loop of `barnabas start`, which remembers what makes the server's connections."""

    def __init__(self) -> None:
        super().__init__()
        self.factories: list[Callable[[], asyncio.BufferedProtocol]] = []

    async def create_server(self, protocol_factory: Any, *args: Any, **more: Any) -> Any:
        self.factories.append(protocol_factory)
        return await super().create_server(protocol_factory, *args, **more)


class CountingTransport(asyncio.Transport):
    """Stands for TCP: counts what is written, and keeps it only while asked to."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 1), "sockname": ("127.0.0.1", 2)})
        self.writes = 0
        self.kept: list[bytes] | None = []

    def write(self, data: Any) -> None:
        self.writes += 1
        if self.kept is not None:
            self.kept.append(bytes(data))

    def writelines(self, list_of_data: Any) -> None:
        self.write(b"".join(list_of_data))

    def taken(self) -> bytes:
        """Return what was written since the last time."""
        assert self.kept is not None
        data = b"".join(self.kept)
        self.kept.clear()
        return data

    def is_reading(self) -> bool:
        return True

    def is_closing(self) -> bool:
        return False

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def close(self) -> None:
        pass

    def abort(self) -> None:
        pass


class Client:
    """The other end of the connection: plain, or with TLS if there is a context."""

    def __init__(self, protocol: asyncio.BufferedProtocol, tls: ssl.SSLContext | None) -> None:
        self.transport = CountingTransport()
        self._protocol = protocol
        self._received = b""
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = tls and tls.wrap_bio(
            self._incoming, self._outgoing, server_hostname="127.0.0.1"
        )
        protocol.connection_made(self.transport)

    async def shake_hands(self) -> None:
        """Complete the handshake of TLS, if there is one."""
        if self._tls is None:
            return
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                self.feed(self._outgoing.read())
                await asyncio.sleep(0.001)
                self._incoming.write(self.transport.taken())
            else:
                self.feed(self._outgoing.read())
                await asyncio.sleep(0.001)
                return

    def sealed(self, frame: bytes) -> bytes:
        """Return what a frame looks like on the connection."""
        if self._tls is None:
            return frame
        self._tls.write(frame)
        return self._outgoing.read()

    def feed(self, data: bytes) -> None:
        """Let the broker receive bytes."""
        view = memoryview(data)
        while len(view):
            buffer: Any = self._protocol.get_buffer(-1)
            count = min(len(view), len(buffer))
            buffer[:count] = view[:count]
            self._protocol.buffer_updated(count)
            view = view[count:]

    async def ask(self, message: Message, version: int) -> Any:
        """Send a request and return the response."""
        self.feed(self.sealed(request_frame(message, version, 1, "bench")))
        while len(self._received) < 4 or len(self._received) < 4 + self._size:
            await asyncio.sleep(0.001)
            data = self.transport.taken()
            if self._tls is not None:
                self._incoming.write(data)
                data = self._decrypted()
            self._received += data
        frame, self._received = self._received[4 : 4 + self._size], b""
        return decode_response(api_of(type(message)), version, frame)[1]

    @property
    def _size(self) -> int:
        return int.from_bytes(self._received[:4], "big")

    def _decrypted(self) -> bytes:
        assert self._tls is not None
        data = b""
        try:
            while True:
                data += self._tls.read(1 << 16)
        except ssl.SSLWantReadError:
            return data


def records(count: int) -> bytes:
    return build_batch(
        [(1_700_000_000_000, None, b"x" * RECORD_BYTES, ()) for _ in range(count)], "none"
    )


def produce(batch: bytes) -> ProduceRequest:
    data = PartitionProduceData(index=0, records=batch)
    topic = TopicProduceData(name=TOPIC, partition_data=[data])
    return ProduceRequest(acks=1, timeout_ms=60_000, topic_data=[topic])


def request_of(kind: str) -> tuple[Message, int]:
    """Return the request of a kind, and its version."""
    if kind == KINDS[0]:
        return produce(records(1)), 9
    if kind == KINDS[1]:
        return produce(records(16_384 // (RECORD_BYTES + 8))), 9
    if kind == KINDS[2]:
        wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
        topics = [FetchTopic(topic=EMPTY, partitions=[wanted])]
        return FetchRequest(min_bytes=0, max_bytes=1 << 26, topics=topics), 12
    if kind == KINDS[3]:
        asked = [MetadataRequestTopic(name=TOPIC)]
        return MetadataRequest(topics=asked, allow_auto_topic_creation=False), 9
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=5)
    committed = [OffsetCommitRequestTopic(name=TOPIC, partitions=[partition])]
    return OffsetCommitRequest(group_id=GROUP, topics=committed), 8


def error_of(response: Any) -> int:
    """Return the error code of the one partition or topic in a response: a refusal is cheap."""
    if hasattr(response, "responses"):
        (topic,) = response.responses
        (result,) = getattr(topic, "partition_responses", None) or topic.partitions
    else:
        (result,) = response.topics
        if hasattr(result, "partitions"):
            (result,) = result.partitions
    return int(result.error_code)


async def serve_topics(client: Client) -> None:
    """Create the topics, and wait for the group's coordinator."""
    topics = [
        CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in (TOPIC, EMPTY)
    ]
    created = await client.ask(CreateTopicsRequest(topics=topics), 5)
    assert [each.error_code for each in created.topics] == [0, 0], created
    async with asyncio.timeout(120):
        while True:
            found = await client.ask(FindCoordinatorRequest(key=GROUP), 3)
            if found.error_code == 0:
                return
            await asyncio.sleep(0.05)


def load_acls(broker: Any) -> None:
    """Give a cluster 10,000 ACLs, and the client of this process what it needs."""
    from bench.authorizer import some_acls

    from barnabas.security.acl import Binding, Entry, Pattern, PatternType, Permission
    from barnabas.security.authorizer import Operation, ResourceType

    wanted = [
        (ResourceType.TOPIC, "team-1.", PatternType.PREFIXED, Operation.WRITE),
        (ResourceType.TOPIC, "team-1.", PatternType.PREFIXED, Operation.READ),
        (ResourceType.GROUP, "team-1.", PatternType.PREFIXED, Operation.READ),
    ]
    mine = [
        Binding(
            Pattern(resource, name, pattern),
            Entry("User:ANONYMOUS", "*", operation, Permission.ALLOW),
        )
        for resource, name, pattern, operation in wanted
    ]
    broker.authorizer.load([*some_acls(ACLS), *mine])


def set_quotas(broker: Any) -> None:
    """Limit every user, so that all that a quota can measure is measured."""
    keys = ("producer_byte_rate", "consumer_byte_rate", "request_percentage")
    broker.quotas.configs_changed("users", "<default>", dict.fromkeys(keys, UNREACHED))
    assert broker.quotas.active


def watch_requests(broker: Any) -> None:
    """Look at requests as the console does."""
    from barnabas.broker.network.request_watch import RequestWatch

    watch = RequestWatch(time.monotonic, lambda: 0)
    broker.parts.request_metrics.watch_requests(watch)


def options_of(mode: str, directory: Path) -> tuple[dict[str, str], ssl.SSLContext | None]:
    """Return the broker's options, and the client's TLS if there is any."""
    options = {
        "broker.id": "0",
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dirs": str(directory / "data"),
        "offsets.topic.num.partitions": "1",
    }
    if "ACLs" in mode:
        options["authorizer.class.name"] = "kafka.security.authorizer.AclAuthorizer"
        options["super.users"] = "User:admin"
        # The topics are created before the first ACL exists.
        options["allow.everyone.if.no.acl.found"] = "true"
    if mode != "TLS":
        return options, None
    from bench.certificates import Certificates

    certificates = Certificates.write(directory)
    options |= certificates.broker_options()
    options["listeners"] = "SSL://127.0.0.1:0"
    options["inter.broker.listener.name"] = "SSL"
    return options, certificates.client_context()


def supports(mode: str) -> bool:
    """Return whether the checkout has what a mode needs."""
    names = {
        "ACLs": "barnabas.security.acl",
        "quotas": "barnabas.quotas",
        "TLS": "barnabas.tls",
        "console": "barnabas.broker.monitoring.request_view",
    }
    try:
        for part in mode.split(" and "):
            if part in names:
                __import__(names[part])
    except ImportError:
        return False
    return True


async def run(mode: str, requests: int, directory: Path, loop: FactoryLoop) -> None:
    options, tls = options_of(mode, directory)
    broker = Broker(BrokerOptions.parse(options))
    await broker.start()
    # Under valgrind few requests fit in a second, and the timer that measures the loop would count.
    measuring = broker.parts.housekeeping._handles.get("loop")
    if measuring is not None:
        measuring.cancel()
    client = Client(loop.factories[0](), tls)
    await client.shake_hands()
    await serve_topics(client)
    if "ACLs" in mode:
        load_acls(broker)
    if "quotas" in mode:
        set_quotas(broker)
    if mode == "console":
        watch_requests(broker)
    for kind in KINDS:
        error = error_of(await client.ask(*request_of(kind)))
        assert error == 0, f"{kind}: error {error}"
    client.transport.kept = None
    gc.collect()  # then as `barnabas start` does
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
    for kind in KINDS:
        frame = request_frame(*request_of(kind), 7, "bench")
        sealed = [client.sealed(frame) for _ in range(WARM_REQUESTS + requests)]
        await feed_all(client, sealed[:WARM_REQUESTS])
        gc.collect()
        os.getsid(0)
        await feed_all(client, sealed[WARM_REQUESTS:])
        os.getsid(0)
    # The process ends without the courtesies of a shutdown, which would only take time.
    os._exit(0)


async def feed_all(client: Client, frames: list[bytes]) -> None:
    """Feed frames one by one, each after the answer to the one before."""
    transport, feed = client.transport, client.feed
    for frame in frames:
        before = transport.writes
        feed(frame)
        while transport.writes == before:  # noqa: ASYNC110 - the turns of the loop are counted
            await asyncio.sleep(0)


def main() -> None:
    mode, requests = sys.argv[1], int(sys.argv[2])
    if not supports(mode):
        sys.exit(UNSUPPORTED)
    loop = FactoryLoop()
    loop.run_until_complete(run(mode, requests, Path(sys.argv[3]), loop))


if __name__ == "__main__":
    main()

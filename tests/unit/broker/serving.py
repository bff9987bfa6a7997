"""A real broker inside the test's process, and a client that sees every byte.

`Serving` runs a broker on a thread of its own and collects what it logs; a test that leaves an
unexpected log line behind fails when its broker stops. `Wire` is one plain socket.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar, cast

from barnabas.broker.broker import Broker
from barnabas.config.broker import BrokerOptions
from barnabas.log.files import Files
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import Uuid
from barnabas.records.batch import Record, iterate
from barnabas.records.builder import build_batch
from barnabas.testing.thread import ThreadRunner
from barnabas.wire.apis import api_of
from barnabas.wire.codec import decode
from barnabas.wire.frame import decode_response, request_frame
from barnabas.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from barnabas.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.wire.schema import Message

DEADLINE_S = 60.0
TIMESTAMP = 1_700_000_000_000
T = TypeVar("T")


def wait_for(condition: Callable[[], object], what: str, deadline_s: float = DEADLINE_S) -> None:
    """Return once the condition holds; fail if it does not in time."""
    end = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < end, f"in {deadline_s} s it did not come true that {what}"
        time.sleep(0.002)


class Lines(logging.Handler):
    """Collects what one broker's thread logs, asyncio below it included.

    Garbage is collected on any thread: what asyncio says of a task that another loop has left
    behind is not this broker's.
    """

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.records: list[logging.LogRecord] = []
        self.thread: int | None = None
        self._of_own_loop = False

    def emit(self, record: logging.LogRecord) -> None:
        of_a_loop = record.name == "asyncio" and record.levelno >= logging.ERROR
        if record.thread == self.thread and (self._of_own_loop or not of_a_loop):
            self.records.append(record)

    def watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Collect what is logged on the present thread, and failures that its loop tells of."""
        self.thread = threading.get_ident()

        def tell(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
            self._of_own_loop = True
            try:
                loop.default_exception_handler(context)
            finally:
                self._of_own_loop = False

        loop.set_exception_handler(tell)

    def of(self, level: int = logging.WARNING) -> list[str]:
        """Return the lines of a level and above, oldest first."""
        return [
            f"{each.name}: {each.getMessage()}" for each in self.records if each.levelno >= level
        ]

    def clear(self) -> None:
        """Forget everything: what was logged until now was expected."""
        self.records.clear()


class WatchedBroker(Broker):
    """A broker that remembers its loop, so that a test can look inside."""

    loop: asyncio.AbstractEventLoop
    lines: Lines

    async def start(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.lines.watch(self.loop)
        await super().start()


class LoopAhead:
    """What an alarm uses of a loop, some time later than it is."""

    def __init__(self, loop: asyncio.AbstractEventLoop, ms: int) -> None:
        self._loop = loop
        self._ahead_s = ms / 1000

    def time(self) -> float:
        return self._loop.time() + self._ahead_s

    def call_at(self, when: float, callback: Callable[[], None]) -> asyncio.TimerHandle:
        return self._loop.call_at(when - self._ahead_s, callback)


class Serving:
    """One broker, on a free port, with its data in a directory; `with` starts and stops it."""

    def __init__(
        self,
        directory: Path,
        options: Mapping[str, object] | None = None,
        files: Files | None = None,
    ) -> None:
        self.options = {
            "broker.id": "0",
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "log.dirs": str(directory),
            **{name: str(value) for name, value in (options or {}).items()},
        }
        self.lines = Lines()
        self._files = files
        self.broker: WatchedBroker
        self.address = ("", 0)
        self._wires: list[Wire] = []

    def start(self) -> Self:
        """Start a broker on the data as it is."""
        for name in ("barnabas", "asyncio"):
            logging.getLogger(name).addHandler(self.lines)
        self._runner = ThreadRunner(self._make)
        self.address = self._runner.start(self.options)
        return self

    def stop(self) -> None:
        """Stop in order, and hold that nothing unexpected was logged."""
        self._runner.stop()
        self._forget()

    def kill(self) -> None:
        """Stop as a crash would."""
        self._runner.kill()
        self._forget()

    def _forget(self) -> None:
        for wire in self._wires:
            wire.socket.close()
        self._wires.clear()
        for name in ("barnabas", "asyncio"):
            logging.getLogger(name).removeHandler(self.lines)

    def _make(self, options: Mapping[str, str]) -> WatchedBroker:
        given = {"barnabas.diary.enable": "false", **options}
        self.broker = WatchedBroker(BrokerOptions.parse(given), files=self._files)
        self.broker.lines = self.lines
        return self.broker

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()
        if kind is None:
            self.expect_no_lines()

    def inside(self, function: Callable[[], T]) -> T:
        """Call a function on the broker's thread and return what it returns."""

        async def call() -> T:
            return function()

        return asyncio.run_coroutine_threadsafe(call(), self.broker.loop).result(DEADLINE_S)

    def wait_inside(self, condition: Callable[[], object], what: str) -> None:
        """Wait until something holds of the broker."""
        wait_for(lambda: self.inside(condition), what)

    def let_pass(self, ms: int) -> None:
        """Let the broker's clocks jump: the timers until then ring, idle connections are older."""

        def jump() -> None:
            broker, wall_clock = self.broker, self.broker._wall_clock
            broker.timer.stop()
            broker._wall_clock = lambda: wall_clock() + ms / 1000
            broker.timer._loop = cast(asyncio.AbstractEventLoop, LoopAhead(broker.timer._loop, ms))
            broker.timer._run()

        self.inside(jump)

    def connect(self, listener: int = 0) -> Wire:
        """Open a connection; it is closed with the broker at the latest."""
        endpoint = self.broker.endpoints[listener]
        wire = Wire((endpoint.host, endpoint.port))
        self._wires.append(wire)
        return wire

    def expect_line(self, text: str) -> None:
        """Wait for the one line that the broker logs of something, and forget it."""
        wait_for(lambda: any(text in line for line in self.lines.of()), f"a log line has {text!r}")
        lines = self.lines.of()
        assert len(lines) == 1, lines
        self.lines.clear()

    def expect_no_lines(self) -> None:
        """Hold that the broker had nothing to complain of."""
        assert self.lines.of() == []


class Wire:
    """One connection, and the messages on it."""

    def __init__(self, address: tuple[str, int], client_id: str | None = "test") -> None:
        self.socket = socket.create_connection(address, DEADLINE_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._client_id = client_id
        self._correlation = 0

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, message: Message, version: int) -> int:
        """Send a request; return its correlation id."""
        self._correlation += 1
        self.socket.sendall(request_frame(message, version, self._correlation, self._client_id))
        return self._correlation

    def receive(self, request: type[Message], version: int) -> tuple[int, Any]:
        """Receive the answer to a request of that class and version."""
        frame = self.read_frame()
        assert frame is not None, f"closed instead of an answer to {request.__name__} v{version}"
        return decode_response(api_of(request), version, frame)

    def ask(self, message: Message, version: int | None = None) -> Any:
        """Send a request and return the answer; by default in its newest stable version."""
        if version is None:
            version = type(message).STABLE.last
        sent = self.send(message, version)
        correlation, response = self.receive(type(message), version)
        assert correlation == sent
        return response

    def read_frame(self) -> bytes | None:
        """Return the payload of the next frame, None at the connection's end."""
        size = self.read_exactly(4)
        return None if size is None else self.read_exactly(int.from_bytes(size, "big"))

    def read_exactly(self, count: int) -> bytes | None:
        """Return so many bytes, None when the connection ends before."""
        data = bytearray()
        while len(data) < count:
            try:
                piece = self.socket.recv(min(count - len(data), 1 << 20))
            except ConnectionResetError:
                return None
            if not piece:
                return None
            data += piece
        return bytes(data)

    def expect_close(self) -> None:
        """Wait until the broker closes the connection without another byte."""
        try:
            data = self.socket.recv(1)
        except ConnectionResetError:
            return
        assert data == b"", "an answer came instead of the end of the connection"


# requests that many tests make


def create_topic(
    wire: Wire, name: str, partitions: int = 1, configs: Mapping[str, str] | None = None
) -> Uuid:
    """Create a topic and return its id."""
    topic = CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=1,
        configs=[CreatableTopicConfig(name=n, value=v) for n, v in (configs or {}).items()],
    )
    (result,) = wire.ask(CreateTopicsRequest(topics=[topic]), 7).topics
    assert result.error_code == 0, result
    topic_id: Uuid = result.topic_id
    return topic_id


def batch_of(values: Iterable[bytes | str], codec: str = "none", **header: Any) -> bytes:
    """Return a batch of values without keys."""
    rows = [
        (TIMESTAMP + index, None, value.encode() if isinstance(value, str) else value, ())
        for index, value in enumerate(values)
    ]
    return build_batch(rows, codec, **header)


def produce_request(
    topic: str,
    records: bytes | None,
    *,
    partition: int = 0,
    acks: int = 1,
    timeout_ms: int = 60_000,
) -> ProduceRequest:
    """Return a request that appends to one partition."""
    data = PartitionProduceData(index=partition, records=records)
    return ProduceRequest(
        acks=acks,
        timeout_ms=timeout_ms,
        topic_data=[TopicProduceData(name=topic, partition_data=[data])],
    )


def produce(
    wire: Wire, topic: str, records: bytes | None, version: int = 9, **more: int
) -> PartitionProduceResponse:
    """Append to one partition and return its result."""
    response = wire.ask(produce_request(topic, records, **more), version)
    ((result,),) = [each.partition_responses for each in response.responses]
    assert isinstance(result, PartitionProduceResponse)
    return result


def fetch_request(
    topic: str | Uuid,
    offset: int = 0,
    *,
    partition: int = 0,
    partition_max_bytes: int = 1 << 20,
    leader_epoch: int = -1,
    **more: Any,
) -> FetchRequest:
    """Return a request that reads one partition; by default it does not wait."""
    wanted = FetchPartition(
        partition=partition,
        fetch_offset=offset,
        partition_max_bytes=partition_max_bytes,
        current_leader_epoch=leader_epoch,
    )
    named = (
        FetchTopic(topic=topic, partitions=[wanted])
        if isinstance(topic, str)
        else FetchTopic(topic_id=topic, partitions=[wanted])
    )
    return FetchRequest(**{"min_bytes": 1, "max_bytes": 1 << 26, "topics": [named], **more})


def fetch(
    wire: Wire, topic: str | Uuid, offset: int = 0, version: int = 12, **more: Any
) -> PartitionData:
    """Read one partition and return its result."""
    response = wire.ask(fetch_request(topic, offset, **more), version)
    assert response.error_code == 0, ErrorCode.of(response.error_code)
    ((result,),) = [each.partitions for each in response.responses]
    assert isinstance(result, PartitionData)
    return result


def records_of(result: PartitionData) -> list[Record]:
    """Return the records of a fetch result."""
    return list(iterate(bytes(result.records or b"")))


def values_of(result: PartitionData) -> list[bytes | None]:
    """Return the values of a fetch result."""
    return [record.value for record in records_of(result)]


def metadata(wire: Wire, *topics: str, version: int = 12, create: bool = False) -> Any:
    """Ask for topics by name."""
    wanted = [MetadataRequestTopic(name=name) for name in topics]
    return wire.ask(MetadataRequest(topics=wanted, allow_auto_topic_creation=create), version)


def decoded(message: type[Message], payload: bytes, version: int) -> Any:
    """Decode a body that stands alone."""
    return decode(message, payload, version)[0]

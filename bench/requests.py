"""Small requests over raw sockets: how many per second, and what one costs the broker in CPU.

No client library stands between: frames are built once and sent as they are, `depth` of them in
flight on each connection, and only the size prefix of each answer is read. For profiling and for
the cost per request; produce and fetch are checked for an error code first. A JVM gets seconds of
warm-up here, too few to compare brokers by: `bench.broker` does that.

    python -m bench.requests --seconds 2
"""

from __future__ import annotations

import argparse
import socket
import struct
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

from bench.pair import Pair, create_topic
from rich.console import Console
from rich.table import Table
from tools.processes import RunningBroker

SIZE = struct.Struct(">i")


def crc32c(data: bytes) -> int:
    """CRC-32C bit by bit: a batch is built once per run, and needs no library of ours."""
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    return value ^ 0xFFFFFFFF


def compact(text: str) -> bytes:
    """A compact string shorter than 127 bytes."""
    return bytes([len(text) + 1]) + text.encode()


def count(number: int) -> bytes:
    """An unsigned varint, as the length of a compact array (one more than it holds)."""
    out = bytearray()
    number += 1
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def frame(api_key: int, version: int, body: bytes) -> bytes:
    """A request with a flexible header, correlation id 7 and client id `bench`."""
    head = struct.pack(">hhih5sB", api_key, version, 7, 5, b"bench", 0)
    return SIZE.pack(len(head) + len(body)) + head + body


def record_batch(value: bytes, now_ms: int) -> bytes:
    """A v2 batch that holds one record of up to 50 bytes."""
    record = b"\0\0\0\1" + bytes([len(value) * 2]) + value + b"\0"
    record = bytes([len(record) * 2]) + record
    checked = struct.pack(">hiqqqhii", 0, 0, now_ms, now_ms, -1, -1, -1, 1) + record
    tail = struct.pack(">ibI", -1, 2, crc32c(checked)) + checked
    return struct.pack(">qi", 0, len(tail)) + tail


def api_versions() -> bytes:
    return frame(18, 3, compact("bench") + compact("1") + b"\0")


def metadata(topic: str) -> bytes:
    return frame(3, 9, count(1) + compact(topic) + b"\0" + b"\1\0\0" + b"\0")


def produce(topic: str, acks: int = 1) -> bytes:
    batch = record_batch(b"x" * 50, int(time.time() * 1000))
    partition = struct.pack(">i", 0) + count(len(batch)) + batch + b"\0"
    data = count(1) + compact(topic) + count(1) + partition + b"\0"
    return frame(0, 9, b"\0" + struct.pack(">hi", acks, 30_000) + data + b"\0")


def fetch(topic: str, partitions: int = 1) -> bytes:
    """Fetch v12 outside any session, at offset 0 of empty partitions, without waiting."""
    each = b"".join(
        struct.pack(">iiqiqi", partition, -1, 0, -1, -1, 1_048_576) + b"\0"
        for partition in range(partitions)
    )
    head = struct.pack(">iiiibii", -1, 0, 1, 52_428_800, 0, 0, -1)
    topics = count(1) + compact(topic) + count(partitions) + each + b"\0"
    return frame(1, 12, head + topics + b"\1" + b"\1" + b"\0")


@dataclass(frozen=True)
class Rate:
    """What a run of requests measured."""

    per_second: float
    cpu_us: float


class Connection:
    """One socket that sends `depth` copies of a request and swallows as many answers."""

    def __init__(self, bootstrap: str) -> None:
        host, port = bootstrap.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout=30)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.pending = bytearray()

    def ask(self, request: bytes) -> bytes:
        """Send one request and return its answer, without the size."""
        self.socket.sendall(request)
        (answer,) = self._answers(1)
        return answer

    def send(self, requests: bytes) -> None:
        self.socket.sendall(requests)

    def swallow(self, answers: int) -> None:
        """Read that many answers, looking at nothing but their sizes."""
        while answers:
            position, end = 0, len(self.pending)
            while answers and end - position >= 4:
                size = 4 + SIZE.unpack_from(self.pending, position)[0]
                if end - position < size:
                    break
                position += size
                answers -= 1
            del self.pending[:position]
            if answers:
                self._receive()

    def _answers(self, number: int) -> list[bytes]:
        answers: list[bytes] = []
        while len(answers) < number:
            if len(self.pending) >= 4:
                size = 4 + SIZE.unpack_from(self.pending)[0]
                if len(self.pending) >= size:
                    answers.append(bytes(self.pending[4:size]))
                    del self.pending[:size]
                    continue
            self._receive()
        return answers

    def _receive(self) -> None:
        data = self.socket.recv(1 << 18)
        if not data:
            raise ConnectionError("the broker closed the connection")
        self.pending += data


def measure(
    broker: RunningBroker, request: bytes, *, connections: int, depth: int, seconds: float
) -> Rate:
    """Send one request over and over, and return the rate and the broker's CPU for each."""
    opened = [Connection(broker.bootstrap) for _ in range(connections)]
    burst = request * depth
    done = 0
    try:
        cpu, began = broker.cpu_seconds(), time.monotonic()
        while (elapsed := time.monotonic() - began) < seconds:
            for connection in opened:
                connection.send(burst)
            for connection in opened:
                connection.swallow(depth)
            done += connections * depth
        used = broker.cpu_seconds() - cpu
    finally:
        for connection in opened:
            connection.socket.close()
    return Rate(done / elapsed, used / done * 1e6)


def check(broker: RunningBroker, topic: str) -> None:
    """Fail loudly if a request is refused: a refusal is fast, and measures nothing."""
    connection = Connection(broker.bootstrap)
    # Answer headers: correlation id, and a tag byte except for ApiVersions.
    (code,) = struct.unpack_from(">h", connection.ask(api_versions()), 4)
    assert code == 0, f"ApiVersions: error {code}"
    code = produce_error(connection.ask(produce(topic)), topic)
    assert code == 0, f"Produce: error {code}"
    (code,) = struct.unpack_from(">h", connection.ask(fetch(topic)), 5 + 4)
    assert code == 0, f"Fetch: error {code}"
    connection.socket.close()


def first_acknowledged(bootstrap: str, topic: str, timeout_s: float = 90) -> float:
    """Knock until a record is acknowledged, and return when, by the monotonic clock.

    A client library would add its own reconnect timers, which are longer than a fast start.
    """
    request = produce(topic, acks=-1)
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        try:
            connection = Connection(bootstrap)
        except ConnectionRefusedError:
            time.sleep(0.002)
            continue
        with connection.socket:
            code = produce_error(connection.ask(request), topic)
        if code == 0:
            return time.monotonic()
        time.sleep(0.002)  # the port is open, but the partition has no leader yet
    raise TimeoutError(f"nothing was acknowledged at {bootstrap} within {timeout_s} s")


def produce_error(answer: bytes, topic: str) -> int:
    """Return the error code of the one partition in a Produce answer."""
    # Correlation id and tags, then the lengths of the topics, of the name and of the partitions.
    index, code = struct.unpack_from(">ih", answer, 5 + 1 + 1 + len(topic) + 1)
    assert index == 0
    return int(code)


def kinds(topic: str, empty: str) -> dict[str, bytes]:
    """The requests by name; fetches read the topic that stays empty."""
    return {
        "ApiVersions v3": api_versions(),
        "Metadata v9, 1 topic": metadata(topic),
        "Produce v9, 1 record, acks=1": produce(topic),
        "Produce v9, 1 record, acks=all": produce(topic, acks=-1),
        "Fetch v12, empty": fetch(empty),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Small requests per second, over raw sockets.")
    parser.add_argument("--seconds", type=float, default=2.0, help="per measurement")
    parser.add_argument("--connections", type=int, default=4)
    parser.add_argument("--only", choices=["barnabas", "apache"], help="run one broker alone")
    args = parser.parse_args(arguments)
    table = Table(title=f"Raw requests, {args.connections} connections, load in one Python process")
    table.add_column("request")
    table.add_column("in flight on each")
    with Pair.start(only=args.only) as pair:
        for broker in pair.brokers:
            table.add_column(f"{broker.name}: /s", justify="right")
            table.add_column("broker CPU µs", justify="right")
            create_topic(broker, "requests")
            create_topic(broker, "requests.empty")
            check(broker, "requests")
        for name, request in kinds("requests", "requests.empty").items():
            for broker in pair.brokers:  # unmeasured, so that a JVM has compiled this path
                measure(broker, request, connections=args.connections, depth=8, seconds=3)
            for depth in (1, 8):
                row = [name, str(depth)]
                for broker in pair.brokers:
                    rate = measure(
                        broker,
                        request,
                        connections=args.connections,
                        depth=depth,
                        seconds=args.seconds,
                    )
                    row += [f"{rate.per_second:,.0f}", f"{rate.cpu_us:.1f}"]
                table.add_row(*row)
    console = Console() if sys.stdout.isatty() else Console(width=120)
    console.print(table)


if __name__ == "__main__":
    main()

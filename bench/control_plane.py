"""How long the controller waits to be heard by a broker that clients flood, with a control plane.

This program is the controller: it holds the office in the broker's tree, has the broker lead a
topic, and then gives it one new partition after the other by LeaderAndIsr, each of which makes a
log. Meanwhile clients send large produces and ask for large fetches on as many connections as the
option says. The times are those of the controller, from its request to the answer; throughput is
that of the clients.

    python -m bench.control_plane [--connections 64] [--seconds 5] [--runs 3]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import select
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from barnabas.records.batch import Record
from barnabas.records.builder import build_batch
from barnabas.wire.apis import api_of
from barnabas.wire.frame import decode_response, request_frame
from barnabas.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas.wire.messages.leader_and_isr import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from barnabas.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.wire.messages.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)

CONTROLLER, BROKER, EPOCH = 99, 0, 7
WRITTEN, READ, PROBED = "written", "read", "probed"
TOPIC_IDS = {name: name.encode().ljust(16, b"-") for name in (WRITTEN, READ, PROBED)}
PARTITIONS = 4
PRODUCE_BYTES = 900_000
FETCH_BYTES = 8 << 20
PAUSE_S = 0.02
WARM_UP_S = 1.0
DEADLINE_S = 60.0
OPTIONS = {
    "broker.id": str(BROKER),
    "listeners": "DATA://127.0.0.1:0,CONTROL://127.0.0.1:0",
    "listener.security.protocol.map": "DATA:PLAINTEXT,CONTROL:PLAINTEXT",
    "inter.broker.listener.name": "DATA",
    # The disk shall not fill up: what is written goes again within a second.
    "log.segment.bytes": str(64 << 20),
    "log.retention.bytes": str(64 << 20),
    "log.retention.check.interval.ms": "500",
    "log.segment.delete.delay.ms": "0",
}


# the broker, in a process of its own


async def serve(folder: str, apart: bool) -> None:
    """Run a broker whose controller is somebody else; print where it listens."""
    from barnabas.broker.broker import Broker
    from barnabas.config.broker import BrokerOptions
    from barnabas.coordination.memory import MemoryCoordination, MemoryStore
    from barnabas.metadata import tree_schema as nodes

    store = MemoryStore()
    office = MemoryCoordination(store)
    await office.start()
    await office.create(nodes.CONTROLLER, nodes.encode_controller(CONTROLLER, 0), ephemeral=True)
    await office.create(nodes.CONTROLLER_EPOCH, str(EPOCH).encode())
    kept = nodes.encode_config({"retention.bytes": "-1"})
    await office.create(nodes.config_path("topics", READ), kept, make_parents=True)
    options = {**OPTIONS, "log.dirs": folder}
    if apart:
        options["control.plane.listener.name"] = "CONTROL"
    broker = Broker(BrokerOptions.parse(options), coordination=MemoryCoordination(store))
    starting = asyncio.ensure_future(broker.start())
    registered = asyncio.Event()
    if await office.exists(nodes.broker_path(BROKER), lambda _: registered.set()) is None:
        await registered.wait()
    print(*(endpoint.port for endpoint in broker.endpoints), flush=True)
    await starting
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    await stopped.wait()
    await broker.kill()


# the clients, in another one


class Client:
    """One connection that sends the same request again as soon as it is answered."""

    def __init__(self, port: int, frame: bytes) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setblocking(False)
        self.frame = memoryview(frame)
        self.sent = self.owed = 0
        self.size = bytearray()
        self.rounds = self.taken = 0

    def write(self) -> bool:
        """Send as much as goes; return whether the request has left."""
        self.sent += self.socket.send(self.frame[self.sent :])
        return self.sent == len(self.frame)

    def read(self, buffer: bytearray) -> bool:
        """Take as much as is there; return whether the answer is complete."""
        if len(self.size) < 4:
            self.size += self.socket.recv(4 - len(self.size))
            if len(self.size) == 4:
                self.owed = int.from_bytes(self.size, "big")
            return False
        count = self.socket.recv_into(buffer, min(self.owed, len(buffer)))
        self.owed -= count
        self.taken += count
        if self.owed:
            return False
        self.rounds += 1
        self.sent, self.size = 0, bytearray()
        return True


def flood(port: int, connections: int) -> None:
    """Produce and fetch on half of the connections each until SIGTERM; print the bytes of each."""
    ended: list[int] = []
    signal.signal(signal.SIGTERM, lambda *_: ended.append(1))
    now_ms = int(time.time() * 1000)
    values = [os.urandom(100) for _ in range(PRODUCE_BYTES // 108)]
    batch = build_batch([Record(0, now_ms, None, value, ()) for value in values])
    poll, clients = select.epoll(), {}
    writers = []
    buffer = bytearray(1 << 20)
    for number in range(connections):
        index = number // 2 % PARTITIONS
        if number % 2:
            writers.append(client := Client(port, produce(WRITTEN, batch, index)))
        else:
            if number // 2 < PARTITIONS:
                fill(port, batch, index)
            client = Client(port, fetch(index))
        clients[client.socket.fileno()] = client
        poll.register(client.socket, select.EPOLLOUT)
    print("flooding", flush=True)
    while not ended:
        with contextlib.suppress(InterruptedError):
            for number, _ in poll.poll(0.1):
                client = clients[number]
                with contextlib.suppress(BlockingIOError):
                    if client.sent < len(client.frame):
                        if client.write():
                            poll.modify(number, select.EPOLLIN)
                    elif client.read(buffer):
                        poll.modify(number, select.EPOLLOUT)
    produced = sum(each.rounds for each in writers) * len(batch)
    fetched = sum(each.taken for each in clients.values() if each not in writers)
    print(produced, fetched, flush=True)


def fill(port: int, batch: bytes, index: int) -> None:
    """Give the readers something to read."""
    client = Client(port, produce(READ, batch, index))
    client.socket.setblocking(True)
    while client.rounds < FETCH_BYTES // len(batch) + 1:
        while not client.write():
            pass
        while not client.read(bytearray(1024)):
            pass
    client.socket.close()


def produce(topic: str, batch: bytes, index: int) -> bytes:
    """Return a large produce."""
    data = PartitionProduceData(index=index, records=batch)
    written = TopicProduceData(name=topic, partition_data=[data])
    request = ProduceRequest(acks=1, timeout_ms=30_000, topic_data=[written])
    return bytes(request_frame(request, 9, 1, "flood"))


def fetch(index: int) -> bytes:
    """Return a large fetch, always of the same records."""
    wanted = FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=FETCH_BYTES)
    topic = FetchTopic(topic=READ, partitions=[wanted])
    request = FetchRequest(max_wait_ms=100, min_bytes=1, max_bytes=FETCH_BYTES, topics=[topic])
    return bytes(request_frame(request, 11, 1, "flood"))


# the controller


class Controller:
    """One connection to the broker, in office."""

    def __init__(self, port: int) -> None:
        """Connect; the broker listens a moment after it has registered."""
        deadline = time.monotonic() + DEADLINE_S
        while True:
            try:
                self._socket = socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S)
                break
            except ConnectionRefusedError:
                if time.monotonic() > deadline:
                    raise
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def tell(self, request: Any, version: int) -> Any:
        """Send a request; return the answer, which must be a good one."""
        request.controller_id, request.controller_epoch, request.broker_epoch = (
            CONTROLLER,
            EPOCH,
            -1,
        )
        self._socket.sendall(request_frame(request, version, 1, "controller"))
        size = int.from_bytes(self._take(4), "big")
        answer: Any
        _, answer = decode_response(api_of(type(request)), version, self._take(size))
        assert answer.error_code == 0, answer
        return answer

    def lead(self, topic: str, indexes: range) -> None:
        """Have the broker lead new partitions."""
        states = [
            LeaderAndIsrPartitionState(
                partition_index=index,
                controller_epoch=EPOCH,
                leader=BROKER,
                isr=[BROKER],
                replicas=[BROKER],
                is_new=True,
            )
            for index in indexes
        ]
        told = LeaderAndIsrTopicState(
            topic_name=topic, topic_id=TOPIC_IDS[topic], partition_states=states
        )
        answer: Any = self.tell(LeaderAndIsrRequest(topic_states=[told]), 5)
        assert all(not each.error_code for each in answer.topics[0].partition_errors), answer

    def inform(self, ports: list[int]) -> None:
        """Tell who is alive, and who leads the topics of the clients."""
        endpoints = [
            UpdateMetadataEndpoint(port=port, host="127.0.0.1", listener=name)
            for name, port in zip(("DATA", "CONTROL"), ports, strict=True)
        ]
        states = [
            UpdateMetadataPartitionState(
                partition_index=index, leader=BROKER, isr=[BROKER], replicas=[BROKER]
            )
            for index in range(PARTITIONS)
        ]
        topics = [
            UpdateMetadataTopicState(
                topic_name=name, topic_id=TOPIC_IDS[name], partition_states=states
            )
            for name in (WRITTEN, READ)
        ]
        broker = UpdateMetadataBroker(id=BROKER, endpoints=endpoints)
        self.tell(UpdateMetadataRequest(live_brokers=[broker], topic_states=topics), 7)

    def close(self) -> None:
        self._socket.close()

    def _take(self, size: int) -> bytes:
        taken = bytearray()
        while len(taken) < size:
            piece = self._socket.recv(size - len(taken))
            assert piece, "the broker has closed the controller's connection"
            taken += piece
        return bytes(taken)


@dataclass
class Measured:
    """Times of one way to reach the broker."""

    times_ms: list[float] = field(default_factory=list)
    produced_mb_s: list[float] = field(default_factory=list)
    fetched_mb_s: list[float] = field(default_factory=list)


@contextlib.contextmanager
def child(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run a part of this program in a process of its own."""
    command = [sys.executable, "-m", "bench.control_plane", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=DEADLINE_S)


def line_of(process: subprocess.Popen[str]) -> list[str]:
    assert process.stdout is not None
    return process.stdout.readline().split()


def run(apart: bool, connections: int, seconds: float, measured: Measured) -> None:
    """Measure once."""
    with (
        tempfile.TemporaryDirectory() as folder,
        child("--serve", str(Path(folder) / "data"), *(["--apart"] if apart else [])) as broker,
    ):
        ports = [int(each) for each in line_of(broker)]
        controller = Controller(ports[1] if apart else ports[0])
        for topic in (WRITTEN, READ):
            controller.lead(topic, range(PARTITIONS))
        controller.inform(ports)
        with contextlib.ExitStack() as stack:
            clients = None
            if connections:
                clients = stack.enter_context(child("--flood", str(ports[0]), str(connections)))
                assert line_of(clients) == ["flooding"]
                time.sleep(WARM_UP_S)
            began, number = time.perf_counter(), 0
            while time.perf_counter() - began < seconds:
                sent = time.perf_counter()
                controller.lead(PROBED, range(number, number + 1))
                measured.times_ms.append((time.perf_counter() - sent) * 1000)
                number += 1
                time.sleep(PAUSE_S)
            took = time.perf_counter() - began
            if clients is not None:
                clients.terminate()
                produced, fetched = (
                    int(each) / 1e6 / (took + WARM_UP_S) for each in line_of(clients)
                )
                measured.produced_mb_s.append(produced)
                measured.fetched_mb_s.append(fetched)
        controller.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--serve", metavar="FOLDER", help=argparse.SUPPRESS)
    parser.add_argument("--apart", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--flood", nargs=2, type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve is not None:
        import uvloop

        uvloop.run(serve(arguments.serve, arguments.apart))
        return
    if arguments.flood is not None:
        flood(*arguments.flood)
        return
    table = Table(
        title="LeaderAndIsr, from the controller's request to the answer",
        caption=f"{arguments.connections} connections, produces of {PRODUCE_BYTES} bytes and "
        f"fetches of {FETCH_BYTES >> 20} MiB; milliseconds, all runs together",
    )
    for column in ("", "median", "99 %", "worst", "produced MB/s", "fetched MB/s"):
        table.add_column(column, justify="left" if not column else "right")
    rows = {
        "nobody else": (True, 0),
        "flooded, no control plane": (False, arguments.connections),
        "flooded, control plane": (True, arguments.connections),
    }
    found = {name: Measured() for name in rows}
    for _ in range(arguments.runs):  # in turn, so that a busy moment of the machine hits all
        for name, (apart, connections) in rows.items():
            run(apart, connections, arguments.seconds, found[name])
    for name, measured in found.items():
        times = sorted(measured.times_ms)
        table.add_row(
            name,
            f"{statistics.median(times):.1f}",
            f"{times[int(len(times) * 0.99)]:.1f}",
            f"{times[-1]:.1f}",
            *(
                f"{statistics.median(values):.0f}" if values else ""
                for values in (measured.produced_mb_s, measured.fetched_mb_s)
            ),
        )
    Console().print(table)


if __name__ == "__main__":
    main()

"""A cluster of processes in namespaces, and who keeps asking a broker that may lead no longer."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic
from tests.system.clusters import wait_for
from tests.system.namespaces import Namespaces

from barnabas.client.addresses import Address
from barnabas.client.connection import Connection
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError
from barnabas.testing.process import ProcessRunner
from barnabas.testing.zookeeper import ZooKeeperServer
from barnabas.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from barnabas.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic

PORT = 9092
SESSION_MS = 3000
TOPIC, GROUP = "load", "group"
ZOOKEEPER = "zookeeper"
OPTIONS = {
    "zookeeper.session.timeout.ms": SESSION_MS,
    "zookeeper.connection.timeout.ms": 20000,
    "min.insync.replicas": 2,
    "default.replication.factor": 3,
    "offsets.topic.num.partitions": 1,
    "offsets.topic.replication.factor": 3,
    "replica.lag.time.max.ms": 2000,
    "replica.socket.timeout.ms": 2000,
    "replica.fetch.wait.max.ms": 300,
    "controller.socket.timeout.ms": 2000,
    "request.timeout.ms": 3000,
    "group.initial.rebalance.delay.ms": 0,
    "auto.create.topics.enable": "false",
}
BROKERS = (1, 2, 3)


def host(number: int) -> str:
    return f"broker-{number}"


class SeveredCluster:
    """Three brokers and a ZooKeeper, each on a host of its own."""

    def __init__(self, classpath: str, folder: Path) -> None:
        self.land = Namespaces([ZOOKEEPER, *map(host, BROKERS)])
        self.folder = folder
        self.runners: dict[int, ProcessRunner] = {}
        self._classpath = classpath
        self._stack = ExitStack()

    def __enter__(self) -> SeveredCluster:
        try:
            land = self._stack.enter_context(self.land)
            self.zookeeper = self._stack.enter_context(
                ZooKeeperServer(
                    self._classpath, host=land.address(ZOOKEEPER), prefix=land.prefix(ZOOKEEPER)
                )
            )
            for number in BROKERS:
                self._start(number)
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.close()

    def _start(self, number: int) -> None:
        runner = self.runners[number] = ProcessRunner(self.land.prefix(host(number)))
        options = {
            **OPTIONS,
            "broker.id": number,
            "log.dirs": self.folder / host(number),
            "listeners": f"PLAINTEXT://{self.address(number)}",
            "zookeeper.connect": self.zookeeper.address,
        }
        runner.start({name: str(value) for name, value in options.items()})
        self._stack.callback(runner.kill)

    def address(self, number: int) -> str:
        return f"{self.land.address(host(number))}:{PORT}"

    def bootstrap(self, *left_out: int) -> str:
        return ",".join(self.address(number) for number in BROKERS if number not in left_out)

    def log(self, number: int) -> str:
        """Return what a broker has logged."""
        return (self.folder / f"{host(number)}.err").read_text(errors="replace")

    def sever(self, number: int, *directions: str, only: str | None = None) -> None:
        """Cut a broker off the others and ZooKeeper, or `only` one of them; never off clients."""
        others = [only] if only else [ZOOKEEPER, *(host(n) for n in BROKERS if n != number)]
        for other in others:
            if "out" in directions:
                self.land.cut(host(number), other)
            if "in" in directions:
                self.land.cut(other, host(number))

    def create(self, topic: str, partitions: int) -> None:
        admin = AdminClient({"bootstrap.servers": self.bootstrap(), "log_level": 0})
        admin.create_topics([NewTopic(topic, partitions, 3)])[topic].result(30)
        for number in BROKERS:
            wait_for(
                partial(self._knows_leaders, number, topic, partitions),
                f"broker {number} knows the leaders of {topic}",
            )

    def _knows_leaders(self, number: int, topic: str, partitions: int) -> bool:
        return len(self.leaders(number, topic)) == partitions

    def leaders(self, asked: int, topic: str) -> dict[int, int]:
        """Return who leads each partition, as one broker says; without those that nobody leads."""
        client = AdminClient({"bootstrap.servers": self.address(asked), "log_level": 0})
        try:
            found = client.list_topics(topic, timeout=2).topics[topic].partitions
        except KafkaException:
            return {}
        return {number: each.leader for number, each in found.items() if each.leader >= 0}

    def wait_in_sync(self, topic: str) -> None:
        """Wait until every broker says that all replicas are in sync."""

        def in_sync(number: int) -> bool:
            client = AdminClient({"bootstrap.servers": self.address(number), "log_level": 0})
            try:
                found = client.list_topics(topic, timeout=2).topics[topic].partitions
            except KafkaException:
                return False
            return bool(found) and all(
                each.leader >= 0 and len(each.isrs) == 3 for each in found.values()
            )

        for number in BROKERS:
            wait_for(partial(in_sync, number), f"broker {number} sees all in sync")


@dataclass(frozen=True)
class Told:
    """One answer: when it was asked for, and what it was."""

    asked_s: float
    kind: str
    code: ErrorCode
    offset: int


class Asker:
    """Asks one broker as a client with old metadata does, over and over, from a thread."""

    def __init__(self, place: str, partition: int) -> None:
        address, port = place.split(":")
        self._address = Address(address, int(port))
        self._partition = partition
        self.told: list[Told] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))

    def __enter__(self) -> Asker:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()

    def answers(self, after_s: float, before_s: float = float("inf")) -> list[Told]:
        """Return what was answered, and not refused, to questions of a time."""
        return [
            each
            for each in self.told
            if after_s < each.asked_s < before_s
            and each.code in (ErrorCode.NONE, ErrorCode.OFFSET_OUT_OF_RANGE)
        ]

    async def _run(self) -> None:
        connection: Connection | None = None
        while not self._stop.is_set():
            try:
                if connection is None or connection.closed:
                    connection = await Connection.open(
                        self._address,
                        client_id="asker",
                        connect_timeout_ms=500,
                        request_timeout_ms=500,
                    )
                for ask in (self._end, self._read, self._committed):
                    asked_s = time.monotonic()
                    kind, code, offset = await ask(connection)
                    self.told.append(Told(asked_s, kind, ErrorCode.of(code), offset))
            except BarnabasError:
                pass
            await asyncio.sleep(0.02)
        if connection is not None:
            connection.close()
            await connection.wait_closed()

    async def _end(self, connection: Connection) -> tuple[str, int, int]:
        wanted = ListOffsetsPartition(partition_index=self._partition, timestamp=-1)
        topics = [ListOffsetsTopic(name=TOPIC, partitions=[wanted])]
        request = ListOffsetsRequest(replica_id=-1, topics=topics)
        answer: Any = await connection.send(request, version=6)
        found = answer.topics[0].partitions[0]
        return "end", found.error_code, found.offset

    async def _read(self, connection: Connection) -> tuple[str, int, int]:
        wanted = FetchPartition(
            partition=self._partition, fetch_offset=100_000, partition_max_bytes=1
        )
        # Before v11 no follower answers a consumer.
        request = FetchRequest(
            max_wait_ms=0, min_bytes=0, topics=[FetchTopic(topic=TOPIC, partitions=[wanted])]
        )
        answer: Any = await connection.send(request, version=10)
        return "read", answer.responses[0].partitions[0].error_code, -1

    async def _committed(self, connection: Connection) -> tuple[str, int, int]:
        asked = OffsetFetchRequestTopic(name=TOPIC, partition_indexes=[self._partition])
        request = OffsetFetchRequest(group_id=GROUP, topics=[asked])
        answer: Any = await connection.send(request, version=5)
        if answer.error_code:
            return "committed", answer.error_code, -1
        found = answer.topics[0].partitions[0]
        return "committed", found.error_code, found.committed_offset

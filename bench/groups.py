"""Consumer groups: time until all members are in one stable generation, and commits per second.

Members are connections of one asyncio program that speak the protocol themselves, so that a
thousand fit beside the broker; the program's own share of the time is the same for both brokers.

    python -m bench.groups [--quick] [--markdown] [--only barnabas|apache]
"""

from __future__ import annotations

import asyncio
import itertools
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from bench.coordinated import arguments, measure
from bench.pair import create_topic
from bench.report import Report
from tools.processes import RunningBroker

from barnabas.client.addresses import Address
from barnabas.client.connection import Connection
from barnabas.model.error_codes import ErrorCode
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.heartbeat import HeartbeatRequest
from barnabas.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

OPTIONS = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.replication.factor": "1",
}
COMMITTERS = 20
TIMEOUT_MS = 120_000
_numbers = itertools.count()


async def connect(broker: RunningBroker) -> Connection:
    host, _, port = broker.bootstrap.partition(":")
    return await Connection.open(
        Address(host, int(port)), client_id="bench", request_timeout_ms=TIMEOUT_MS
    )


async def find(connection: Connection, group: str) -> None:
    """Wait until the group has a coordinator."""
    while True:
        answer = await connection.send(FindCoordinatorRequest(key=group), version=3)
        if answer.error_code == 0:
            return
        await asyncio.sleep(0.05)


@dataclass
class Gathering:
    """One group on its way to a generation that everybody is in."""

    group: str
    size: int
    generations: dict[int, int] = field(default_factory=dict)
    stable: asyncio.Event = field(default_factory=asyncio.Event)

    def synced(self, member: int, generation: int) -> None:
        self.generations[member] = generation
        if len(self.generations) == self.size and len(set(self.generations.values())) == 1:
            self.stable.set()

    async def member(self, number: int, connection: Connection) -> None:
        """Join, sync and beat until all are in one generation."""
        member_id = ""
        while not self.stable.is_set():
            request = JoinGroupRequest(
                group_id=self.group,
                session_timeout_ms=60_000,
                rebalance_timeout_ms=60_000,
                member_id=member_id,
                protocol_type="consumer",
                protocols=[JoinGroupRequestProtocol(name="range", metadata=b"\x00\x00" + bytes(8))],
            )
            joined = await connection.send(request, version=5)
            member_id = joined.member_id
            if joined.error_code != 0:
                continue
            sync = SyncGroupRequest(
                group_id=self.group,
                generation_id=joined.generation_id,
                member_id=member_id,
                assignments=[
                    SyncGroupRequestAssignment(member_id=each.member_id, assignment=bytes(20))
                    for each in joined.members
                ],
            )
            synced = await connection.send(sync, version=3)
            if synced.error_code == 0:
                self.synced(number, joined.generation_id)
                await self._beat(connection, member_id, joined.generation_id)

    async def _beat(self, connection: Connection, member_id: str, generation: int) -> None:
        request = HeartbeatRequest(
            group_id=self.group, generation_id=generation, member_id=member_id
        )
        while not self.stable.is_set():
            answer = await connection.send(request, version=3)
            if answer.error_code != ErrorCode.NONE:
                return
            try:
                await asyncio.wait_for(self.stable.wait(), 0.25)
            except TimeoutError:
                continue


def stabilise(members: int, broker: RunningBroker, report: Report) -> None:
    """Measure how long members that all come at once take to be in one generation."""

    async def run() -> tuple[float, float]:
        connections = [await connect(broker) for _ in range(members)]
        gathering = Gathering(f"bench-{next(_numbers)}", members)
        await find(connections[0], gathering.group)
        cpu, began = broker.cpu_seconds(), time.perf_counter()
        await asyncio.wait_for(
            asyncio.gather(*(gathering.member(*each) for each in enumerate(connections))),
            TIMEOUT_MS / 1000,
        )
        took = time.perf_counter() - began
        used = broker.cpu_seconds() - cpu
        for connection in connections:
            connection.close()
        return took, used

    took, used = asyncio.run(run())
    scenario = f"{members} members join at once"
    report.add(scenario, "s until all are in one generation", "lower", broker.name, took)
    report.add(scenario, "CPU ms per member", "lower", broker.name, used * 1000 / members)


def commits(seconds: float, broker: RunningBroker, report: Report) -> None:
    """Measure commits of many groups, each with one under way."""
    topic = f"bench-commits-{next(_numbers)}"
    create_topic(broker, topic, 1)

    async def commit(number: int, end: float, latencies: list[float]) -> None:
        connection = await connect(broker)
        group = f"{topic}-{number}"
        await find(connection, group)
        for offset in itertools.count():
            began = time.perf_counter()
            if began >= end:
                break
            wanted = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
            request = OffsetCommitRequest(
                group_id=group, topics=[OffsetCommitRequestTopic(name=topic, partitions=[wanted])]
            )
            answer = await connection.send(request, version=7)
            code = answer.topics[0].partitions[0].error_code
            if code != 0:  # a coordinator that has just been found may still load
                assert ErrorCode.of(code).retriable, ErrorCode.of(code)
                continue
            latencies.append(time.perf_counter() - began)
        connection.close()

    async def run() -> tuple[list[float], float]:
        latencies: list[float] = []
        cpu = broker.cpu_seconds()
        end = time.perf_counter() + seconds
        await asyncio.gather(*(commit(number, end, latencies) for number in range(COMMITTERS)))
        return latencies, broker.cpu_seconds() - cpu

    latencies, used = asyncio.run(run())
    scenario = f"offset commits of {COMMITTERS} groups"
    report.add(scenario, "commits/s", "higher", broker.name, len(latencies) / seconds)
    report.add(scenario, "ms, median", "lower", broker.name, statistics.median(latencies) * 1000)
    p99 = statistics.quantiles(latencies, n=100)[98]
    report.add(scenario, "ms, 99 %", "lower", broker.name, p99 * 1000)
    report.add(scenario, "CPU µs per commit", "lower", broker.name, used * 1e6 / len(latencies))


def main(argv: Sequence[str] | None = None) -> None:
    args = arguments("Consumer groups: ours beside Apache Kafka.", argv)
    sizes = (10, 100) if args.quick else (10, 100, 1000)
    seconds = 1.0 if args.quick else 5.0
    measure(
        "groups",
        args,
        OPTIONS,
        [*(partial(stabilise, size) for size in sizes), partial(commits, seconds)],
        ["members and committers are connections of one program; group.initial.rebalance.delay=0"],
        warm_turns=1 if args.quick else 2,
        repetitions=1 if args.quick else 3,
    )


if __name__ == "__main__":
    main()

"""What another process does for a mirror: copy some lanes, for a while, and tell how it went.

An errand says everything, so that any process can run it that reaches both clusters. It may be run
twice, also at the same time: the later run fences the earlier one, finds in the marks what that has
committed, and goes on from there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from barnabas.aio import AIOKafkaAdminClient, AIOKafkaConsumer, AIOKafkaProducer
from barnabas.client.cluster_client import ClusterClient
from barnabas.mirror.clients import Side
from barnabas.mirror.copying import Copying, now_ms
from barnabas.mirror.failures import Failure
from barnabas.mirror.lanes import transactional_id
from barnabas.mirror.marks import MarksError, read_marks
from barnabas.mirror.opening import started
from barnabas.mirror.positions import Position, Positions
from barnabas.mirror.route import Route
from barnabas.mirror.source import Source
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError
from barnabas.model.ids import TopicPartition
from barnabas.model.request_errors import request_error


@dataclass(frozen=True, slots=True)
class Stretch:
    """A partition of the source, of which topic, and up to where it is to be copied at least."""

    partition: TopicPartition
    topic_id: str
    end: int


@dataclass(frozen=True, slots=True)
class Errand:
    """Copy lanes from where they are, in the name of a session, for at most `time_ms`."""

    source: Side
    target: Side
    route: Route
    session: int
    lanes: Mapping[int, tuple[Stretch, ...]]
    commit_interval_ms: float
    time_ms: float


@dataclass(slots=True)
class Outcome:
    """What became of an errand."""

    records: int = 0
    skipped: int = 0
    transactions: int = 0
    read: dict[TopicPartition, int] = field(default_factory=dict)
    """How far partitions were read, offsets without records included."""
    committed: dict[TopicPartition, Position] = field(default_factory=dict)
    told: list[str] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)

    def counted(self, records: int, skipped: int) -> None:
        """Count a transaction."""
        self.records += records
        self.skipped += skipped
        self.transactions += 1


def run_errand(errand: Errand) -> Outcome:
    """Run an errand from start to end."""
    return asyncio.run(run_lanes(errand))


async def run_lanes(errand: Errand) -> Outcome:
    """Run the lanes of an errand beside each other; failures of the clusters are part of it."""
    outcome = Outcome()
    try:
        async with (
            AIOKafkaAdminClient(**errand.source.admin) as source,
            AIOKafkaAdminClient(**errand.target.admin) as target,
        ):
            ended = await asyncio.gather(
                *(
                    _run_lane(errand, lane, source.client, target.client, outcome)
                    for lane in errand.lanes
                ),
                return_exceptions=True,
            )
        for each in ended:
            if each is not None:
                raise each
    except BarnabasError as failure:
        outcome.failures.append(Failure.of(failure))
    return outcome


async def _run_lane(
    errand: Errand, lane: int, source: ClusterClient, target: ClusterClient, outcome: Outcome
) -> None:
    route, stretches = errand.route, errand.lanes[lane]
    async with AsyncExitStack() as stack:
        name = transactional_id(route.positions_topic, lane)
        # When it has started, no earlier run of the lane can commit any more.
        producer = await started(stack, AIOKafkaProducer(**errand.target.producer(name)))
        marks = await read_marks(target, route, [each.partition for each in stretches])
        if marks.session != errand.session:
            raise request_error(
                ErrorCode.PRODUCER_FENCED,
                f"session {marks.session} has the mirror, not {errand.session}",
            )
        starts = _starts(stretches, marks.positions)
        outcome.read.update(starts)
        left = {each.partition: each for each in stretches if starts[each.partition] < each.end}
        if not left:
            return
        positions = Positions()
        consumer = await started(stack, AIOKafkaConsumer(**errand.source.consumer))
        copying = Copying(
            route,
            Source(source, errand.source),
            consumer,
            producer,
            positions,
            commit_interval_ms=errand.commit_interval_ms,
            in_lane=True,
            counted=outcome.counted,
            tell=outcome.told.append,
        )
        copying.assign(
            {each: left[each].topic_id for each in left}, {each: starts[each] for each in left}
        )
        end_ms = now_ms() + errand.time_ms  # what it took to come this far does not count
        while not await _is_done(copying, left.values()):
            await copying.step()
            if now_ms() >= end_ms:
                break
        outcome.committed.update(positions.known)
        for each in left:
            outcome.read[each] = await copying.position(each)


def _starts(
    stretches: tuple[Stretch, ...], marks: Mapping[TopicPartition, Position]
) -> dict[TopicPartition, int]:
    starts = {}
    for each in stretches:
        mark = marks.get(each.partition)
        if mark is None or mark.topic_id != each.topic_id:
            raise MarksError(f"{each.partition} has no mark of its topic")
        starts[each.partition] = mark.next_offset
    return starts


async def _is_done(copying: Copying, stretches: Iterable[Stretch]) -> bool:
    for each in stretches:
        if await copying.position(each.partition) < each.end:
            return False
    return True

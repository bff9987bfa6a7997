"""One run of a mirror, from fencing its predecessor to a failure or the end.

    start    a transactional producer ends what an earlier run of this mirror has left open, and
             shuts that run out if it still lives; then the positions are read, up to the end
    copy     begin; records, stamped, to their partitions; positions to their topic; commit

Nothing is kept that the positions topic does not hold, so a failure anywhere is met by another
session, exactly as a kill is by another process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TypeVar

from barnabas.admin.offsets import EARLIEST, LATEST, list_offsets
from barnabas.admin.topics import NewTopic, create_topics
from barnabas.aio import AIOKafkaAdminClient, AIOKafkaConsumer, AIOKafkaProducer
from barnabas.client.switchboard import Switchboard
from barnabas.kernels import ConsumerRecord
from barnabas.mirror.clients import Side
from barnabas.mirror.following import Followed, follow_topics
from barnabas.mirror.positions import TOPIC_CONFIGS, TOPIC_PREFIX, Positions
from barnabas.mirror.progress import Progress
from barnabas.mirror.provenance import Stamp
from barnabas.mirror.selection import Selection
from barnabas.mirror.sending import send_rows
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError, InvalidValueError, RetriableError
from barnabas.model.ids import TopicPartition
from barnabas.model.request_errors import OffsetOutOfRangeError

IDLE_MS = 200.0
"""How long to wait for records while there are none."""

GATHER_MS = 20.0
"""How long an open transaction waits for more of them."""

RECORDS_MAX = 20_000
"""Records that are decoded at once."""

Client = TypeVar("Client", AIOKafkaConsumer, AIOKafkaProducer)


class TargetLagsError(RetriableError):
    """The producer has not heard of a partition yet; one that is started anew asks again."""


class SourceLostRecordsError(BarnabasError):
    """The source ends before what was copied from it: it is not the log that it was."""


@dataclass(frozen=True, slots=True)
class MirrorOptions:
    """What to copy, from where to where, and in which rhythm."""

    source: Side
    target: Side
    selection: Selection
    name: str | None = None
    until_caught_up: bool = False
    commit_interval_ms: float = 1000
    refresh_interval_ms: float = 10_000
    replication_factor: int = -1
    from_end: bool = False


class Session:
    """One run; `progress` outlives it, `tell` hears what a person should know.

    `began` says that both clusters were reached and asked for the same mirror.
    """

    def __init__(
        self, options: MirrorOptions, progress: Progress, tell: Callable[[str], None]
    ) -> None:
        self._options = options
        self._progress = progress
        self._tell = tell
        self.began = False
        self._positions = Positions()
        self._topic_ids: dict[TopicPartition, str] = {}
        self._ends: dict[TopicPartition, int] | None = None
        self._follow_at_ms = 0.0

    async def run(self) -> None:
        """Copy until caught up, if that was asked for, or until it is cancelled or fails."""
        async with AsyncExitStack() as stack:
            options = self._options
            source = await stack.enter_async_context(AIOKafkaAdminClient(**options.source.admin))
            target = await stack.enter_async_context(AIOKafkaAdminClient(**options.target.admin))
            self._source, self._target = source.board, target.board
            source_id, target_id = cluster_ids(self._source, self._target, options.selection)
            self._stamp = Stamp(source_id, target_id)
            self._topic = TOPIC_PREFIX + (options.name or source_id)
            await self._make_positions_topic()
            self._producer = await started(
                stack, AIOKafkaProducer(**options.target.producer(self._topic))
            )
            self.began = True
            await self._read_positions()
            self._consumer = await started(stack, AIOKafkaConsumer(**options.source.consumer))
            await self._follow()
            await self._copy()

    # The start.

    async def _make_positions_topic(self) -> None:
        new = NewTopic(self._topic, 1, self._options.replication_factor, {}, TOPIC_CONFIGS)
        [created] = await create_topics(self._target, [new])
        if created.error is not None and created.error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
            raise created.error

    async def _read_positions(self) -> None:
        """Read what this mirror has committed; its own transactions are all ended by now."""
        place = TopicPartition(self._topic, 0)
        start = (await list_offsets(self._target, {place: EARLIEST}))[place].offset
        end = (await list_offsets(self._target, {place: LATEST}))[place].offset
        async with AsyncExitStack() as stack:
            consumer = AIOKafkaConsumer(**self._options.target.reader)
            consumer.assign([place])
            consumer = await started(stack, consumer)
            consumer.seek(place, start)
            while await consumer.position(place) < end:
                for record in (await consumer.getmany(timeout_ms=IDLE_MS)).get(place, ()):
                    self._positions.load(record.key, record.value)

    # Topics.

    async def _follow(self) -> None:
        """Look for new topics, partitions and options, and read what is new from its start."""
        options = self._options
        followed = await follow_topics(
            self._source,
            self._target,
            options.selection,
            replication_factor=options.replication_factor,
        )
        self._tell_changes(followed)
        self._follow_at_ms = _now_ms() + options.refresh_interval_ms
        if followed.partitions == self._topic_ids:
            return
        partitions = followed.partitions
        await self._check_target(partitions)
        starts = {
            each: self._positions.find(each, topic_id)
            for each, topic_id in partitions.items()
            if self._topic_ids.get(each) != topic_id
        }
        found = {each: offset for each, offset in starts.items() if offset is not None}
        # Only a mirror that has never run may skip what is there already.
        where = LATEST if options.from_end and not self._positions else EARLIEST
        asked = [each for each, offset in starts.items() if offset is None]
        for each, answer in (await self._offsets(asked, where)).items():
            found[each] = answer
            self._positions.move(each, answer, partitions[each])
        self._topic_ids = partitions
        self._consumer.assign(partitions)
        for each, offset in found.items():
            self._consumer.seek(each, offset)
        self._progress.partitions = len(partitions)
        self._progress.topics = len({each.topic for each in partitions})
        # Written down at once: whoever comes next must not choose other starts.
        await self._transaction({})
        if self._ends is None and options.until_caught_up:
            self._ends = await self._offsets(list(partitions), LATEST)

    async def _check_target(self, partitions: Iterable[TopicPartition]) -> None:
        """Raise if the producer does not know all that is to be written to."""
        known: dict[str, set[int]] = {}
        for topic, index in partitions:
            name = self._options.selection.target_name(topic)
            if name not in known:
                known[name] = await self._producer.partitions_for(name)
            if index not in known[name]:
                raise TargetLagsError(f"partition {index} of {name} is new to the producer")

    def _tell_changes(self, followed: Followed) -> None:
        plan = followed.plan
        for name, shape in plan.create.items():
            self._tell(f"created topic {name} with {shape.partitions} partitions")
        for name, count in plan.grow.items():
            self._tell(f"topic {name} has {count} partitions now")
        for name, options in plan.configure.items():
            told = ", ".join(f"{option}={value}" for option, value in options.items())
            self._tell(f"topic {name}: {told}")

    async def _offsets(
        self, partitions: list[TopicPartition], where: int, *, committed: bool | None = None
    ) -> dict[TopicPartition, int]:
        if not partitions:
            return {}
        if committed is None:
            committed = self._options.source.consumer["isolation.level"] == "read_committed"
        asked = dict.fromkeys(partitions, where)
        found = await list_offsets(self._source, asked, committed=committed)
        return {partition: answer.offset for partition, answer in found.items()}

    # Copying.

    async def _copy(self) -> None:
        while True:
            if _now_ms() >= self._follow_at_ms:
                await self._follow()
            try:
                runs = await self._consumer.getmany(timeout_ms=IDLE_MS, max_records=RECORDS_MAX)
            except OffsetOutOfRangeError:
                await self._come_back()
                continue
            if runs:
                await self._transaction(runs)
            self._progress.lag = self._lag()
            if not runs and await self._caught_up():
                if self._progress.lag is None:
                    self._progress.lag = 0  # nothing was fetched because nothing was left
                return

    async def _transaction(self, runs: dict[TopicPartition, list[ConsumerRecord]]) -> None:
        """Write records, and those that come meanwhile, with the positions after them."""
        if not runs and not self._positions.changed:
            return
        producer, positions = self._producer, self._positions
        taken = written = 0
        end_ms = _now_ms() + self._options.commit_interval_ms
        await producer.begin_transaction()
        while runs:
            for partition, records in runs.items():
                rows = self._stamp.rows(records)
                name = self._options.selection.target_name(partition.topic)
                if rows:
                    await send_rows(producer, name, partition.partition, rows)
                positions.move(partition, records[-1].offset + 1, self._topic_ids[partition])
                taken += len(records)
                written += len(rows)
            if _now_ms() >= end_ms:
                break
            try:
                runs = await self._consumer.getmany(timeout_ms=GATHER_MS, max_records=RECORDS_MAX)
            except OffsetOutOfRangeError:
                break  # met again, and looked at, once this much is safe
        await producer.send_many(self._topic, positions.rows(), partition=0)
        await producer.commit_transaction()
        positions.written()
        self._progress.committed(written, taken - written, _now_ms())

    async def _come_back(self) -> None:
        """Go on where the source begins, if it has dropped what was to be read next."""
        partitions = list(self._topic_ids)
        starts = await self._offsets(partitions, EARLIEST)
        ends = await self._offsets(partitions, LATEST, committed=False)
        for partition in partitions:
            position = await self._consumer.position(partition)
            if position > ends[partition]:
                raise SourceLostRecordsError(
                    f"{partition} was copied up to offset {position}, and ends at "
                    f"{ends[partition]} on the source now: it has lost records. "
                    "To start anew, give another --name and another --prefix"
                )
            if position < starts[partition]:
                self._tell(
                    f"{partition}: the source has deleted {starts[partition] - position} offsets "
                    f"before they were copied; going on from {starts[partition]}"
                )
                self._consumer.seek(partition, starts[partition])

    async def _caught_up(self) -> bool:
        if self._ends is None:
            return False
        for partition, end in self._ends.items():
            if partition in self._topic_ids and await self._consumer.position(partition) < end:
                return False
        return True

    def _lag(self) -> int | None:
        lags = [self._consumer.current_lag(each) for each in self._topic_ids]
        known = [lag for lag in lags if lag is not None]
        return sum(known) if len(known) == len(lags) else None


def cluster_ids(source: Switchboard, target: Switchboard, selection: Selection) -> tuple[str, str]:
    """Return the ids of both clusters; raise where a mirror would write into what it reads."""
    source_id, target_id = source.cluster.cluster_id, target.cluster.cluster_id
    if source_id is None or target_id is None:
        side = "source" if source_id is None else "target"
        raise InvalidValueError(f"the {side} has no cluster id: its brokers are too old (0.10.1)")
    if source_id == target_id and not selection.prefix:
        raise InvalidValueError(
            f"source and target are the same cluster ({source_id}): "
            "a copy inside of it needs --prefix"
        )
    return source_id, target_id


async def started(stack: AsyncExitStack, client: Client) -> Client:
    """Start a client that is stopped when the stack is left."""
    await client.start()
    stack.push_async_callback(_stop, client)
    return client


async def _stop(client: AIOKafkaConsumer | AIOKafkaProducer) -> None:
    try:
        await client.stop()
    except BarnabasError:
        # A cluster that cannot be reached cannot be taken leave of; what was open there is ended
        # by the next session, or by the transaction's timeout.
        return


def _now_ms() -> float:
    return asyncio.get_running_loop().time() * 1000

"""Copies the records of some partitions, transaction by transaction, each with its positions.

    begin; records, stamped, to their partitions; positions to their topic; commit

A lane, which works beside others, also writes its positions as marks (see `marks`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from barnabas.aio import AIOKafkaConsumer, AIOKafkaProducer
from barnabas.kernels import ConsumerRecord
from barnabas.mirror.marks import as_marks
from barnabas.mirror.positions import Positions
from barnabas.mirror.provenance import Stamp
from barnabas.mirror.route import Route
from barnabas.mirror.sending import send_rows
from barnabas.mirror.source import Source
from barnabas.model.ids import TopicPartition
from barnabas.model.request_errors import OffsetOutOfRangeError

IDLE_MS = 200.0
"""How long to wait for records while there are none."""

GATHER_MS = 20.0
"""How long an open transaction waits for more of them."""

RECORDS_MAX = 20_000
"""Records that are decoded at once."""

Runs = Mapping[TopicPartition, list[ConsumerRecord]]


class Copying:
    """From one consumer to one transactional producer.

    `counted` hears of each transaction: how many records were written, how many left out.
    """

    def __init__(
        self,
        route: Route,
        source: Source,
        consumer: AIOKafkaConsumer,
        producer: AIOKafkaProducer,
        positions: Positions,
        *,
        commit_interval_ms: float,
        in_lane: bool,
        counted: Callable[[int, int], None],
        tell: Callable[[str], None],
    ) -> None:
        self._route = route
        self._source = source
        self._consumer = consumer
        self._producer = producer
        self._positions = positions
        self._commit_interval_ms = commit_interval_ms
        self._in_lane = in_lane
        self._counted = counted
        self._tell = tell
        self._stamp = Stamp(route.source_id, route.target_id)
        self._topic_ids: dict[TopicPartition, str] = {}

    def assign(
        self, topic_ids: Mapping[TopicPartition, str], starts: Mapping[TopicPartition, int]
    ) -> None:
        """Copy these partitions from now on; those that are new, from their starts."""
        self._topic_ids = dict(topic_ids)
        self._consumer.assign(topic_ids)
        for partition, offset in starts.items():
            self._consumer.seek(partition, offset)

    async def step(self) -> bool:
        """Copy what has come; False: nothing has."""
        try:
            runs = await self._consumer.getmany(timeout_ms=IDLE_MS, max_records=RECORDS_MAX)
        except OffsetOutOfRangeError:
            await self._come_back()
            return True
        if runs:
            await self._transaction(runs)
        return bool(runs)

    async def position(self, partition: TopicPartition) -> int:
        """Return how far a partition was read; offsets without records are passed, too."""
        return await self._consumer.position(partition)

    def lag(self) -> int | None:
        """Return how many records there are to copy; None while that is not known."""
        lags = [self._consumer.current_lag(each) for each in self._topic_ids]
        known = [lag for lag in lags if lag is not None]
        return sum(known) if len(known) == len(lags) else None

    async def _transaction(self, runs: Runs) -> None:
        """Write records, and those that come meanwhile, with the positions after them."""
        producer, positions, route = self._producer, self._positions, self._route
        taken = written = 0
        end_ms = now_ms() + self._commit_interval_ms
        await producer.begin_transaction()
        while runs:
            for partition, records in runs.items():
                rows = self._stamp.rows(records)
                if rows:
                    await send_rows(producer, *route.target_of(partition), rows)
                positions.move(partition, records[-1].offset + 1, self._topic_ids[partition])
                taken += len(records)
                written += len(rows)
            if now_ms() >= end_ms:
                break
            try:
                runs = await self._consumer.getmany(timeout_ms=GATHER_MS, max_records=RECORDS_MAX)
            except OffsetOutOfRangeError:
                break  # met again, and looked at, once this much is safe
        await producer.send_many(route.positions_topic, positions.rows(), partition=0)
        if self._in_lane:
            marks = as_marks(route, positions.unwritten())
            await producer.send_offsets_to_transaction(marks, route.group)
        await producer.commit_transaction()
        positions.written()
        self._counted(written, taken - written)

    async def _come_back(self) -> None:
        """Go on where the source begins, if it has dropped what was to be read next."""
        at = {each: await self._consumer.position(each) for each in self._topic_ids}
        await self._source.check(at)
        for partition, start in (await self._source.begins(at)).items():
            if at[partition] < start:
                self._tell(
                    f"{partition}: the source has deleted {start - at[partition]} offsets "
                    f"before they were copied; going on from {start}"
                )
                self._consumer.seek(partition, start)


def now_ms() -> float:
    """Return the time of the running loop."""
    return asyncio.get_running_loop().time() * 1000

"""Copies the records of some partitions, transaction by transaction, each with its positions.

    begin; records, with their origin, to their partitions; positions to their topic; commit

The copier of a shard also writes its positions as checkpoints (see `checkpoints`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from barnabas.aio import AIOKafkaConsumer, AIOKafkaProducer
from barnabas.kernels import ConsumerRecord
from barnabas.mirror.checkpoints import as_group_offsets
from barnabas.mirror.clusters import SourceLogs
from barnabas.mirror.positions import MirrorPositions
from barnabas.mirror.provenance import Stamp
from barnabas.mirror.replication_policy import ReplicationFlow
from barnabas.mirror.sending import send_rows
from barnabas.model.ids import TopicPartition
from barnabas.model.request_errors import OffsetOutOfRangeError

IDLE_MS = 200.0
"""How long a poll waits for the first records of a transaction."""

GATHER_MS = 20.0
"""How long a poll waits for more of them."""

RECORDS_MAX = 20_000
"""The maximum number of records of one poll."""

Polled = Mapping[TopicPartition, list[ConsumerRecord]]


class PartitionCopier:
    """Copies from one consumer to one transactional producer.

    `on_commit` is called after each transaction with the numbers of records written and skipped.
    """

    def __init__(
        self,
        flow: ReplicationFlow,
        source: SourceLogs,
        consumer: AIOKafkaConsumer,
        producer: AIOKafkaProducer,
        positions: MirrorPositions,
        *,
        commit_interval_ms: float,
        checkpointed: bool,
        on_commit: Callable[[int, int], None],
        notify: Callable[[str], None],
    ) -> None:
        self._flow = flow
        self._source = source
        self._consumer = consumer
        self._producer = producer
        self._positions = positions
        self._commit_interval_ms = commit_interval_ms
        self._checkpointed = checkpointed
        self._on_commit = on_commit
        self._notify = notify
        self._stamp = Stamp(flow.source_id, flow.target_id)
        self._topic_ids: dict[TopicPartition, str] = {}

    async def assign(
        self, topic_ids: Mapping[TopicPartition, str], starts: Mapping[TopicPartition, int]
    ) -> None:
        """Replace the partitions to copy; `starts` has the first offsets of those that are new."""
        self._topic_ids = dict(topic_ids)
        self._consumer.assign(topic_ids)
        for partition, offset in starts.items():
            self._consumer.seek(partition, offset)

    async def step(self) -> bool:
        """Copy what was fetched; return whether there was anything."""
        try:
            polled = await self._consumer.getmany(timeout_ms=IDLE_MS, max_records=RECORDS_MAX)
        except OffsetOutOfRangeError:
            await self._skip_deleted()
            return True
        if polled:
            await self._transaction(polled)
        return bool(polled)

    async def position(self, partition: TopicPartition) -> int:
        """Return the offset up to which a partition was read, offsets without records included."""
        return await self._consumer.position(partition)

    def lag(self) -> int | None:
        """Return how many records are left to copy; None while that is unknown."""
        lags = [self._consumer.current_lag(each) for each in self._topic_ids]
        known = [lag for lag in lags if lag is not None]
        return sum(known) if len(known) == len(lags) else None

    async def _transaction(self, polled: Polled) -> None:
        """Write records, those fetched meanwhile, and the positions after them."""
        producer, positions, flow = self._producer, self._positions, self._flow
        taken = written = 0
        end_ms = now_ms() + self._commit_interval_ms
        await producer.begin_transaction()
        while polled:
            for partition, records in polled.items():
                rows = self._stamp.rows(records)
                if rows:
                    await send_rows(producer, *flow.target_of(partition), rows)
                positions.move(partition, records[-1].offset + 1, self._topic_ids[partition])
                taken += len(records)
                written += len(rows)
            if now_ms() >= end_ms:
                break
            try:
                polled = await self._consumer.getmany(timeout_ms=GATHER_MS, max_records=RECORDS_MAX)
            except OffsetOutOfRangeError:
                break  # the next step handles it, once this much is committed
        await producer.send_many(flow.positions_topic, positions.rows(), partition=0)
        if self._checkpointed:
            checkpoints = as_group_offsets(flow, positions.unwritten())
            await producer.send_offsets_to_transaction(checkpoints, flow.group)
        await producer.commit_transaction()
        positions.written()
        self._on_commit(written, taken - written)

    async def _skip_deleted(self) -> None:
        """Continue at the start of the log where the source has deleted the next offset."""
        at = {each: await self._consumer.position(each) for each in self._topic_ids}
        await self._source.check_not_truncated(at)
        for partition, start in (await self._source.start_offsets(at)).items():
            if at[partition] < start:
                self._notify(
                    f"{partition}: the source has deleted {start - at[partition]} offsets "
                    f"before they were copied; continuing from offset {start}"
                )
                self._consumer.seek(partition, start)


def now_ms() -> float:
    """Return the time of the running loop."""
    return asyncio.get_running_loop().time() * 1000

"""Copies in this process: one consumer, and the mirror's own producer."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack

from barnabas.aio import AIOKafkaConsumer
from barnabas.mirror.copying import Copying, now_ms
from barnabas.mirror.ground import Engine, Ground
from barnabas.mirror.opening import started
from barnabas.model.ids import TopicPartition


class InProcess:
    """The mover of `--engine local`."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground

    async def start(self, stack: AsyncExitStack) -> None:
        """Start the consumer."""
        ground = self._ground
        consumer = await started(stack, AIOKafkaConsumer(**ground.options.source.consumer))
        self._copying = Copying(
            ground.route,
            ground.source,
            consumer,
            ground.producer,
            ground.positions,
            commit_interval_ms=ground.options.commit_interval_ms,
            in_lane=False,
            counted=self._counted,
            tell=ground.tell,
        )

    async def assign(
        self, topic_ids: Mapping[TopicPartition, str], starts: Mapping[TopicPartition, int]
    ) -> None:
        """Copy these partitions from now on; those that are new, from their starts."""
        self._copying.assign(topic_ids, starts)

    async def step(self) -> bool:
        """Copy what has come."""
        return await self._copying.step()

    async def position(self, partition: TopicPartition) -> int:
        """Return how far a partition was read."""
        return await self._copying.position(partition)

    def lag(self) -> int | None:
        """Return how much there is to copy; None while that is not known."""
        return self._copying.lag()

    def _counted(self, records: int, skipped: int) -> None:
        self._ground.progress.committed(records, skipped, now_ms())


IN_PROCESS = Engine(InProcess, shared=False)

"""Committed offsets of a group: in the tree, in Kafka, or in both while a group migrates."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping

from barnabas.client.retry import Verdict, verdict
from barnabas.consumer.streams.nodes import decode_offset, offset_path
from barnabas.consumer.streams.options import StreamOptions
from barnabas.consumer.streams.simple import SimpleConsumer
from barnabas.coordination.contract import Coordination, NodeExists, NoNode
from barnabas.model.errors import BarnabasError
from barnabas.model.ids import TopicPartition

logger = logging.getLogger("barnabas.streams")


class Offsets:
    """Where a group's offsets are read and written, as `offsets.storage` says.

    With dual.commit.enabled both stores are written, and the higher of the two offsets is read:
    members that were not yet configured to use Kafka continue with the tree.
    """

    def __init__(self, tree: Coordination, kafka: SimpleConsumer, options: StreamOptions) -> None:
        self._tree = tree
        self._kafka = kafka
        self._options = options
        self._group = options.group
        self._in_kafka = options.offsets_storage == "kafka"
        self._in_tree = not self._in_kafka or options.dual_commit_enabled
        # The known contents of the tree, so that an idle partition causes no write.
        self._written: dict[TopicPartition, int] = {}

    async def fetch(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the committed offsets; partitions without one are left out."""
        wanted = list(partitions)
        found: dict[TopicPartition, int] = {}
        if self._in_tree:
            for partition in wanted:
                offset = await self._read(partition)
                if offset is not None:
                    found[partition] = offset
            self._written |= found
        if self._in_kafka and wanted:
            for partition, offset in (await self._kafka.committed(self._group, wanted)).items():
                found[partition] = max(offset, found.get(partition, -1))
        return found

    async def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Store offsets; in Kafka with retries."""
        if self._in_kafka and offsets:
            await self._commit_to_kafka(offsets)
        if self._in_tree:
            for partition, offset in offsets.items():
                if self._written.get(partition) != offset:
                    await self._write(partition, offset)
                    self._written[partition] = offset

    def forget(self) -> None:
        """Forget the known contents of the tree: other members may commit from now on."""
        self._written.clear()

    async def _commit_to_kafka(self, offsets: Mapping[TopicPartition, int]) -> None:
        left = self._options.offsets_commit_max_retries
        while True:
            try:
                timeout_ms = self._options.offsets_channel_socket_timeout_ms
                await self._kafka.commit(self._group, offsets, timeout_ms)
                return
            except BarnabasError as failure:
                if left == 0 or verdict(failure) is Verdict.FAIL:
                    raise
                logger.warning("group %s: commit failed and is retried: %s", self._group, failure)
                left -= 1
            await asyncio.sleep(self._options.offsets_channel_backoff_ms / 1000)

    async def _read(self, partition: TopicPartition) -> int | None:
        path = offset_path(self._group, *partition)
        try:
            data, _ = await self._tree.get(path)
        except NoNode:
            return None
        return decode_offset(path, data)

    async def _write(self, partition: TopicPartition, offset: int) -> None:
        path, data = offset_path(self._group, *partition), str(offset).encode()
        try:
            await self._tree.set(path, data)
        except NoNode:
            try:
                await self._tree.create(path, data, make_parents=True)
            except NodeExists:
                await self._tree.set(path, data)

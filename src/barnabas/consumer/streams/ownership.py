"""Ownership of partitions: ephemeral nodes that name the stream which reads each of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from barnabas.consumer.streams.nodes import owner_path
from barnabas.coordination.contract import Coordination, NodeExists, NoNode
from barnabas.model.ids import TopicPartition


class Ownership:
    """The partitions of a group that one consumer owns."""

    def __init__(self, tree: Coordination, group: str) -> None:
        self._tree = tree
        self._group = group
        self.owned: dict[TopicPartition, str] = {}

    async def claim(self, wanted: Mapping[TopicPartition, str]) -> bool:
        """Take all partitions, or none: False if another consumer still has one of them."""
        for partition, thread_id in wanted.items():
            path = owner_path(self._group, *partition)
            try:
                await self._tree.create(path, thread_id.encode(), ephemeral=True, make_parents=True)
            except NodeExists:
                await self.release(list(self.owned))
                return False
            self.owned[partition] = thread_id
        return True

    async def release(self, partitions: Iterable[TopicPartition] | None = None) -> None:
        """Give partitions back, by default all."""
        for partition in list(self.owned) if partitions is None else list(partitions):
            del self.owned[partition]
            try:
                await self._tree.delete(owner_path(self._group, *partition))
            except NoNode:
                continue  # it went with an earlier session

    def forget(self) -> None:
        """The session that owned them is gone, and its nodes with it."""
        self.owned.clear()

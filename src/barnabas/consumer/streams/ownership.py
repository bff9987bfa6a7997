"""Ownership of partitions: ephemeral nodes that name the stream that reads each of them."""

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
        """Claim all partitions, or none: False if another consumer still owns one of them."""
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
        """Release partitions, by default all."""
        for partition in list(self.owned) if partitions is None else list(partitions):
            del self.owned[partition]
            try:
                await self._tree.delete(owner_path(self._group, *partition))
            except NoNode:
                continue  # it expired with an earlier session

    def forget(self) -> None:
        """Forget everything: the session that owned the nodes has expired."""
        self.owned.clear()

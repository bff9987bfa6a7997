"""Committed offsets in the coordination tree, for the oldest clients (OffsetCommit v0)."""

from __future__ import annotations

from barnabas.broker.cluster.tree_errors import refused_as
from barnabas.coordination.contract import Coordination, NodeExists, NoNode, check_path
from barnabas.metadata.tree_schema import consumer_offset_path
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import InvalidValueError, RequestError


class TreeOffsets:
    """Offsets under `/consumers/<group>/offsets/<topic>/<partition>`, as decimal text."""

    def __init__(self, coordination: Coordination) -> None:
        self._tree = coordination

    async def store(self, group: str, topic: str, partition: int, offset: int) -> None:
        """Store an offset; raise INVALID_GROUP_ID if the group's name cannot be a node's."""
        path = _path(group, topic, partition)
        data = str(offset).encode()
        with refused_as(ErrorCode.COORDINATOR_NOT_AVAILABLE):
            try:
                await self._tree.set(path, data)
            except NoNode:
                try:
                    await self._tree.create(path, data, make_parents=True)
                except NodeExists:
                    await self._tree.set(path, data)

    async def fetch(self, group: str, topic: str, partition: int) -> int | None:
        """Return the offset, or None if there is none; raises as `store` does."""
        path = _path(group, topic, partition)
        with refused_as(ErrorCode.COORDINATOR_NOT_AVAILABLE):
            try:
                data, _ = await self._tree.get(path)
                return int(data)
            except (NoNode, InvalidValueError, ValueError):  # no topic can have such a name, either
                return None


def _path(group: str, topic: str, partition: int) -> str:
    try:
        path = consumer_offset_path(group, topic, partition)
        check_path(f"/consumers/{group}")
    except InvalidValueError as failure:
        raise RequestError(ErrorCode.INVALID_GROUP_ID, str(failure)) from failure
    return path

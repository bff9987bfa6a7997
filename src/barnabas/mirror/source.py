"""The cluster that is read: where its logs begin and end, and what is gone from them."""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.admin.offsets import EARLIEST, LATEST, list_offsets
from barnabas.client.cluster_client import ClusterClient
from barnabas.mirror.clients import Side
from barnabas.model.errors import BarnabasError
from barnabas.model.ids import TopicPartition


class SourceLostRecordsError(BarnabasError):
    """The source ends before what was copied from it: it is not the log that it was."""


class Source:
    """Answers for the source, as readers of its `isolation.level` see it."""

    def __init__(self, client: ClusterClient, side: Side) -> None:
        self.client = client
        self._committed = side.consumer["isolation.level"] == "read_committed"

    async def begins(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return where logs begin."""
        return await self._offsets(partitions, EARLIEST, committed=False)

    async def ends(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return up to where readers may read."""
        return await self._offsets(partitions, LATEST, committed=self._committed)

    async def check(self, positions: dict[TopicPartition, int]) -> None:
        """Raise if a log ends before what was read of it."""
        ends = await self._offsets(positions, LATEST, committed=False)
        for partition, position in positions.items():
            if position > ends[partition]:
                raise SourceLostRecordsError(
                    f"{partition} was copied up to offset {position}, and ends at "
                    f"{ends[partition]} on the source now: it has lost records. "
                    "To start anew, give another --name and another --prefix"
                )

    async def _offsets(
        self, partitions: Iterable[TopicPartition], where: int, *, committed: bool
    ) -> dict[TopicPartition, int]:
        asked = dict.fromkeys(partitions, where)
        if not asked:
            return {}
        found = await list_offsets(self.client, asked, committed=committed)
        return {partition: answer.offset for partition, answer in found.items()}

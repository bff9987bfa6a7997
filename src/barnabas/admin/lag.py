"""The lag of a group: in records, and in the time for which the next one has waited."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from barnabas.admin.group_offsets import CommittedOffset
from barnabas.admin.leaders import ask_leaders
from barnabas.admin.offsets import EARLIEST, LATEST, list_offsets
from barnabas.client.cluster_client import ClusterClient
from barnabas.model.errors import RequestError
from barnabas.model.ids import TopicPartition
from barnabas.records.batch import iterate
from barnabas.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic

LAST_NAMED_VERSION = 12
"""Of Fetch: topics by name."""


@dataclass(frozen=True, slots=True)
class Lag:
    """The position of a group in a partition."""

    committed: int
    start: int
    end: int
    waiting_ms: int | None
    """The age of the first record that the group has not read; None if it has read all."""

    @property
    def records(self) -> int:
        """Return the lag in offsets; deleted records are not counted."""
        return max(self.end - max(self.committed, self.start), 0)


async def lag_of(
    client: ClusterClient, committed: Mapping[TopicPartition, CommittedOffset], now_ms: int
) -> dict[TopicPartition, Lag]:
    """Compare committed offsets with the ends of the logs."""
    starts, ends = await asyncio.gather(
        list_offsets(client, dict.fromkeys(committed, EARLIEST)),
        list_offsets(client, dict.fromkeys(committed, LATEST)),
    )
    ahead = {
        partition: max(committed[partition].offset, starts[partition].offset)
        for partition in committed
        if committed[partition].offset < ends[partition].offset
    }
    times = await timestamps_at(client, ahead)
    return {
        partition: Lag(
            committed[partition].offset,
            starts[partition].offset,
            ends[partition].offset,
            max(now_ms - times[partition], 0) if partition in times else None,
        )
        for partition in committed
    }


async def timestamps_at(
    client: ClusterClient, offsets: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """Return the timestamp of the first record at or after an offset, if there is one."""

    async def ask(
        leader: int, partitions: list[TopicPartition]
    ) -> dict[TopicPartition, int | RequestError | None]:
        connection = await client.connection(leader)
        version = min(connection.version_of(FetchRequest), LAST_NAMED_VERSION)
        found: dict[TopicPartition, int | RequestError | None] = {}
        for partition in partitions:
            wanted = FetchPartition(
                partition=partition.partition,
                fetch_offset=offsets[partition],
                partition_max_bytes=1,  # one whole batch is returned anyway
            )
            request = FetchRequest(
                max_wait_ms=0,
                min_bytes=0,
                max_bytes=1,
                topics=[FetchTopic(topic=partition.topic, partitions=[wanted])],
            )
            response = await connection.send(request, version=version)
            records = response.responses[0].partitions[0].records or b""
            found[partition] = next(
                (
                    record.timestamp
                    for record in iterate(bytes(records))
                    if record.offset >= offsets[partition]
                ),
                None,
            )
        return found

    answers = await ask_leaders(client, offsets, ask)
    return {partition: answer for partition, answer in answers.items() if isinstance(answer, int)}

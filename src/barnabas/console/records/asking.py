"""One topic as its user may read and write it: requests through the door, to the leaders.

Permissions, quotas and isolation are those of any client, because these are a client's requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

from barnabas.console.door import Visitor
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import EARLIEST, LATEST, NO_LEADER
from barnabas.model.isolation import READ_COMMITTED, READ_UNCOMMITTED
from barnabas.model.request_errors import request_error
from barnabas.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.wire.schema import Message

NAMED: Final = 12
"""The last version of Fetch and Produce that names topics instead of their ids."""

CONSUMER: Final = -1
DEBUGGING: Final = -2
"""The replica id of a consumer that also gets what others skip: markers, and empty batches."""

ALL_REPLICAS: Final = -1
PRODUCE_TIMEOUT_MS: Final = 15_000
ASK_TIMEOUT_MS: Final = 15_000


class Asks(Protocol):
    """The part of the door that is used here."""

    async def ask(
        self,
        visitor: Visitor,
        request: Message,
        *,
        to: int | None = None,
        version: int | None = None,
        timeout_ms: float = 30_000,
    ) -> Any:
        """Return the response to a request."""


class Fetched(NamedTuple):
    """What one partition gave."""

    data: memoryview
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted: tuple[tuple[int, int], ...]
    """Producer id and first offset of each aborted transaction in these bytes."""


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic, and who leads its partitions."""

    name: str
    internal: bool
    leaders: Mapping[int, int]

    def led_by(self, partitions: Iterable[int]) -> dict[int, list[int]]:
        """Return partitions by their leaders; those without one are left out."""
        found: dict[int, list[int]] = {}
        for partition in partitions:
            leader = self.leaders.get(partition, NO_LEADER)
            if leader != NO_LEADER:
                found.setdefault(leader, []).append(partition)
        return found


class TopicAccess:
    """Reads and writes a topic for one visitor; remembers leaders until one has changed."""

    def __init__(self, door: Asks, visitor: Visitor, name: str) -> None:
        self._door = door
        self._visitor = visitor
        self.name = name
        self._topic: Topic | None = None

    async def topic(self, *, refresh: bool = False) -> Topic:
        """Return the topic; raise RequestError if there is none that the visitor may describe."""
        if self._topic is None or refresh:
            request = MetadataRequest(
                topics=[MetadataRequestTopic(name=self.name)], allow_auto_topic_creation=False
            )
            response = await self._ask(request)
            found = response.topics[0]
            if found.error_code:
                raise request_error(found.error_code, f"topic {self.name}")
            self._topic = Topic(
                self.name,
                found.is_internal,
                {each.partition_index: each.leader_id for each in found.partitions},
            )
        return self._topic

    async def offsets(self, partitions: Iterable[int], timestamp: int) -> dict[int, int]:
        """Return offsets by timestamp, or `EARLIEST` or `LATEST`; -1 where no record is so new.

        Partitions without a leader, or with an error of their own, are left out.
        """
        topic = await self.topic()
        answers = await asyncio.gather(
            *(
                self._offsets_of(leader, mine, timestamp)
                for leader, mine in topic.led_by(partitions).items()
            )
        )
        return {partition: offset for found in answers for partition, offset in found.items()}

    async def _offsets_of(
        self, leader: int, partitions: list[int], timestamp: int
    ) -> dict[int, int]:
        request = ListOffsetsRequest(
            replica_id=CONSUMER,
            isolation_level=READ_UNCOMMITTED,
            timeout_ms=ASK_TIMEOUT_MS,
            topics=[
                ListOffsetsTopic(
                    name=self.name,
                    partitions=[
                        ListOffsetsPartition(partition_index=each, timestamp=timestamp)
                        for each in partitions
                    ],
                )
            ],
        )
        response = await self._ask(request, leader)
        found = {}
        for topic in response.topics:
            for each in topic.partitions:
                if each.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                    raise request_error(each.error_code, f"topic {self.name}")
                if not each.error_code:
                    found[each.partition_index] = each.offset
        return found

    async def spans(self, partitions: Iterable[int]) -> dict[int, tuple[int, int]]:
        """Return the first offset of each partition and the one after the last."""
        chosen = list(partitions)
        starts, ends = await asyncio.gather(
            self.offsets(chosen, EARLIEST), self.offsets(chosen, LATEST)
        )
        return {
            each: (starts[each], max(ends[each], starts[each]))
            for each in chosen
            if each in starts and each in ends
        }

    async def fetch(
        self,
        partition: int,
        offset: int,
        max_bytes: int,
        *,
        committed: bool = False,
    ) -> Fetched:
        """Return what is at an offset, at once; from the next leader if it has changed."""
        found = await self._fetch({partition: offset}, max_bytes, 0, committed)
        if partition not in found:
            await self.topic(refresh=True)
            found = await self._fetch({partition: offset}, max_bytes, 0, committed)
        if partition not in found:
            raise request_error(
                ErrorCode.LEADER_NOT_AVAILABLE, f"{self.name}-{partition} has no leader now"
            )
        return found[partition]

    async def fetch_many(
        self, positions: Mapping[int, int], max_bytes: int, max_wait_ms: int
    ) -> dict[int, Fetched]:
        """Return what is at several offsets, waiting for new records; without those that fail."""
        return await self._fetch(positions, max_bytes, max_wait_ms, False)

    async def _fetch(
        self, positions: Mapping[int, int], max_bytes: int, max_wait_ms: int, committed: bool
    ) -> dict[int, Fetched]:
        topic = await self.topic()
        parts = await asyncio.gather(
            *(
                self._fetch_from(
                    leader,
                    {each: positions[each] for each in mine},
                    max_bytes,
                    max_wait_ms,
                    committed,
                )
                for leader, mine in topic.led_by(positions).items()
            )
        )
        return {partition: found for part in parts for partition, found in part.items()}

    async def _fetch_from(
        self,
        leader: int,
        positions: Mapping[int, int],
        max_bytes: int,
        max_wait_ms: int,
        committed: bool,
    ) -> dict[int, Fetched]:
        request = FetchRequest(
            replica_id=CONSUMER if committed else DEBUGGING,
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            max_bytes=max_bytes,
            isolation_level=READ_COMMITTED if committed else READ_UNCOMMITTED,
            topics=[
                FetchTopic(
                    topic=self.name,
                    partitions=[
                        FetchPartition(
                            partition=each, fetch_offset=offset, partition_max_bytes=max_bytes
                        )
                        for each, offset in positions.items()
                    ],
                )
            ],
        )
        response = await self._ask(request, leader, NAMED, ASK_TIMEOUT_MS + max_wait_ms)
        if response.error_code:
            raise request_error(response.error_code, f"topic {self.name}")
        found = {}
        for topic in response.responses:
            for each in topic.partitions:
                if each.error_code in _MOVED:
                    continue
                if each.error_code:
                    raise request_error(each.error_code, f"{self.name}-{each.partition_index}")
                found[each.partition_index] = Fetched(
                    memoryview(each.records or b""),
                    each.high_watermark,
                    each.last_stable_offset,
                    each.log_start_offset,
                    tuple((a.producer_id, a.first_offset) for a in each.aborted_transactions or ()),
                )
        return found

    async def produce(self, partition: int, batch: bytes) -> int:
        """Append a batch, on all in-sync replicas; return the offset of its first record."""
        topic = await self.topic()
        leader = topic.leaders.get(partition)
        if leader is None or leader == NO_LEADER:
            raise request_error(
                ErrorCode.LEADER_NOT_AVAILABLE, f"{self.name}-{partition} has no leader now"
            )
        request = ProduceRequest(
            acks=ALL_REPLICAS,
            timeout_ms=PRODUCE_TIMEOUT_MS,
            topic_data=[
                TopicProduceData(
                    name=self.name,
                    partition_data=[PartitionProduceData(index=partition, records=batch)],
                )
            ],
        )
        response = await self._ask(request, leader, NAMED, PRODUCE_TIMEOUT_MS + 5000)
        answer = response.responses[0].partition_responses[0]
        if answer.error_code:
            if answer.error_code in _MOVED:
                self._topic = None
            message = answer.error_message or f"{self.name}-{partition}"
            raise request_error(answer.error_code, message)
        offset: int = answer.base_offset
        return offset

    async def _ask(
        self,
        request: Message,
        to: int | None = None,
        version: int | None = None,
        timeout_ms: float = ASK_TIMEOUT_MS,
    ) -> Any:
        return await self._door.ask(
            self._visitor, request, to=to, version=version, timeout_ms=timeout_ms
        )


_MOVED: Final = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.REPLICA_NOT_AVAILABLE,
)

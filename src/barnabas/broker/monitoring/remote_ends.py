"""Where partitions end that other brokers lead: their leaders are asked now and then."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from barnabas.broker.coordinators.collaborators import Ask
from barnabas.kernels.batch_header import HEADER_SIZE
from barnabas.metadata.cluster_view import ClusterView
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError, RequestError
from barnabas.model.ids import LATEST, TopicPartition
from barnabas.model.isolation import READ_COMMITTED, READ_UNCOMMITTED
from barnabas.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from barnabas.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

logger = logging.getLogger("barnabas.metrics")

CONSUMER = -1
PARTITIONS_PER_REQUEST = 1000
TIMEOUT_MS = 5_000
TRUST_MS = 30_000
"""How long an answer counts: two may fail before the lag of a partition is not shown."""


class Ends(NamedTuple):
    """Where the reads of consumers end."""

    high_watermark: int
    stable: int
    """The last stable offset."""


class RemoteEnds:
    """The last answers of other leaders."""

    def __init__(
        self, broker_id: int, cluster: ClusterView, ask: Ask, clock_ms: Callable[[], int]
    ) -> None:
        self._broker_id = broker_id
        self._cluster = cluster
        self._ask = ask
        self._clock_ms = clock_ms
        self._known: dict[TopicPartition, tuple[int, Ends]] = {}

    def get(self, key: TopicPartition) -> Ends | None:
        """Return where a partition ended when its leader was asked last; None if long ago."""
        known = self._known.get(key)
        if known is None or self._clock_ms() - known[0] > TRUST_MS:
            return None
        return known[1]

    async def refresh(self, keys: Iterable[TopicPartition]) -> list[tuple[TopicPartition, Ends]]:
        """Ask the leaders of partitions, and forget all others; return what they answered."""
        by_leader: dict[int, list[TopicPartition]] = {}
        wanted = set()
        for key in keys:
            leader = self.leader_of(key)
            if leader >= 0 and leader != self._broker_id:
                by_leader.setdefault(leader, []).append(key)
                wanted.add(key)
        for key in [each for each in self._known if each not in wanted]:
            del self._known[key]
        requests = [
            self._ends(leader, led[start : start + PARTITIONS_PER_REQUEST])
            for leader, led in by_leader.items()
            for start in range(0, len(led), PARTITIONS_PER_REQUEST)
        ]
        found = [each for answer in await asyncio.gather(*requests) for each in answer.items()]
        now_ms = self._clock_ms()
        self._known.update((key, (now_ms, ends)) for key, ends in found)
        return found

    async def head(self, key: TopicPartition, offset: int) -> bytes:
        """Return the first bytes of the batch at an offset; raise if its leader has none."""
        topic = self._cluster.topic(key.topic)
        leader = self.leader_of(key)
        if topic is None or leader < 0:
            raise RequestError(ErrorCode.LEADER_NOT_AVAILABLE)
        wanted = FetchPartition(
            partition=key.partition, fetch_offset=offset, partition_max_bytes=HEADER_SIZE
        )
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=HEADER_SIZE,  # a leader returns one batch whatever its size
            topics=[FetchTopic(topic=key.topic, topic_id=topic.topic_id, partitions=[wanted])],
        )
        response: FetchResponse = await self._ask(leader, request, TIMEOUT_MS)
        for found in response.responses:
            for data in found.partitions:
                if data.error_code:
                    raise RequestError(ErrorCode.of(data.error_code))
                return bytes(data.records[:HEADER_SIZE]) if data.records else b""
        raise RequestError(ErrorCode.of(response.error_code))

    def leader_of(self, key: TopicPartition) -> int:
        """Return the leader of a partition as the controller sent it, -1 if there is none."""
        topic = self._cluster.topic(key.topic)
        if topic is None or key.partition >= len(topic.partitions):
            return -1
        return topic.partitions[key.partition].leader

    async def _ends(
        self, leader: int, keys: Sequence[TopicPartition]
    ) -> dict[TopicPartition, Ends]:
        try:
            stable = await self._offsets(leader, keys, READ_COMMITTED)
            watermarks = await self._offsets(leader, keys, READ_UNCOMMITTED)
        except BarnabasError as failure:
            logger.debug("broker %d: ends of partitions not known: %s", leader, failure)
            return {}
        return {
            key: Ends(watermark, stable[key])
            for key, watermark in watermarks.items()
            if key in stable
        }

    async def _offsets(
        self, leader: int, keys: Sequence[TopicPartition], isolation: int
    ) -> dict[TopicPartition, int]:
        topics: dict[str, ListOffsetsTopic] = {}
        for key in keys:
            topic = topics.setdefault(key.topic, ListOffsetsTopic(name=key.topic))
            topic.partitions.append(
                ListOffsetsPartition(partition_index=key.partition, timestamp=LATEST)
            )
        response: ListOffsetsResponse = await self._ask(
            leader,
            ListOffsetsRequest(
                replica_id=CONSUMER, isolation_level=isolation, topics=list(topics.values())
            ),
            TIMEOUT_MS,
        )
        return {
            TopicPartition(answered.name, each.partition_index): each.offset
            for answered in response.topics
            for each in answered.partitions
            if not each.error_code
        }

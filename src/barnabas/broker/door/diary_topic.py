"""Reads the diary's topic for the console: from the log here if there is one, else from its leader.

The broker reads for itself, so what of it a user may see is for the pages to decide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.loop import offload
from barnabas.metadata.topic_names import DIARY_TOPIC
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.ids import EARLIEST, LATEST, TopicPartition
from barnabas.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)

if TYPE_CHECKING:
    from barnabas.broker.cluster.peers import Peers
    from barnabas.broker.partitions.hosted_partitions import HostedPartitions
    from barnabas.log.partition_log import PartitionLog
    from barnabas.metadata.cluster_view import ClusterView

PARTITION = TopicPartition(DIARY_TOPIC, 0)
CLIENT_ID = "barnabas-console"
READ_BYTES = 64 * 1024
"""So few that the loop is not held up by their decoding."""
TIMEOUT_MS = 1_000


class DiaryTopic:
    """The topic's log, wherever it is."""

    def __init__(
        self, broker_id: int, cluster: ClusterView, partitions: HostedPartitions, peers: Peers
    ) -> None:
        self._broker_id = broker_id
        self._cluster = cluster
        self._partitions = partitions
        self._peers = peers.apart(CLIENT_ID)

    async def ends(self) -> tuple[int, int]:
        """Return where the log starts and ends; both 0 while there is no topic."""
        if self._cluster.topic(DIARY_TOPIC) is None:
            return 0, 0
        log = self._log()
        if log is not None:
            return log.log_start_offset, log.high_watermark
        return await self._listed(EARLIEST), await self._listed(LATEST)

    async def read(self, offset: int) -> bytes:
        """Return some batches from an offset on."""
        log = self._log()
        if log is None:
            return await self._fetched(offset)
        piece = log.read(offset, READ_BYTES, max_offset=log.high_watermark)
        try:
            return await offload(None, piece.read)
        finally:
            piece.release()

    def close(self) -> None:
        """Close the connection to the leader."""
        self._peers.close()

    def _log(self) -> PartitionLog | None:
        partition = self._partitions.get(PARTITION)
        return None if partition is None else partition.log

    def _leader(self) -> int:
        topic = self._cluster.topic(DIARY_TOPIC)
        leader = -1 if topic is None else topic.partitions[0].leader
        if leader < 0 or leader == self._broker_id:
            raise RequestError(ErrorCode.LEADER_NOT_AVAILABLE, f"{DIARY_TOPIC} has no leader")
        return leader

    async def _listed(self, timestamp: int) -> int:
        wanted = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
        request = ListOffsetsRequest(
            replica_id=-1, topics=[ListOffsetsTopic(name=DIARY_TOPIC, partitions=[wanted])]
        )
        response = await self._peers.ask(self._leader(), request, TIMEOUT_MS)
        [found] = response.topics[0].partitions
        _check(found.error_code)
        return int(found.offset)

    async def _fetched(self, offset: int) -> bytes:
        topic = self._cluster.topic(DIARY_TOPIC)
        leader = self._leader()
        assert topic is not None
        wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=READ_BYTES)
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=READ_BYTES,
            topics=[FetchTopic(topic=DIARY_TOPIC, topic_id=topic.topic_id, partitions=[wanted])],
        )
        response = await self._peers.ask(leader, request, TIMEOUT_MS)
        _check(response.error_code)
        [found] = response.responses[0].partitions
        _check(found.error_code)
        return bytes(found.records or b"")


def _check(code: int) -> None:
    if code:
        error = ErrorCode.of(code)
        raise RequestError(error, f"{DIARY_TOPIC}: {error.meaning}")

"""Requests of a producer to transaction and group coordinators: ids, partitions, offsets, the end.

Each call is retried until it succeeds, fails permanently or times out: coordinators move,
load, and may still be writing the end of the last transaction.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from barnabas.client.cluster_client import ANY, ClusterClient
from barnabas.client.errors import KafkaTimeoutError, NetworkError
from barnabas.client.retry import Backoff
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError
from barnabas.model.group_metadata import ConsumerGroupMetadata
from barnabas.model.ids import TopicPartition
from barnabas.model.request_errors import request_error
from barnabas.producer.identity import NOBODY, Identity
from barnabas.structs import OffsetAndMetadata
from barnabas.wire.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from barnabas.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from barnabas.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from barnabas.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from barnabas.wire.schema import Message

GROUP, TRANSACTION = 0, 1

_MOVED = frozenset({ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR})
_BUSY_MS = 20
"""Pause after CONCURRENT_TRANSACTIONS: the end of the last transaction takes only so long."""


class Coordinator:
    """The coordinators of one producer."""

    def __init__(
        self,
        cluster_client: ClusterClient,
        backoff: Backoff,
        transactional_id: str | None,
        transaction_timeout_ms: int,
    ) -> None:
        self._client = cluster_client
        self._backoff = backoff
        self._transactional_id = transactional_id
        self._transaction_timeout_ms = transaction_timeout_ms
        self._nodes: dict[tuple[int, str], int] = {}

    async def init_producer_id(self, current: Identity = NOBODY, *, timeout_ms: float) -> Identity:
        """Request a producer id, or the next epoch of the current one."""
        transactional_id = self._transactional_id

        async def attempt() -> Identity:
            request = InitProducerIdRequest(
                transactional_id=transactional_id,
                transaction_timeout_ms=(
                    2_147_483_647 if transactional_id is None else self._transaction_timeout_ms
                ),
            )
            node: Any = ANY
            if transactional_id is not None:
                node = await self._find(TRANSACTION, transactional_id)
            connection = await self._client.connection(node)
            version = connection.version_of(InitProducerIdRequest)
            if version >= 3 and current is not NOBODY and transactional_id is not None:
                request.producer_id, request.producer_epoch = current
            response: InitProducerIdResponse = await connection.send(request, version=version)
            self._check(response.error_code, "InitProducerId")
            return Identity(response.producer_id, response.producer_epoch)

        identity: Identity = await self._repeat(attempt, "the producer id", timeout_ms)
        return identity

    async def add_partitions(
        self, identity: Identity, partitions: Iterable[TopicPartition], *, timeout_ms: float
    ) -> None:
        """Make partitions part of the transaction."""
        by_topic: dict[str, list[int]] = {}
        for partition in partitions:
            by_topic.setdefault(partition.topic, []).append(partition.partition)
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._transactional_id or "",
            v3_and_below_producer_id=identity.producer_id,
            v3_and_below_producer_epoch=identity.epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name=name, partitions=numbers)
                for name, numbers in by_topic.items()
            ],
        )

        async def attempt() -> None:
            response: AddPartitionsToTxnResponse = await self._ask(request, at_most=3)
            codes = {
                TopicPartition(topic.name, result.partition_index): result.partition_error_code
                for topic in response.results_by_topic_v3_and_below
                for result in topic.results_by_partition
            }
            # The others of a request that failed in one partition say OPERATION_NOT_ATTEMPTED.
            for skipped in (True, False):
                for partition, code in codes.items():
                    if (code != ErrorCode.OPERATION_NOT_ATTEMPTED) == skipped:
                        self._check(code, f"AddPartitionsToTxn, {partition}")

        await self._repeat(attempt, "adding partitions to the transaction", timeout_ms)

    async def add_offsets(self, identity: Identity, group_id: str, *, timeout_ms: float) -> None:
        """Make the offsets of a group part of the transaction, before they are sent."""
        request = AddOffsetsToTxnRequest(
            transactional_id=self._transactional_id or "",
            producer_id=identity.producer_id,
            producer_epoch=identity.epoch,
            group_id=group_id,
        )

        async def attempt() -> None:
            # Asked for first, because a broker makes the topic of offsets when it is asked.
            await self._find(GROUP, group_id)
            response: AddOffsetsToTxnResponse = await self._ask(request, at_most=3)
            self._check(response.error_code, f"AddOffsetsToTxn, group {group_id!r}")

        await self._repeat(attempt, "adding offsets to the transaction", timeout_ms)

    async def commit_offsets(
        self,
        identity: Identity,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        group: ConsumerGroupMetadata,
        *,
        timeout_ms: float,
    ) -> None:
        """Send the group's coordinator offsets that take effect when the transaction commits."""
        group_id = group.group_id or ""

        async def attempt() -> None:
            node = await self._find(GROUP, group_id)
            connection = await self._client.connection(node)
            version = connection.version_of(TxnOffsetCommitRequest, at_most=4)
            request = _offsets_request(
                self._transactional_id or "", identity, offsets, group, version
            )
            response: TxnOffsetCommitResponse = await connection.send(request, version=version)
            for topic in response.topics:
                for partition in topic.partitions:
                    self._check(
                        partition.error_code,
                        f"TxnOffsetCommit, group {group_id!r}, "
                        f"{topic.name}-{partition.partition_index}",
                        GROUP,
                        group_id,
                    )

        await self._repeat(attempt, "committing offsets in the transaction", timeout_ms)

    async def end(self, identity: Identity, commit: bool, *, timeout_ms: float) -> None:
        """End the transaction."""
        request = EndTxnRequest(
            transactional_id=self._transactional_id or "",
            producer_id=identity.producer_id,
            producer_epoch=identity.epoch,
            committed=commit,
        )

        async def attempt() -> None:
            response: EndTxnResponse = await self._ask(request, at_most=4)
            self._check(response.error_code, "EndTxn")

        await self._repeat(attempt, "ending the transaction", timeout_ms)

    # Inside.

    async def _ask(self, request: Message, *, at_most: int) -> Any:
        node = await self._find(TRANSACTION, self._transactional_id or "")
        connection = await self._client.connection(node)
        version = connection.version_of(type(request), at_most=at_most)
        try:
            return await connection.send(request, version=version)
        except NetworkError:
            self._nodes.clear()
            raise

    async def _find(self, kind: int, key: str) -> int:
        node = self._nodes.get((kind, key))
        if node is not None:
            return node
        connection = await self._client.connection(ANY)
        version = connection.version_of(FindCoordinatorRequest, at_most=4)
        if version >= 4:
            request = FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
        else:
            request = FindCoordinatorRequest(key=key)
            if version >= 1:
                request.key_type = kind
        response = await connection.send(request, version=version)
        found = response.coordinators[0] if version >= 4 else response
        whose = f", group {key!r}" if kind == GROUP else ""
        self._check(found.error_code, f"FindCoordinator{whose}")
        if found.node_id not in self._client.cluster.brokers:
            await self._client.refresh()
        self._nodes[kind, key] = found.node_id
        return int(found.node_id)

    def _check(self, code: int, what: str, kind: int = TRANSACTION, key: str | None = None) -> None:
        if code == ErrorCode.NONE:
            return
        known = ErrorCode.of(code)
        asked = (kind, key if key is not None else self._transactional_id or "")
        node = self._nodes.get(asked)
        broker = f" on broker {node}" if node is not None else ""
        if known in _MOVED:
            self._nodes.pop(asked, None)
        raise request_error(code, f"{what}{self._name}{broker}: {known.meaning}")

    async def _repeat(
        self, attempt: Callable[[], Awaitable[Any]], what: str, timeout_ms: float
    ) -> Any:
        loop = asyncio.get_running_loop()
        begun_s = loop.time()
        deadline_s = begun_s + timeout_ms / 1000
        failures = 0
        last: BarnabasError | None = None
        while True:
            try:
                async with asyncio.timeout_at(deadline_s):
                    return await attempt()
            except TimeoutError:
                raise self._too_late(what, timeout_ms, last) from last
            except BarnabasError as failure:
                if not failure.retriable:
                    raise
                last = failure
                failures += 1
                busy = getattr(failure, "code", None) is ErrorCode.CONCURRENT_TRANSACTIONS
                pause_s = (_BUSY_MS if busy else self._backoff.delay_ms(failures)) / 1000
                if isinstance(failure, NetworkError):
                    self._nodes.clear()
                if loop.time() + pause_s > deadline_s:
                    raise self._too_late(what, timeout_ms, failure) from failure
            await asyncio.sleep(pause_s)

    def _too_late(
        self, what: str, timeout_ms: float, last: BarnabasError | None
    ) -> KafkaTimeoutError:
        why = f": {last}" if last is not None else ""
        return KafkaTimeoutError(f"{what}{self._name}: not completed within {timeout_ms:g} ms{why}")

    @property
    def _name(self) -> str:
        return f" of {self._transactional_id!r}" if self._transactional_id is not None else ""


def _offsets_request(
    transactional_id: str,
    identity: Identity,
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
    group: ConsumerGroupMetadata,
    version: int,
) -> TxnOffsetCommitRequest:
    by_topic: dict[str, list[TxnOffsetCommitRequestPartition]] = {}
    for partition, offset in offsets.items():
        by_topic.setdefault(partition.topic, []).append(
            TxnOffsetCommitRequestPartition(
                partition_index=partition.partition,
                committed_offset=offset.offset,
                committed_leader_epoch=offset.leader_epoch,
                committed_metadata=offset.metadata or "",
            )
        )
    request = TxnOffsetCommitRequest(
        transactional_id=transactional_id,
        group_id=group.group_id or "",
        producer_id=identity.producer_id,
        producer_epoch=identity.epoch,
        topics=[
            TxnOffsetCommitRequestTopic(name=name, partitions=entries)
            for name, entries in by_topic.items()
        ],
    )
    if version >= 3:  # before, the coordinator cannot tell an old member from the current one
        request.generation_id = group.generation_id
        request.member_id = group.member_id
        request.group_instance_id = group.group_instance_id
    return request

"""Offsets from partition leaders: by timestamp or end of log, and the ends of leader epochs.

Each call groups partitions by leader, asks the leaders concurrently, and repeats with new metadata
for those with a transient failure, until all have responded or time is up. Errors that no retry
resolves (authorization, say) are raised at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import NamedTuple, TypeVar

from barnabas.client.cluster_client import ClusterClient
from barnabas.client.retry import Backoff, Verdict, verdict
from barnabas.errors import KafkaTimeoutError, UnsupportedApiError
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError, RequestError
from barnabas.model.ids import TopicPartition
from barnabas.model.request_errors import request_error
from barnabas.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from barnabas.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

_CONSUMER = -1  # in place of a replica's id

Answer = TypeVar("Answer")


class FoundOffset(NamedTuple):
    """The result of a lookup by timestamp; -1 when no record is that recent."""

    offset: int
    timestamp: int
    leader_epoch: int


class EpochEnd(NamedTuple):
    """Where a leader epoch (or the last one before it) ends in the leader's log; -1: unknown."""

    leader_epoch: int
    offset: int


class Lookups:
    """Offset lookups at partition leaders, for one consumer."""

    def __init__(
        self, client: ClusterClient, *, committed: bool, backoff: Backoff, timeout_ms: float
    ) -> None:
        """`committed`: a log ends at the last stable offset."""
        self._client = client
        self._committed = committed
        self._backoff = backoff
        self._timeout_ms = timeout_ms

    async def list_offsets(
        self, timestamps: Mapping[TopicPartition, int], timeout_ms: float | None = None
    ) -> dict[TopicPartition, FoundOffset]:
        """Find the first offset at or after a timestamp (or reset.EARLIEST, LATEST)."""

        async def ask(
            leader: int, partitions: list[TopicPartition]
        ) -> dict[TopicPartition, FoundOffset | RequestError]:
            connection = await self._client.connection(leader)
            version = connection.version_of(ListOffsetsRequest, at_least=1)
            request = ListOffsetsRequest(
                replica_id=_CONSUMER,
                isolation_level=int(self._committed and version >= 2),
                topics=[
                    ListOffsetsTopic(
                        name=topic,
                        partitions=[
                            ListOffsetsPartition(
                                partition_index=each.partition,
                                current_leader_epoch=self._client.cluster.leader_epoch(each),
                                timestamp=timestamps[each],
                            )
                            for each in group
                        ],
                    )
                    for topic, group in _by_topic(partitions).items()
                ],
            )
            response: ListOffsetsResponse = await connection.send(request, version=version)
            return {
                TopicPartition(topic.name, each.partition_index): _refusal(
                    topic.name, each.partition_index, each.error_code, leader
                )
                or FoundOffset(each.offset, each.timestamp, each.leader_epoch)
                for topic in response.topics
                for each in topic.partitions
            }

        return await self._settle(timestamps, ask, timeout_ms)

    async def epoch_ends(
        self, epochs: Mapping[TopicPartition, int], timeout_ms: float | None = None
    ) -> dict[TopicPartition, EpochEnd | None]:
        """Find the ends of leader epochs; None for brokers that are too old (KIP-320)."""

        async def ask(
            leader: int, partitions: list[TopicPartition]
        ) -> dict[TopicPartition, EpochEnd | RequestError | None]:
            connection = await self._client.connection(leader)
            try:
                version = connection.version_of(OffsetForLeaderEpochRequest, at_least=3)
            except UnsupportedApiError:
                return dict.fromkeys(partitions)
            request = OffsetForLeaderEpochRequest(
                replica_id=_CONSUMER,
                topics=[
                    OffsetForLeaderTopic(
                        topic=topic,
                        partitions=[
                            OffsetForLeaderPartition(
                                partition=each.partition,
                                current_leader_epoch=self._client.cluster.leader_epoch(each),
                                leader_epoch=epochs[each],
                            )
                            for each in group
                        ],
                    )
                    for topic, group in _by_topic(partitions).items()
                ],
            )
            response: OffsetForLeaderEpochResponse = await connection.send(request, version=version)
            return {
                TopicPartition(topic.topic, each.partition): _refusal(
                    topic.topic, each.partition, each.error_code, leader
                )
                or EpochEnd(each.leader_epoch, each.end_offset)
                for topic in response.topics
                for each in topic.partitions
            }

        return await self._settle(epochs, ask, timeout_ms)

    async def _settle(
        self,
        asked: Iterable[TopicPartition],
        ask: Callable[
            [int, list[TopicPartition]], Awaitable[dict[TopicPartition, Answer | RequestError]]
        ],
        timeout_ms: float | None,
    ) -> dict[TopicPartition, Answer]:
        loop = asyncio.get_running_loop()
        timeout_ms = self._timeout_ms if timeout_ms is None else timeout_ms
        deadline_s = loop.time() + timeout_ms / 1000
        open_ones = list(asked)
        answers: dict[TopicPartition, Answer] = {}
        failures = 0
        failure: BarnabasError | None = None
        try:
            async with asyncio.timeout_at(deadline_s):
                while open_ones:
                    failure = await self._ask_leaders(open_ones, ask, answers) or failure
                    open_ones = [each for each in open_ones if each not in answers]
                    if not open_ones:
                        break
                    assert failure is not None
                    if verdict(failure) is Verdict.FAIL:
                        raise failure
                    failures += 1
                    await asyncio.sleep(self._backoff.delay_ms(failures) / 1000)
                    failure = await self._refresh(open_ones) or failure
        except TimeoutError:
            raise KafkaTimeoutError(
                f"{open_ones[0]}: no response within {timeout_ms:g} ms"
                + (f": {failure}" if failure is not None else "")
            ) from failure
        return answers

    async def _ask_leaders(
        self,
        partitions: list[TopicPartition],
        ask: Callable[
            [int, list[TopicPartition]], Awaitable[dict[TopicPartition, Answer | RequestError]]
        ],
        answers: dict[TopicPartition, Answer],
    ) -> BarnabasError | None:
        """Ask each leader once; add the results, and return a failure, if there was one."""
        led, leaderless = self._client.cluster.by_leader(partitions)
        failure: BarnabasError | None = None
        if leaderless:
            first = leaderless[0]
            code = self._client.cluster.error_of(first.topic)
            failure = request_error(
                code if code else ErrorCode.LEADER_NOT_AVAILABLE,
                f"{first}: {code.meaning}" if code else f"{first} has no leader",
            )
        asked = [ask(leader, group) for leader, group in led.items()]
        outcomes = await asyncio.gather(*asked, return_exceptions=True)
        for (leader, group), outcome in zip(led.items(), outcomes, strict=True):
            if isinstance(outcome, BarnabasError):
                failure = _worse(failure, outcome)
                continue
            if isinstance(outcome, BaseException):
                raise outcome
            for partition in group:
                answer = outcome.get(partition, _forgotten(partition, leader))
                if isinstance(answer, RequestError):
                    failure = _worse(failure, answer)
                else:
                    answers[partition] = answer
        return failure

    async def _refresh(self, partitions: list[TopicPartition]) -> BarnabasError | None:
        try:
            await self._client.refresh(dict.fromkeys(each.topic for each in partitions))
        except BarnabasError as failure:
            return failure
        return None


def _worse(one: BarnabasError | None, other: BarnabasError) -> BarnabasError:
    """Return the failure that decides: one that no retry resolves, else the first."""
    return other if one is None or verdict(other) is Verdict.FAIL else one


def _refusal(topic: str, partition: int, code: int, leader: int) -> RequestError | None:
    if not code:
        return None
    meaning = ErrorCode.of(code).meaning
    return request_error(code, f"{topic}-{partition} on broker {leader}: {meaning}")


def _forgotten(partition: TopicPartition, leader: int) -> RequestError:
    return request_error(
        ErrorCode.UNKNOWN_SERVER_ERROR,
        f"{partition}: missing in the response of broker {leader}",
    )


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[TopicPartition]]:
    grouped: dict[str, list[TopicPartition]] = {}
    for partition in partitions:
        grouped.setdefault(partition.topic, []).append(partition)
    return grouped

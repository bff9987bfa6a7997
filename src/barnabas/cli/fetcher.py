"""Fetches some partitions from their leaders, one long poll per leader at a time.

Positions move as records are given out. Passing failures (a leader moved, a broker restarts) are
retried with fresh metadata until nothing has been fetched for `patience_ms`. An offset outside of
the log is moved to the nearer end of it, and `moved` is notified.

It is not the package's consumer because that one retries forever, while a command ends with the
reason after `--timeout`; and because that one resets to a fixed end. `consume --group` uses it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import NamedTuple

from barnabas.admin.offsets import EARLIEST, LATEST, list_offsets
from barnabas.cli.fetched import visible_records
from barnabas.client.cluster_client import ClusterClient
from barnabas.client.retry import Backoff, Verdict, verdict
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError, RequestError
from barnabas.model.ids import ZERO_UUID, TopicPartition
from barnabas.records.batch import Record
from barnabas.records.compression import TooLargeError
from barnabas.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)

_MAX_WAIT_MS = 500
_FETCH_BYTES = 50 * 1024 * 1024
_PARTITION_BYTES = 4 * 1024 * 1024


class Delivery(NamedTuple):
    """Records of one partition, in order; empty when only the position moved."""

    partition: TopicPartition
    records: list[Record]


class Fetcher:
    """Reads one topic from the given positions; partitions that reach their `ends` are dropped."""

    def __init__(
        self,
        client: ClusterClient,
        positions: dict[TopicPartition, int],
        backoff: Backoff,
        *,
        ends: dict[TopicPartition, int] | None = None,
        committed: bool = False,
        patience_ms: float = 30_000,
        moved: Callable[[TopicPartition, int, int], None],
    ) -> None:
        self._client = client
        self._positions = dict(positions)
        self._backoff = backoff
        self._ends = ends
        self._committed = committed
        self._patience_ms = patience_ms
        self._moved = moved
        self._topics = list(dict.fromkeys(partition.topic for partition in positions))
        self._polls: dict[int, asyncio.Task[FetchResponse]] = {}
        self._failures = 0
        self._failing_since: float | None = None

    async def deliveries(self) -> AsyncGenerator[Delivery, None]:
        """Yield records until every partition has reached its end; without ends, for ever."""
        self._drop_finished()
        try:
            while self._positions:
                await self._start_polls()
                if self._polls:
                    await asyncio.wait(self._polls.values(), return_when=asyncio.FIRST_COMPLETED)
                for leader in [leader for leader, poll in self._polls.items() if poll.done()]:
                    async for delivery in self._finish_poll(self._polls.pop(leader)):
                        yield delivery
                self._drop_finished()
        finally:
            for poll in self._polls.values():
                poll.cancel()
            await asyncio.gather(*self._polls.values(), return_exceptions=True)

    async def _start_polls(self) -> None:
        """Begin a poll at every leader that has none under way."""
        led, leaderless = self._client.cluster.by_leader(self._positions)
        if leaderless:
            await self._endure(
                RequestError(ErrorCode.LEADER_NOT_AVAILABLE, f"{leaderless[0]} has no leader now")
            )
            led, _ = self._client.cluster.by_leader(self._positions)
        for leader, partitions in led.items():
            if leader not in self._polls:
                self._polls[leader] = asyncio.ensure_future(self._poll(leader, partitions))

    async def _poll(self, leader: int, partitions: list[TopicPartition]) -> FetchResponse:
        connection = await self._client.connection(leader)
        by_topic: dict[str, list[TopicPartition]] = {}
        for partition in partitions:
            by_topic.setdefault(partition.topic, []).append(partition)
        ids = {topic: self._client.cluster.topic_id(topic) for topic in by_topic}
        version = connection.version_of(
            FetchRequest,
            at_least=4,  # the first that may carry batches of magic 2
            at_most=12 if ZERO_UUID in ids.values() else None,  # from 13 on topics go by id
        )
        request = FetchRequest(
            max_wait_ms=_MAX_WAIT_MS,
            min_bytes=1,
            max_bytes=_FETCH_BYTES,
            isolation_level=int(self._committed),
            topics=[
                FetchTopic(
                    topic=topic,
                    topic_id=ids[topic],
                    partitions=[
                        FetchPartition(
                            partition=partition.partition,
                            fetch_offset=self._positions[partition],
                            partition_max_bytes=_PARTITION_BYTES,
                        )
                        for partition in group
                    ],
                )
                for topic, group in by_topic.items()
            ],
        )
        response: FetchResponse = await connection.send(request, version=version)
        return response

    async def _finish_poll(
        self, poll: asyncio.Task[FetchResponse]
    ) -> AsyncGenerator[Delivery, None]:
        try:
            response = poll.result()
            if response.error_code:
                raise RequestError(ErrorCode.of(response.error_code))
        except BarnabasError as failure:
            await self._endure(failure)
            return
        failure_met: RequestError | None = None
        names = {self._client.cluster.topic_id(topic): topic for topic in self._topics}
        for topic in response.responses:
            name = topic.topic or names.get(topic.topic_id)
            if name is None:  # it was made anew while the poll was under way
                failure_met = RequestError(ErrorCode.UNKNOWN_TOPIC_ID)
                continue
            for data in topic.partitions:
                partition = TopicPartition(name, data.partition_index)
                if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                    await self._move(partition)
                elif data.error_code:
                    code = ErrorCode.of(data.error_code)
                    failure_met = RequestError(code, f"{partition}: {code.meaning}")
                elif data.records:
                    yield self._deliver(partition, data)
        if failure_met is not None:
            await self._endure(failure_met)
        else:
            self._failures, self._failing_since = 0, None

    def _deliver(self, partition: TopicPartition, data: PartitionData) -> Delivery:
        assert data.records is not None
        aborted = [
            (transaction.producer_id, transaction.first_offset)
            for transaction in data.aborted_transactions or ()
        ]
        try:
            fetched = visible_records(memoryview(data.records), self._positions[partition], aborted)
        except TooLargeError as failure:
            raise TooLargeError(f"{partition}, {failure}") from failure
        self._positions[partition] = fetched.next_offset
        records = fetched.records
        if self._ends is not None:
            end = self._ends[partition]
            records = [record for record in records if record.offset < end]
        return Delivery(partition, records)

    def _drop_finished(self) -> None:
        if self._ends is not None:
            for partition, end in self._ends.items():
                if self._positions.get(partition, -1) >= end:
                    del self._positions[partition]

    async def _move(self, partition: TopicPartition) -> None:
        """Bring a position that is outside of the log to the nearer end of it."""
        earliest = await list_offsets(self._client, {partition: EARLIEST})
        latest = await list_offsets(self._client, {partition: LATEST}, committed=self._committed)
        wanted = self._positions[partition]
        nearer = min(max(wanted, earliest[partition].offset), latest[partition].offset)
        self._positions[partition] = nearer
        if nearer != wanted:
            self._moved(partition, wanted, nearer)

    async def _endure(self, failure: BarnabasError) -> None:
        """Wait and find the leaders again, or raise a failure that is final or lasts too long."""
        loop = asyncio.get_running_loop()
        if self._failing_since is None:
            self._failing_since = loop.time()
        while True:
            self._failures += 1
            pause_ms = self._backoff.delay_ms(self._failures)
            lasted_ms = (loop.time() - self._failing_since) * 1000
            if verdict(failure) is Verdict.FAIL or lasted_ms + pause_ms > self._patience_ms:
                raise failure
            await asyncio.sleep(pause_ms / 1000)
            try:
                await self._client.refresh(self._topics)
                return
            except BarnabasError as refresh_failure:
                failure = refresh_failure

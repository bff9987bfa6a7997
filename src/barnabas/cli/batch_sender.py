"""Groups records into batches and sends them to the leaders of one topic's partitions.

Small and honest rather than complete: one request in flight per partition, so that order holds
through retries; a batch is retried as long as its failure is a passing one, which without
idempotence may write it twice; a batch that is too large for the topic is halved. Records with a
key go to the partition that every Kafka client chooses; the others stay with one partition until
its batch is full or has left.

It is not the package's producer because a command promises other things: a line may be as large as
the topic takes it (no `max.request.size`, no `buffer.memory`), a failure that outlasts `--timeout`
is reported with the code of the last answer, and Ctrl-C drops what waits instead of delivering it.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from barnabas.client.cluster_client import ClusterClient
from barnabas.kernels import murmur2
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError, RequestError
from barnabas.model.ids import TopicPartition
from barnabas.records.builder import build_batch
from barnabas.records.compression import Codec
from barnabas.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

BATCH_BYTES = 256 * 1024
BUFFER_BYTES = 32 * 1024 * 1024
_RECORD_OVERHEAD_BYTES = 16

Headers = Sequence[tuple[str, bytes | None]]
Row = tuple[int, bytes | None, bytes | None, Headers]
"""Timestamp, key, value, headers."""


@dataclass(slots=True)
class Batch:
    """Records for one partition, each with the number of the line that it came from."""

    rows: list[Row] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    size_bytes: int = 0

    def add(self, row: Row, line: int, size_bytes: int) -> None:
        self.rows.append(row)
        self.lines.append(line)
        self.size_bytes += size_bytes

    def halves(self) -> tuple[Batch, Batch]:
        middle, half_bytes = len(self.rows) // 2, self.size_bytes // 2
        return (
            Batch(self.rows[:middle], self.lines[:middle], half_bytes),
            Batch(self.rows[middle:], self.lines[middle:], self.size_bytes - half_bytes),
        )


class RecordsRefused(RequestError):
    """A batch that the broker refused; `reasons` maps positions in it to what is wrong there."""

    def __init__(self, code: ErrorCode, message: str | None, reasons: dict[int, str]) -> None:
        super().__init__(code, message)
        self.reasons = reasons


class Outcomes(Protocol):
    """Hears what became of each batch."""

    def acknowledged(self, partition: int, batch: Batch, base_offset: int | None) -> None:
        """The broker has the batch; its offset is None with acks=0."""

    def failed(self, partition: int, batch: Batch, failure: BarnabasError) -> None:
        """The batch is given up."""


def partition_for_key(key: bytes, partition_count: int) -> int:
    """Return the partition that Kafka's clients choose for a key."""
    return (murmur2(key) & 0x7FFFFFFF) % partition_count


class BatchSender:
    """Sends the records that it is given; `room` holds back a source that is too fast."""

    def __init__(
        self,
        client: ClusterClient,
        topic: str,
        partition_count: int,
        outcomes: Outcomes,
        random: random.Random,
        *,
        codec: Codec = Codec.NONE,
        acks: int = -1,
        timeout_ms: float = 30_000,
    ) -> None:
        self._client = client
        self._topic = topic
        self._partition_count = partition_count
        self._outcomes = outcomes
        self._random = random
        self._codec = codec
        self._acks = acks
        self._timeout_ms = timeout_ms
        self._sticky = random.randrange(partition_count)
        self._queues: dict[int, deque[Batch]] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._buffered_bytes = 0

    def add(self, row: Row, line: int, partition: int | None = None) -> None:
        """Take one record, for a partition or for the one that its key calls for."""
        _, key, value, _ = row
        if partition is None:
            partition = (
                self._sticky if key is None else partition_for_key(key, self._partition_count)
            )
        size = _RECORD_OVERHEAD_BYTES + len(key or b"") + len(value or b"")
        queue = self._queues.setdefault(partition, deque())
        if not queue or queue[-1].size_bytes + size > BATCH_BYTES:
            queue.append(Batch())
            if partition == self._sticky and len(queue) > 1:
                self._sticky = self._random.randrange(self._partition_count)
        queue[-1].add(row, line, size)
        self._buffered_bytes += size
        if partition not in self._tasks:
            # The task starts at the caller's next await: what is added until then shares the batch.
            self._tasks[partition] = asyncio.ensure_future(self._drain(partition))

    async def room(self) -> None:
        """Let batches leave; wait while too much is buffered."""
        await asyncio.sleep(0)
        while self._buffered_bytes > BUFFER_BYTES:
            done, _ = await asyncio.wait(self._tasks.values(), return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()

    async def finish(self) -> None:
        """Wait until every record was acknowledged or given up."""
        while self._tasks:
            await asyncio.gather(*self._tasks.values())

    async def _drain(self, partition: int) -> None:
        """Send a partition's batches one after another until none is left."""
        queue = self._queues[partition]
        while queue:
            batch = queue.popleft()
            if partition == self._sticky:
                self._sticky = self._random.randrange(self._partition_count)
            await self._deliver(partition, batch)
            self._buffered_bytes -= batch.size_bytes
        # A task that dies of a bug stays listed, so that `room` and `finish` meet its exception.
        del self._tasks[partition]

    async def _deliver(self, partition: int, batch: Batch) -> None:
        try:
            base_offset = await self._client.retrying(
                lambda: self._send(partition, batch),
                topics=[self._topic],
                timeout_ms=self._timeout_ms,
            )
        except RequestError as failure:
            if failure.code is ErrorCode.MESSAGE_TOO_LARGE and len(batch.rows) > 1:
                for half in batch.halves():
                    await self._deliver(partition, half)
            else:
                self._outcomes.failed(partition, batch, failure)
        except BarnabasError as failure:
            self._outcomes.failed(partition, batch, failure)
        else:
            self._outcomes.acknowledged(partition, batch, base_offset)

    async def _send(self, partition: int, batch: Batch) -> int | None:
        """Send a batch once; return its base offset."""
        connection = await self._client.connection(TopicPartition(self._topic, partition))
        version = connection.version_of(
            ProduceRequest,
            # Batches of magic 2 need version 3, zstd needs 7; from 13 on topics go by id.
            at_least=7 if self._codec is Codec.ZSTD else 3,
            at_most=12,
        )
        request = ProduceRequest(
            acks=self._acks,
            timeout_ms=int(self._timeout_ms),
            topic_data=[
                TopicProduceData(
                    name=self._topic,
                    partition_data=[
                        PartitionProduceData(
                            index=partition, records=build_batch(batch.rows, self._codec)
                        )
                    ],
                )
            ],
        )
        if self._acks == 0:
            await connection.post(request, version=version)
            return None
        response: ProduceResponse = await connection.send(request, version=version)
        return _base_offset(response.responses[0].partition_responses[0])


def _base_offset(result: PartitionProduceResponse) -> int:
    if result.error_code == ErrorCode.NONE:
        return result.base_offset
    raise RecordsRefused(
        ErrorCode.of(result.error_code),
        result.error_message,
        {
            error.batch_index: error.batch_index_error_message or "refused"
            for error in result.record_errors
        },
    )

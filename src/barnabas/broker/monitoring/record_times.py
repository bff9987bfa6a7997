"""The times of records that were appended before anything was sampled, read from the log."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor

from barnabas.broker.loop import offload
from barnabas.kernels.batch_header import (
    APPEND_TIME_BIT,
    ATTRIBUTES_AT,
    BASE_TIMESTAMP_AT,
    BATCH_MAGIC,
    DELETE_HORIZON_BIT,
    HEADER_SIZE,
    MAGIC_AT,
    MAX_TIMESTAMP_AT,
    MESSAGE_MIN,
    MESSAGE_TIMESTAMP_AT,
)
from barnabas.log.partition_log import PartitionLog
from barnabas.model.errors import BarnabasError
from barnabas.model.ids import TopicPartition

logger = logging.getLogger("barnabas.metrics")

KNOWN_MAX = 10_000
_SPECIAL = APPEND_TIME_BIT | DELETE_HORIZON_BIT
"""With these the base timestamp is not that of a record's creation or append."""


class RecordTimes:
    """The time of the batch at an offset; it never changes, so it is read once."""

    def __init__(self, executor: Executor | None) -> None:
        self._executor = executor
        self._known: dict[tuple[TopicPartition, int], int] = {}

    def get(self, key: TopicPartition, offset: int) -> int | None:
        """Return the timestamp at an offset, None if it was not read or is not known."""
        timestamp = self._known.get((key, offset), -1)
        return timestamp if timestamp >= 0 else None

    async def read(self, key: TopicPartition, log: PartitionLog, offset: int) -> None:
        """Read the timestamp at an offset from a log, unless that was done before."""

        async def head() -> bytes:
            piece = log.read(max(offset, log.log_start_offset), HEADER_SIZE, at_least_one=False)
            try:
                return await offload(self._executor, piece.read)
            finally:
                piece.release()

        await self.learn(key, offset, head)

    async def learn(
        self, key: TopicPartition, offset: int, head: Callable[[], Awaitable[bytes]]
    ) -> None:
        """Get the timestamp at an offset from the first bytes there, unless it is known."""
        if (key, offset) in self._known:
            return
        if len(self._known) >= KNOWN_MAX:
            self._known.clear()
        self._known[key, offset] = -1  # also if it cannot be read
        try:
            self._known[key, offset] = timestamp_of(await head())
        except BarnabasError as failure:
            # A consumer that reads there gets the error.
            logger.debug("%s: time of offset %d not known: %s", key, offset, failure)


def timestamp_of(head: bytes) -> int:
    """Return the time of the batch or message that begins here; -1 if it has none."""
    if len(head) < MESSAGE_MIN:
        return -1
    magic = head[MAGIC_AT]
    if magic == 0:
        return -1
    if magic != BATCH_MAGIC:
        return _int64(head, MESSAGE_TIMESTAMP_AT)
    if len(head) < HEADER_SIZE:
        return -1
    attributes = int.from_bytes(head[ATTRIBUTES_AT : ATTRIBUTES_AT + 2], "big")
    return _int64(head, MAX_TIMESTAMP_AT if attributes & _SPECIAL else BASE_TIMESTAMP_AT)


def _int64(data: bytes, position: int) -> int:
    return int.from_bytes(data[position : position + 8], "big", signed=True)

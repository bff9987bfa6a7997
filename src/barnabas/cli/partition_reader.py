"""`barnabas consume` without a group: read partitions from positions, with the package's consumer.

A command promises other things than a consumer in a program, which retries forever and resets to
one end of the log: it ends with the reason once a failure has lasted for `--timeout`, and an offset
outside of the log is moved to the nearer end of it.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import NamedTuple

from barnabas.admin.offsets import list_offsets
from barnabas.cli.command_config import client_options
from barnabas.client.cluster_client import ClusterClient
from barnabas.config.clients.consumer import ConsumerOptions
from barnabas.config.clients.options import parse_client_options
from barnabas.consumer.core import ConsumerCore
from barnabas.consumer.partition_fetch_state import PartitionFetch
from barnabas.consumer.reset import ResetPolicy
from barnabas.consumer.subscription import Subscription
from barnabas.errors import LogTruncationError, OffsetOutOfRangeError
from barnabas.kernels import ConsumerRecord
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.ids import EARLIEST, LATEST, TopicPartition
from barnabas.model.isolation import IsolationLevel

WAIT_MS = 100.0
RECORDS_MAX = 10_000
"""How many records are printed at once."""

_MAX_WAIT_MS = 500
_PARTITION_BYTES = 4 * 1024 * 1024

Moved = Callable[[TopicPartition, int, int], None]
"""Is notified of a partition, the offset that it does not have and the one to go on from."""


class Delivery(NamedTuple):
    """Records of one partition, in order."""

    partition: TopicPartition
    records: list[ConsumerRecord]


def reader_options(arguments: argparse.Namespace) -> ConsumerOptions:
    """Return the options of the consumer that the arguments describe."""
    timeout_ms = max(1, int(arguments.timeout * 1000))
    options = {
        **client_options(arguments),
        "allow.auto.create.topics": False,
        # With sessions, an answer leaves out the partitions that have nothing new.
        "enable.incremental.fetch.sessions": False,
        "fetch.max.wait.ms": min(_MAX_WAIT_MS, timeout_ms // 2),
        "isolation.level": f"read_{arguments.isolation}",
        "max.partition.fetch.bytes": _PARTITION_BYTES,
        "request.timeout.ms": timeout_ms,
    }
    return parse_client_options(ConsumerOptions, options)


class PartitionReader:
    """Reads from the given positions; a partition that has reached its end is done."""

    def __init__(
        self,
        client: ClusterClient,
        options: ConsumerOptions,
        positions: dict[TopicPartition, int],
        *,
        ends: dict[TopicPartition, int] | None = None,
        moved: Moved,
    ) -> None:
        """Read forever without `ends`; `client` finds the ends of a log for `moved`."""
        self._client = client
        self._options = options
        self._moved = moved
        self._ends = ends or {}
        self._positions = positions
        self._left = [
            partition
            for partition, position in positions.items()
            if ends is None or position < ends[partition]
        ]
        self._failing_since_ms: dict[TopicPartition, float] = {}

    async def deliveries(self) -> AsyncGenerator[Delivery, None]:
        """Yield records until every partition has reached its end."""
        if not self._left:
            return
        async with self._started() as core:
            while self._left:
                for partition, records in (await self._collect(core)).items():
                    end = self._ends.get(partition)
                    if end is not None and records[-1].offset >= end:
                        records = [record for record in records if record.offset < end]
                    if records:
                        yield Delivery(partition, records)
                self._drop_finished(core)

    @asynccontextmanager
    async def _started(self) -> AsyncIterator[ConsumerCore]:
        subscription = Subscription(ResetPolicy.NONE)
        subscription.assign(self._left)
        for partition in self._left:
            subscription.seek(partition, self._positions[partition])
        loop = asyncio.get_running_loop()
        core = ConsumerCore(
            self._options,
            subscription,
            wake=lambda: None,
            wall_ms=lambda: loop.time() * 1000,
        )
        await core.start(self._options.request_timeout_ms)
        try:
            yield core
        finally:
            await core.close(commit=False)

    async def _collect(self, core: ConsumerCore) -> dict[TopicPartition, list[ConsumerRecord]]:
        """Return what has come; wait a little if that is nothing."""
        core.clear_wakes()
        if core.needs_group_poll(core.now_ms()):
            await core.poll_group(0.0)
        try:
            found = core.buffer.collect(RECORDS_MAX)
        except OffsetOutOfRangeError as failure:
            await self._move(core, failure.args[0])
            return {}
        except LogTruncationError as failure:
            await self._move(core, failure.divergent_offsets)
            return {}
        if found:
            self._failing_since_ms.clear()
        else:
            self._raise_lasting_failure(core)
            await core.wait(WAIT_MS)
        return found

    def _drop_finished(self, core: ConsumerCore) -> None:
        for partition in [each for each in self._left if each in self._ends]:
            position = core.subscription.state(partition).position
            if position is not None and position >= self._ends[partition]:
                core.pause([partition])
                self._left.remove(partition)

    async def _move(self, core: ConsumerCore, partitions: Iterable[TopicPartition]) -> None:
        """Bring positions that are outside of the log to the nearer end of it."""
        committed = self._options.isolation_level == IsolationLevel.READ_COMMITTED
        for partition in partitions:
            first = await list_offsets(self._client, {partition: EARLIEST})
            last = await list_offsets(self._client, {partition: LATEST}, committed=committed)
            wanted = core.subscription.state(partition).position
            assert wanted is not None
            nearer = min(max(wanted, first[partition].offset), last[partition].offset)
            core.seek(partition, nearer)
            if nearer != wanted:
                self._moved(partition, wanted, nearer)

    def _raise_lasting_failure(self, core: ConsumerCore) -> None:
        """Raise why a partition cannot be read, once that has lasted for the timeout."""
        now_ms, failing_since_ms = core.now_ms(), self._failing_since_ms
        for partition in self._left:
            fetch = core.fetcher.plan.fetches.get(partition)
            if fetch is None:
                continue
            if (fetch.state.fetched_ms or 0.0) > failing_since_ms.get(partition, now_ms):
                del failing_since_ms[partition]
            failure = _failure_of(fetch)
            if failure is not None:
                since_ms = failing_since_ms.setdefault(partition, now_ms)
                if now_ms - since_ms > self._options.request_timeout_ms:
                    raise failure


def _failure_of(fetch: PartitionFetch) -> Exception | None:
    if fetch.leaderless_since_ms is not None:
        return RequestError(ErrorCode.LEADER_NOT_AVAILABLE, f"{fetch.partition} has no leader now")
    return fetch.failure

"""Copies in other processes, in rounds: find the partitions that lag, run tasks, collect results.

Tasks copy all records and write all positions; the session only plans, so that a round that is
lost (with its process, its host or this session) costs nothing but time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from typing import Protocol

from barnabas.mirror.checkpoints import (
    divide_shards,
    read_checkpoints,
    shard_of,
    write_checkpoints,
    write_session,
)
from barnabas.mirror.copier import IDLE_MS, now_ms
from barnabas.mirror.engine import Copier, Engine, SessionContext
from barnabas.mirror.failures import TaskFailure
from barnabas.mirror.tasks import CopyResult, CopyTask, PartitionCopy
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError, RetriableError
from barnabas.model.ids import TopicPartition
from barnabas.model.request_errors import request_error

ROUND_MS = 5000.0
"""How long a task copies at most; new partitions and reports wait for its end."""

SHUTDOWN_MS = 3 * ROUND_MS
"""How long a mirror that is stopped waits for its tasks."""


class TaskRetriableError(RetriableError):
    """A task failed, and may succeed later."""


class TaskFailedError(BarnabasError):
    """A task failed, and would fail again."""


class TaskRunner(Protocol):
    """Runs tasks, each in a process of its own."""

    def capacity(self) -> int:
        """Return how many tasks can run at once."""

    async def run(self, tasks: Sequence[CopyTask]) -> list[CopyResult]:
        """Run tasks; raise a RetriableError if some of them were lost."""

    def cancel(self) -> None:
        """Cancel the tasks that are running, which then count as lost."""


def task_engine(runner: TaskRunner) -> Engine:
    """Return the engine that copies by the tasks of a runner."""

    async def start(context: SessionContext, stack: AsyncExitStack) -> Copier:
        return TaskRounds(context, runner)

    return Engine(start, shared=True)


class TaskRounds:
    """The copier of a session whose records are copied by tasks."""

    def __init__(self, context: SessionContext, runner: TaskRunner) -> None:
        self._context = context
        self._runner = runner
        self._topic_ids: dict[TopicPartition, str] = {}
        self._read: dict[TopicPartition, int] = {}
        self._lag: int | None = None

    async def assign(
        self, topic_ids: Mapping[TopicPartition, str], starts: Mapping[TopicPartition, int]
    ) -> None:
        """Replace the partitions to copy; `starts` has the first offsets of those that are new."""
        context, known = self._context, self._context.positions.known
        self._topic_ids = dict(topic_ids)
        self._read.update(starts)
        checkpoints = {each: known[each] for each in starts}
        await write_checkpoints(context.target, context.flow, checkpoints)

    async def step(self) -> bool:
        """Run a round if partitions lag; return whether any did."""
        ends = await self._context.source.end_offsets(self._topic_ids)
        backlog = {
            each: end - self._read[each] for each, end in ends.items() if end > self._read[each]
        }
        self._lag = sum(backlog.values())
        short = {each: self._read[each] for each, end in ends.items() if end < self._read[each]}
        if short:
            await self._context.source.check_not_truncated(short)
        if not backlog:
            await asyncio.sleep(IDLE_MS / 1000)
            return False
        await self._check_checkpoints(backlog)
        await self._round(self._tasks(backlog, ends))
        self._lag = sum(max(0, end - self._read[each]) for each, end in ends.items())
        return True

    async def position(self, partition: TopicPartition) -> int:
        """Return the offset up to which a partition was read."""
        return self._read[partition]

    def lag(self) -> int | None:
        """Return how many records are left to copy; None while that is unknown."""
        return self._lag

    async def _check_checkpoints(self, partitions: Mapping[TopicPartition, int]) -> None:
        """Check that this session owns the mirror; rewrite checkpoints that expired."""
        context = self._context
        found = await read_checkpoints(context.target, context.flow, partitions)
        if found.session is None:
            await write_session(context.flow, context.producer, context.number)
        elif found.session != context.number:
            raise request_error(
                ErrorCode.PRODUCER_FENCED,
                f"the mirror is owned by session {found.session}, not {context.number}",
            )
        known = context.positions.known
        expired = {each: known[each] for each in partitions if each not in found.positions}
        await write_checkpoints(context.target, context.flow, expired)

    def _tasks(
        self, backlog: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
    ) -> list[CopyTask]:
        options = self._context.options
        copies: dict[int, list[PartitionCopy]] = {}
        for each in backlog:
            copy = PartitionCopy(each, self._topic_ids[each], ends[each])
            copies.setdefault(shard_of(each), []).append(copy)
        return [
            CopyTask(
                options.source,
                options.target,
                self._context.flow,
                self._context.number,
                {shard: tuple(copies[shard]) for shard in shards},
                options.commit_interval_ms,
                min(ROUND_MS, options.refresh_interval_ms),
            )
            for shards in divide_shards(backlog, self._runner.capacity())
        ]

    async def _round(self, tasks: list[CopyTask]) -> None:
        running = asyncio.ensure_future(self._runner.run(tasks))
        try:
            results = await asyncio.shield(running)
        except asyncio.CancelledError:
            # Running tasks end on their own, soon and in order, and their results count;
            # a task that never started, for lack of a free slot, does not end.
            if not (await asyncio.wait({running}, timeout=SHUTDOWN_MS / 1000))[0]:
                self._runner.cancel()
            with suppress(BarnabasError):
                self._take(await running)
            raise
        self._take(results)
        failures = [failure for result in results for failure in result.failures]
        if failures:
            await self._raise(failures)

    def _take(self, results: Sequence[CopyResult]) -> None:
        context = self._context
        for result in results:
            for message in result.messages:
                context.notify(message)
            context.progress.committed(
                result.records, result.skipped, now_ms(), transactions=result.transactions
            )
            context.positions.learn(result.committed)
            self._read.update(result.read)

    async def _raise(self, failures: list[TaskFailure]) -> None:
        # A shard is fenced by a session that takes over the mirror, which the checkpoints show, and
        # by a broker that aborts a transaction after transaction.timeout.ms.
        if any(failure.fenced for failure in failures):
            await self._check_checkpoints({})
        for failure in failures:
            if not failure.retriable and not failure.fenced:
                raise TaskFailedError(failure.text)
        raise TaskRetriableError(failures[0].text)

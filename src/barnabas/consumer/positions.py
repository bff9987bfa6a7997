"""Find positions in the background: committed, by policy, and validated after elections.

Works on the network side: it reads the subscription, asks the brokers, and delivers the results as
events. Transient failures are retried; the partition waits meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from barnabas.client.retry import Backoff, Verdict, verdict
from barnabas.consumer.offsets import EpochEnd, FoundOffset, Lookups
from barnabas.consumer.partition_fetch_state import PartitionFetch
from barnabas.consumer.position_events import (
    LogTruncated,
    NoCommittedOffset,
    PartitionFailed,
    PositionEvent,
    PositionFound,
)
from barnabas.consumer.subscription import Assigned, Subscription
from barnabas.model.errors import BarnabasError
from barnabas.model.ids import LATEST, TopicPartition
from barnabas.structs import OffsetAndMetadata

Committed = Callable[[list[TopicPartition]], Awaitable[Mapping[TopicPartition, OffsetAndMetadata]]]
"""Fetches the committed offsets of partitions from the group."""


class Positions:
    """Finds and validates positions; `look` starts what is due and does not wait."""

    def __init__(
        self,
        subscription: Subscription,
        lookups: Lookups,
        *,
        deliver: Callable[[PositionEvent], None],
        schedule_fetch: Callable[[], None],
        backoff: Backoff,
        wall_ms: Callable[[], float],
    ) -> None:
        """`schedule_fetch` is called when fetching can continue; `wall_ms` is wall-clock time."""
        self._subscription = subscription
        self._lookups = lookups
        self._deliver = deliver
        self._schedule_fetch = schedule_fetch
        self._backoff = backoff
        self._wall_ms = wall_ms
        # By version of the state: positions in progress, or found and waiting in the buffer, and
        # those that were reported to the user as failed.
        self._resetting: dict[Assigned, int] = {}
        self._refused: dict[Assigned, int] = {}
        self._failures = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self.failure: BarnabasError | None = None

    def look(self) -> None:
        """Start to look up the requested positions that are not in progress yet."""
        self._resetting = _present(self._resetting)
        self._refused = _present(self._refused)
        due = [
            (state, state.version)
            for state in self._subscription.assigned.values()
            if state.reset is not None and self._resetting.get(state) != state.version
        ]
        if due:
            self._resetting |= due
            self._begin(self._reset(due))

    def check(self, fetches: list[PartitionFetch]) -> None:
        """Start to validate fetched offsets against the logs of new leaders."""
        for fetch in fetches:
            fetch.validating = True
        self._begin(self._validate([(fetch, fetch.version) for fetch in fetches]))

    async def close(self) -> None:
        """Cancel what is in progress."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _begin(self, work: object) -> None:
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(work)  # type: ignore[arg-type]
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _reset(self, due: list[tuple[Assigned, int]]) -> None:
        states = {state.partition: (state, version) for state, version in due}
        try:
            asked = {
                state.partition: state.reset.timestamp(self._wall_ms())
                for state, version in due
                if state.reset is not None and state.version == version
            }
            found = await self._list(asked)
        except BarnabasError as failure:
            await self._reset_failed(states, failure)
            for state, version in due:
                if self._resetting.get(state) == version:
                    del self._resetting[state]
        else:
            self.failure, self._failures = None, 0
            for partition, offset in found.items():
                state, version = states[partition]
                self._deliver(PositionFound(state, version, offset.offset, offset.leader_epoch))
        self._schedule_fetch()

    async def _list(self, asked: dict[TopicPartition, int]) -> dict[TopicPartition, FoundOffset]:
        found = await self._lookups.list_offsets(asked)
        # If no record is as recent as the policy asks for, reading starts at the end.
        young = {partition: LATEST for partition, each in found.items() if each.offset < 0}
        return found | await self._lookups.list_offsets(young)

    async def _reset_failed(
        self, states: dict[TopicPartition, tuple[Assigned, int]], failure: BarnabasError
    ) -> None:
        self.failure = failure
        if verdict(failure) is Verdict.FAIL:
            for state, version in states.values():
                if self._refused.get(state) != version:
                    self._refused[state] = version
                    self._deliver(PartitionFailed(state, version, failure))
        # The lookup is retried all the same: the cause may be fixed meanwhile.
        self._failures += 1
        await asyncio.sleep(self._backoff.delay_ms(self._failures) / 1000)

    async def _validate(self, due: list[tuple[PartitionFetch, int]]) -> None:
        fetches = {fetch.partition: (fetch, version) for fetch, version in due}
        try:
            ends = await self._lookups.epoch_ends(
                {fetch.partition: fetch.epoch for fetch, version in due if fetch.version == version}
            )
        except BarnabasError as failure:
            for fetch, version in fetches.values():
                if fetch.version == version:
                    fetch.failure = failure
                    if verdict(failure) is Verdict.FAIL:
                        fetch.halted = True
                        self._deliver(PartitionFailed(fetch.state, version, failure))
        else:
            for partition, end in ends.items():
                fetch, version = fetches[partition]
                if fetch.version == version:
                    self._judge(fetch, end)
        finally:
            for fetch, version in due:
                if fetch.version == version:
                    fetch.validating = False
            self._schedule_fetch()

    def _judge(self, fetch: PartitionFetch, end: EpochEnd | None) -> None:
        """Compare what was read with the leader's log."""
        assert fetch.offset is not None
        if end is not None and (end.offset < fetch.offset or end.leader_epoch < 0):
            fetch.halted = True
            known = end.offset >= 0 and end.leader_epoch >= 0
            offset = end.offset if known else None
            self._deliver(LogTruncated(fetch.state, fetch.version, offset, end.leader_epoch))
        else:
            fetch.validated()


class CommittedPositions:
    """Finds the start of newly assigned partitions: committed offsets, else by policy."""

    def __init__(
        self,
        subscription: Subscription,
        committed: Committed | None,
        *,
        deliver: Callable[[PositionEvent], None],
        ended: Callable[[BarnabasError | None], None],
    ) -> None:
        """`committed` asks the group, None without one; `ended` gets the failure of each search."""
        self._subscription = subscription
        self._committed = committed
        self._deliver = deliver
        self._ended = ended
        self._search: asyncio.Task[None] | None = None

    def search(self) -> asyncio.Task[None] | None:
        """Start to look up missing positions; return the search in progress, if any."""
        missing = self._subscription.missing_positions()
        if not missing or self._search is not None:
            return self._search
        if self._committed is None:
            for partition in missing:
                self._subscription.request_reset(partition)
            return None
        self._search = asyncio.get_running_loop().create_task(self._find(self._committed, missing))
        self._search.add_done_callback(self._end)
        return self._search

    async def close(self) -> None:
        """Cancel the search in progress."""
        if self._search is not None:
            self._search.cancel()
            await asyncio.gather(self._search, return_exceptions=True)

    async def _find(self, ask: Committed, partitions: list[TopicPartition]) -> None:
        states = [self._subscription.state(partition) for partition in partitions]
        versions = [state.version for state in states]
        committed = await ask(partitions)
        for state, version in zip(states, versions, strict=True):
            found = committed.get(state.partition)
            if found is None or found.offset < 0:
                self._deliver(NoCommittedOffset(state, version))
            else:
                state.committed = found
                self._deliver(PositionFound(state, version, found.offset, found.leader_epoch))

    def _end(self, task: asyncio.Task[None]) -> None:
        self._search = None
        failure = None if task.cancelled() else task.exception()
        if failure is not None and not isinstance(failure, BarnabasError):
            raise failure
        self._ended(failure)


def _present(versions: dict[Assigned, int]) -> dict[Assigned, int]:
    """Return the partitions that are still assigned and whose position has not moved since."""
    return {
        state: version
        for state, version in versions.items()
        if state.owned and state.version == version
    }

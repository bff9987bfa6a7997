"""Fetched records that the user has not taken yet: bytes, decoded as they are taken.

The network side only puts items into the inbox (`deliver`); everything else belongs to the user's
side, which may be another thread. Fetches are taken in the order in which they were completed;
those of paused partitions wait.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container
from typing import Any, NamedTuple

from barnabas.consumer.partition_fetch_state import PartitionFetch
from barnabas.consumer.position_events import (
    LogTruncated,
    NoCommittedOffset,
    PositionEvent,
    PositionFound,
)
from barnabas.consumer.subscription import Assigned, Subscription
from barnabas.errors import RecordTooLargeError
from barnabas.kernels import ColumnStore, ConsumerRecord, RecordCursor
from barnabas.model.ids import TopicPartition
from barnabas.records.compression import TooLargeError


class Leftover:
    """Decoded records that were put back: read like the bytes that they were."""

    __slots__ = ("_end", "_records", "leader_epoch", "position")

    progressed = True
    unpacking = False

    def __init__(self, records: list[ConsumerRecord], position: int, leader_epoch: int) -> None:
        """`position` and `leader_epoch` are those after the last record."""
        self._records = records
        self._end = position, leader_epoch
        self.position = records[0].offset
        self.leader_epoch = leader_epoch

    @property
    def exhausted(self) -> bool:
        return not self._records

    def take(self, count: int) -> list[ConsumerRecord]:
        """Return the next records."""
        taken, self._records = self._records[:count], self._records[count:]
        self.position, self.leader_epoch = self._end
        if self._records:
            self.position = self._records[0].offset
            self.leader_epoch = taken[-1].leader_epoch
        return taken


class CompletedFetch(NamedTuple):
    """One partition's part of one Fetch response; `fetch` counts the bytes read ahead."""

    fetch: PartitionFetch
    state: Assigned
    version: int
    cursor: RecordCursor | Leftover
    size: int


class Run(NamedTuple):
    """Records of one partition, and the user's position once they are all taken."""

    fetch: PartitionFetch
    state: Assigned
    version: int
    records: list[ConsumerRecord]
    position: int
    leader_epoch: int
    is_leftover: bool
    """Whether they were taken before, and put back."""
    is_part: bool
    """Whether they belong to a large batch that is decompressed piecewise to bound memory."""

    def finish(self) -> None:
        """Advance the user past these records."""
        self.state.position = self.position
        self.state.leader_epoch = self.leader_epoch


class FetchBuffer:
    """The completed fetches and position events of one consumer."""

    def __init__(
        self, subscription: Subscription, *, ahead_max: int, schedule_fetch: Callable[[], object]
    ) -> None:
        """Create an empty buffer; `schedule_fetch` makes the network side look for work."""
        self._subscription = subscription
        self._ahead_max = ahead_max
        self._schedule_fetch = schedule_fetch
        self._inbox: deque[CompletedFetch | PositionEvent] = deque()
        self._ready: deque[CompletedFetch | PositionEvent] = deque()
        self.released = 0  # bytes that the user's side has consumed
        self.records = 0

    def deliver(self, item: CompletedFetch | PositionEvent) -> None:
        """Add an item; the only method for the network side."""
        self._inbox.append(item)

    @property
    def is_empty(self) -> bool:
        return not self._ready and not self._inbox

    def apply_positions(self) -> None:
        """Empty the inbox: found positions take effect immediately, the rest is queued."""
        while self._inbox:
            item = self._inbox.popleft()
            if isinstance(item, (PositionFound, NoCommittedOffset)):
                if item.version == item.state.version:
                    try:
                        item.apply(self._subscription)
                    except Exception:
                        self._inbox.appendleft(item)
                        raise
                    self._schedule_fetch()
            elif isinstance(item, LogTruncated):
                self._ready.appendleft(item)
            else:
                self._ready.append(item)

    def collect(
        self, count: int, only: Container[TopicPartition] | None = None
    ) -> dict[TopicPartition, list[ConsumerRecord]]:
        """Take at most `count` buffered records, and advance the user past them.

        Raises errors meant for the user, but only when there are no records to return.
        """
        interceptors = self._subscription.interceptors
        found: dict[TopicPartition, list[ConsumerRecord]] = {}
        seen: dict[TopicPartition, list[ConsumerRecord]] = {}  # by interceptors, before
        while count > 0:
            try:
                run = self._take(count, only)
            except Exception:
                if found or seen:
                    break  # it stays in the buffer, and is raised next time
                raise
            if run is None:
                break
            run.finish()
            count -= len(run.records)
            partition = run.state.partition
            into = seen if interceptors and run.is_leftover else found
            known = into.get(partition)
            if known is None:
                into[partition] = run.records
            else:
                known += run.records
            if run.is_part:
                break
        if found and interceptors:
            found = interceptors.on_consume(found)
        for partition, records in seen.items():
            found[partition] = records + found.get(partition, [])
        return found

    def take(self, count: int, only: Container[TopicPartition] | None = None) -> Run | None:
        """Return the next records of one partition, at most `count`; None if there are none.

        The caller advances the user's position (`Run.finish`). Raises errors meant for the user.
        """
        interceptors = self._subscription.interceptors
        while (run := self._take(count, only)) is not None:
            if not interceptors or run.is_leftover:
                break
            partition = run.state.partition
            shown = interceptors.on_consume({partition: run.records}).get(partition)
            if shown:
                return run._replace(records=shown)
            run.finish()  # interceptors dropped all of them
        return run

    def _take(self, count: int, only: Container[TopicPartition] | None) -> Run | None:
        completed = self._next(only)
        while completed is not None:
            cursor = completed.cursor
            try:
                records = cursor.take(count)
            except TooLargeError as failure:
                raise _too_large(completed, failure) from failure
            finally:
                self._put_back(completed)
            if records:
                self.records += len(records)
                return Run(
                    completed.fetch,
                    completed.state,
                    completed.version,
                    records,
                    cursor.position,
                    cursor.leader_epoch,
                    isinstance(cursor, Leftover),
                    cursor.unpacking,
                )
            self._move(completed)
            completed = self._next(only)
        return None

    def give_back(self, run: Run, taken: int) -> None:
        """Put back the records of a run that the user did not get, from the given index on."""
        records = run.records[taken:]
        if records and run.version == run.state.version:
            left = Leftover(records, run.position, run.leader_epoch)
            self._ready.appendleft(CompletedFetch(run.fetch, run.state, run.version, left, 0))
            self.records -= len(records)

    def fill(
        self, store: ColumnStore, count: int, only: Container[TopicPartition] | None = None
    ) -> int:
        """Append at most `count` records to columns, and advance the user past them."""
        taken = 0
        while taken < count:
            try:
                completed = self._next(only)
                if completed is None:
                    break
                if isinstance(completed.cursor, Leftover):
                    # They were decoded already, so they are fetched again.
                    completed.state.seek(completed.cursor.position, completed.state.leader_epoch)
                    self._schedule_fetch()
                    continue
                try:
                    found = completed.cursor.fill(store, count - taken)
                except TooLargeError as failure:
                    raise _too_large(completed, failure) from failure
                finally:
                    self._put_back(completed)
            except Exception:
                # Records that are already in the columns are returned first; the failure is kept.
                if taken:
                    break
                raise
            if not found and not completed.cursor.exhausted:
                break  # the columns are full
            taken += found
            self._move(completed)
            if completed.cursor.unpacking:
                break
        self.records += taken
        return taken

    def clear(self) -> None:
        """Drop everything."""
        self._inbox.clear()
        self._ready.clear()

    def _next(self, only: Container[TopicPartition] | None) -> CompletedFetch | None:
        """Take the next completed fetch that the user may see; earlier events take effect."""
        self.apply_positions()
        aside: list[CompletedFetch | PositionEvent] = []
        try:
            while self._ready:
                item = self._ready.popleft()
                state = item.state
                if item.version != state.version:
                    self._drop(item)
                elif state.paused or (only is not None and state.partition not in only):
                    aside.append(item)
                elif isinstance(item, CompletedFetch):
                    return item
                else:
                    self._apply(item)
            return None
        finally:
            if aside:
                self._ready.extendleft(reversed(aside))

    def _apply(self, event: PositionEvent) -> None:
        try:
            event.apply(self._subscription)
        except Exception:
            self._ready.appendleft(event)
            raise
        self._schedule_fetch()

    def _drop(self, item: Any) -> None:
        if isinstance(item, CompletedFetch):
            self._release(item)

    def _put_back(self, completed: CompletedFetch) -> None:
        """Keep the rest of a completed fetch for the next call, even if it cannot be read."""
        if completed.cursor.exhausted and completed.cursor.progressed:
            self._release(completed)
            return
        self._ready.appendleft(completed)
        if completed.cursor.exhausted:
            raise RecordTooLargeError(
                f"{completed.state.partition}: the record at offset {completed.cursor.position} is "
                f"larger than what was fetched ({completed.size} bytes); raise "
                "max.partition.fetch.bytes"
            )

    def _move(self, completed: CompletedFetch) -> None:
        completed.state.position = completed.cursor.position
        if completed.cursor.leader_epoch >= 0:
            completed.state.leader_epoch = completed.cursor.leader_epoch

    def _release(self, completed: CompletedFetch) -> None:
        """Release the bytes of a completed fetch."""
        fetch = completed.fetch
        was_full = fetch.ahead >= self._ahead_max
        fetch.released += completed.size
        self.released += completed.size
        if was_full:
            self._schedule_fetch()


def _too_large(completed: CompletedFetch, failure: TooLargeError) -> RecordTooLargeError:
    """Return the error for a record that is too large to be decompressed."""
    return RecordTooLargeError(
        f"{completed.state.partition}, offset {completed.cursor.position}: {failure}"
    )

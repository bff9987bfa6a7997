"""What was fetched and not yet taken by the user: chunks of bytes, decoded as they are taken.

The network side only puts items into the inbox (`deliver`); everything else belongs to the user's
side, which may be another thread. Chunks are taken in the order in which they came; those of paused
partitions wait.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container
from typing import Any, NamedTuple

from barnabas.consumer.flow import Flow
from barnabas.consumer.news import Found, Missing, News, Truncated
from barnabas.consumer.subscription import Assigned, Subscription
from barnabas.errors import RecordTooLargeError
from barnabas.kernels import ColumnStore, ConsumerRecord, RecordCursor
from barnabas.model.ids import TopicPartition
from barnabas.records.compression import TooLargeError


class Leftover:
    """Records that were decoded and given back: read like the bytes that they were."""

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


class Chunk(NamedTuple):
    """One partition's part of one Fetch answer."""

    flow: Flow
    state: Assigned
    version: int
    cursor: RecordCursor | Leftover
    size: int


class Run(NamedTuple):
    """Records of one partition, and where the user is once they are all taken."""

    flow: Flow
    state: Assigned
    version: int
    records: list[ConsumerRecord]
    position: int
    leader_epoch: int
    is_leftover: bool
    """Whether they were taken before, and given back."""
    is_part: bool
    """Whether they are of a large batch that is unpacked bit by bit: more would take memory."""

    def finish(self) -> None:
        """Move the user past these records."""
        self.state.position = self.position
        self.state.leader_epoch = self.leader_epoch


class Shelf:
    """Chunks and news of one consumer."""

    def __init__(
        self, subscription: Subscription, *, ahead_max: int, stir: Callable[[], object]
    ) -> None:
        """Make an empty shelf; `stir` tells the network side that there is something to do."""
        self._subscription = subscription
        self._ahead_max = ahead_max
        self._stir = stir
        self._inbox: deque[Chunk | News] = deque()
        self._ready: deque[Chunk | News] = deque()
        self.released = 0  # bytes that the user's side is done with
        self.records = 0

    def deliver(self, item: Chunk | News) -> None:
        """Put something in; the only method for the network side."""
        self._inbox.append(item)

    @property
    def is_empty(self) -> bool:
        return not self._ready and not self._inbox

    def settle(self) -> None:
        """Look through the inbox: positions that were found take effect at once."""
        while self._inbox:
            item = self._inbox.popleft()
            if isinstance(item, (Found, Missing)):
                if item.version == item.state.version:
                    try:
                        item.settle(self._subscription)
                    except Exception:
                        self._inbox.appendleft(item)
                        raise
                    self._stir()
            elif isinstance(item, Truncated):
                self._ready.appendleft(item)
            else:
                self._ready.append(item)

    def take(self, count: int, only: Container[TopicPartition] | None = None) -> Run | None:
        """Return the next records of one partition, at most `count`; None if there are none.

        The user's position is left to the caller (`Run.finish`). Raises what the user must know.
        """
        chunk = self._next(only)
        while chunk is not None:
            cursor = chunk.cursor
            try:
                records = cursor.take(count)
            except TooLargeError as failure:
                raise _too_large(chunk, failure) from failure
            finally:
                self._put_back(chunk)
            if records:
                self.records += len(records)
                return Run(
                    chunk.flow,
                    chunk.state,
                    chunk.version,
                    records,
                    cursor.position,
                    cursor.leader_epoch,
                    isinstance(cursor, Leftover),
                    cursor.unpacking,
                )
            self._move(chunk)
            chunk = self._next(only)
        return None

    def give_back(self, run: Run, taken: int) -> None:
        """Put the records of a run back, but for the first few."""
        records = run.records[taken:]
        if records and run.version == run.state.version:
            left = Leftover(records, run.position, run.leader_epoch)
            self._ready.appendleft(Chunk(run.flow, run.state, run.version, left, 0))
            self.records -= len(records)

    def fill(
        self, store: ColumnStore, count: int, only: Container[TopicPartition] | None = None
    ) -> int:
        """Append records to columns, at most `count`, and move the user past them."""
        taken = 0
        while taken < count:
            try:
                chunk = self._next(only)
                if chunk is None:
                    break
                if isinstance(chunk.cursor, Leftover):
                    # Records are no bytes any more: they are fetched again.
                    chunk.state.seek(chunk.cursor.position, chunk.state.leader_epoch)
                    self._stir()
                    continue
                try:
                    found = chunk.cursor.fill(store, count - taken)
                except TooLargeError as failure:
                    raise _too_large(chunk, failure) from failure
                finally:
                    self._put_back(chunk)
            except Exception:
                # What is already in the columns is given first; the failure stays where it is.
                if taken:
                    break
                raise
            if not found and not chunk.cursor.exhausted:
                break  # the columns are full
            taken += found
            self._move(chunk)
            if chunk.cursor.unpacking:
                break
        self.records += taken
        return taken

    def clear(self) -> None:
        """Forget everything."""
        self._inbox.clear()
        self._ready.clear()

    def _next(self, only: Container[TopicPartition] | None) -> Chunk | None:
        """Take the next chunk out that the user may see, acting on news before it."""
        self.settle()
        aside: list[Chunk | News] = []
        try:
            while self._ready:
                item = self._ready.popleft()
                state = item.state
                if item.version != state.version:
                    self._drop(item)
                elif state.paused or (only is not None and state.partition not in only):
                    aside.append(item)
                elif isinstance(item, Chunk):
                    return item
                else:
                    self._act(item)
            return None
        finally:
            if aside:
                self._ready.extendleft(reversed(aside))

    def _act(self, news: News) -> None:
        try:
            news.settle(self._subscription)
        except Exception:
            self._ready.appendleft(news)
            raise
        self._stir()

    def _drop(self, item: Any) -> None:
        if isinstance(item, Chunk):
            self._release(item)

    def _put_back(self, chunk: Chunk) -> None:
        """Keep what is left of a chunk for the next time, also if it is no good."""
        if chunk.cursor.exhausted and chunk.cursor.progressed:
            self._release(chunk)
            return
        self._ready.appendleft(chunk)
        if chunk.cursor.exhausted:
            raise RecordTooLargeError(
                f"{chunk.state.partition}: the record at offset {chunk.cursor.position} is larger "
                f"than what was fetched ({chunk.size} bytes); raise max.partition.fetch.bytes"
            )

    def _move(self, chunk: Chunk) -> None:
        chunk.state.position = chunk.cursor.position
        if chunk.cursor.leader_epoch >= 0:
            chunk.state.leader_epoch = chunk.cursor.leader_epoch

    def _release(self, chunk: Chunk) -> None:
        """Say that the bytes of a chunk are no longer held."""
        flow = chunk.flow
        was_full = flow.ahead >= self._ahead_max
        flow.released += chunk.size
        self.released += chunk.size
        if was_full:
            self._stir()


def _too_large(chunk: Chunk, failure: TooLargeError) -> RecordTooLargeError:
    """Say where a record is that is not to be unpacked."""
    return RecordTooLargeError(
        f"{chunk.state.partition}, offset {chunk.cursor.position}: {failure}"
    )

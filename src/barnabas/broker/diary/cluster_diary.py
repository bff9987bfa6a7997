"""The diary of all brokers: this one's ring, and what the others wrote to the diary's topic.

It is read on demand, from where the last reading ended, and kept within the size of a ring.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator
from itertools import islice

from barnabas.diary.entry import Entry
from barnabas.diary.ring import ENTRIES_MAX, Ring
from barnabas.model.errors import BarnabasError, InvalidValueError
from barnabas.records.batch import iterate

APART_S = 1.0
"""Readings that are closer together are one."""
READ_S_MAX = 2.0
"""How long a reading may take; the next one goes on from there."""

Wanted = Callable[[Entry], bool]


class ClusterDiary:
    """Entries of this broker and of others, the newest of them."""

    def __init__(
        self,
        ring: Ring,
        own: str | None,
        ends: Callable[[], Awaitable[tuple[int, int]]],
        read: Callable[[int], Awaitable[bytes]],
        clock_s: Callable[[], float],
        size: int = ENTRIES_MAX,
    ) -> None:
        """`own` begins the keys of this broker's records; without it no topic is kept.

        `ends` returns where the topic's log starts and ends, and `read` what it has from an offset
        on: some batches.
        """
        self.failure = ""
        """Why entries of other brokers may be missing; empty if none are."""
        self._ring = ring
        self._own = None if own is None else own.encode()
        self._ends = ends
        self._read = read
        self._clock_s = clock_s
        self._size = size
        self._others: OrderedDict[bytes, Entry] = OrderedDict()
        """By the keys of their records, in the order in which they were written last."""
        self._offset = 0
        self._read_s = -APART_S
        self._reading = asyncio.Lock()

    async def refresh(self) -> None:
        """Read what was written since the last time; what fails is in `failure`."""
        if self._own is None:
            return
        async with self._reading:
            if self._clock_s() - self._read_s < APART_S:
                return
            try:
                async with asyncio.timeout(READ_S_MAX):
                    await self._go_on()
                self.failure = ""
            except BarnabasError as failure:
                self.failure = str(failure)
            except TimeoutError:
                self.failure = "not all of the diary was read yet"
            self._read_s = self._clock_s()

    async def _go_on(self) -> None:
        start, end = await self._ends()
        if end < self._offset:  # the topic was created again
            self._others.clear()
            self._offset = 0
        self._offset = max(self._offset, start, end - self._size)
        while self._offset < end:
            batches = await self._read(self._offset)
            before = self._offset
            for record in iterate(batches):
                if record.offset >= self._offset:
                    self._offset = record.offset + 1
                    self._take(bytes(record.key or b""), bytes(record.value or b""))
            if self._offset == before:
                return
            await asyncio.sleep(0)

    def _take(self, key: bytes, value: bytes) -> None:
        assert self._own is not None
        if key.startswith(self._own):
            return  # it is in the ring
        try:
            entry = Entry.decode(value)
        except InvalidValueError:
            return  # not written by a broker
        self._others.pop(key, None)
        self._others[key] = entry
        if len(self._others) > self._size:
            self._others.popitem(last=False)

    def entries(self, limit: int, wanted: Wanted = lambda entry: True) -> list[Entry]:
        """Return the newest entries that are wanted, the newest first."""
        both: Iterator[Entry] = heapq.merge(
            (each for each in reversed(self._others.values()) if wanted(each)),
            (each for each in reversed(list(self._ring)) if wanted(each)),
            key=lambda each: -_time_of(each),
        )
        return list(islice(both, limit))


def _time_of(entry: Entry) -> int:
    return entry.last_ms or entry.at_ms

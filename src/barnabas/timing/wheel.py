"""A hierarchical timing wheel: many deadlines, most of them cancelled, at a small constant cost.

Adding and cancelling a timer are O(1). A wheel of `wheel_size` buckets covers that many ticks; a
deadline beyond it waits in the next, coarser wheel, whose tick is the whole span of the wheel
below, and moves down when its bucket comes due:

    level 0   | 0 | 1 | 2 | … | 19 |          one bucket = 1 tick
    level 1   | 0-19 | 20-39 | … | 380-399 |  one bucket = 20 ticks
    level 2   …                               created when a deadline first needs it

It guarantees that every timer fires once unless cancelled, never before its deadline, less than a
tick after it (if `advance` is called in time), and that `advance` returns what is due in tick
order. It owns no clock: the caller passes the time. Invariant: a bucket with timers is in the
queue, once, with the tick at which it comes due; an emptied bucket may stay there until that tick.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any


class _Bucket(dict["Timer", None]):
    """The timers of one slot, in order of arrival, and the tick for which the slot is queued."""

    __slots__ = ("due_tick",)

    def __init__(self) -> None:
        super().__init__()
        self.due_tick = -1


class Timer:
    """One deadline on the wheel; call `cancel()` when it is no longer needed."""

    __slots__ = ("_bucket", "_tick", "deadline_ms", "item")

    def __init__(self, deadline_ms: int, item: Any, tick: int) -> None:
        self.deadline_ms = deadline_ms
        self.item = item
        self._tick = tick
        self._bucket: _Bucket | None = None

    @property
    def pending(self) -> bool:
        """Whether the timer has neither fired nor been cancelled."""
        return self._bucket is not None

    def cancel(self) -> bool:
        """Remove the timer from the wheel; False if it has already fired or was cancelled."""
        bucket = self._bucket
        if bucket is None:
            return False
        self._bucket = None
        del bucket[self]
        return True

    def __repr__(self) -> str:
        state = "pending" if self.pending else "done"
        return f"<Timer {state} deadline_ms={self.deadline_ms} {self.item!r}>"


class _Level:
    """One ring of buckets; `unit` is how many ticks one bucket spans."""

    __slots__ = ("buckets", "unit")

    def __init__(self, unit: int, size: int) -> None:
        self.unit = unit
        self.buckets = [_Bucket() for _ in range(size)]


class TimingWheel:
    """Timers by deadline; `advance` returns the items of those that are due."""

    __slots__ = ("_levels", "_lowest", "_now_tick", "_overdue", "_queue", "tick_ms", "wheel_size")

    def __init__(self, tick_ms: int = 1, wheel_size: int = 512, start_ms: int = 0) -> None:
        """Start a wheel at `start_ms`.

        A timer is at most `tick_ms` late. More buckets in `wheel_size` mean fewer moves between
        levels.
        """
        assert tick_ms >= 1, tick_ms
        assert wheel_size >= 2, wheel_size
        self.tick_ms = tick_ms
        self.wheel_size = wheel_size
        self._now_tick = start_ms // tick_ms
        self._levels = [_Level(1, wheel_size)]
        self._lowest = self._levels[0].buckets
        self._overdue = _Bucket()
        # (due tick, -level, bucket): at one tick the coarser bucket first, so that what it passes
        # down is in place; the pair is unique, so buckets themselves are never compared.
        self._queue: list[tuple[int, int, _Bucket]] = []

    def __len__(self) -> int:
        """Return the number of pending timers (walks all buckets: for gauges and tests)."""
        rings = sum(len(bucket) for level in self._levels for bucket in level.buckets)
        return rings + len(self._overdue)

    def add(self, deadline_ms: int, item: Any) -> Timer:
        """Return a timer that yields `item` once `deadline_ms` is reached.

        A deadline in the past is due at the next `advance`.
        """
        # Rounded up: a timer may be late by a fraction of a tick, never early.
        tick = -(-deadline_ms // self.tick_ms)
        timer = Timer(deadline_ms, item, tick)
        self._place(timer)
        return timer

    def advance(self, now_ms: int) -> list[Any]:
        """Move the time to `now_ms` and return the items that are due, in tick order.

        An earlier time moves nothing back; it only collects timers that were overdue when added.
        """
        self._collect(now_ms)
        overdue = self._overdue
        due = [timer.item for timer in overdue]
        for timer in overdue:
            timer._bucket = None
        overdue.clear()
        return due

    def run(self, now_ms: int) -> int:
        """Advance and call the due items, which must be callable; return how many were called.

        An item cancelled by an earlier one is not called. If one raises, the rest stay due.
        """
        self._collect(now_ms)
        overdue = self._overdue
        called = 0
        for timer in tuple(overdue):
            if timer._bucket is overdue:
                timer.cancel()
                timer.item()
                called += 1
        return called

    def next_deadline_ms(self) -> int | None:
        """Return when `advance` next has something to do, or None if nothing is pending.

        For timers in a coarse bucket this is when they move down, which is before their deadline.
        """
        if self._overdue:
            return self._now_tick * self.tick_ms
        queue = self._queue
        while queue:
            tick, _, bucket = queue[0]
            if bucket:
                return tick * self.tick_ms
            heappop(queue)
            bucket.due_tick = -1
        return None

    def _coarse_bucket(self, tick: int) -> _Bucket:
        """Return the queued bucket of the finest level above the lowest that reaches `tick`."""
        size = self.wheel_size
        index = 1
        while True:
            if index == len(self._levels):
                self._levels.append(_Level(self._levels[-1].unit * size, size))
            level = self._levels[index]
            slot = tick // level.unit
            if slot - self._now_tick // level.unit < size:
                break
            index += 1
        bucket = level.buckets[slot % size]
        due_tick = slot * level.unit
        if bucket.due_tick != due_tick:
            bucket.due_tick = due_tick
            heappush(self._queue, (due_tick, -index, bucket))
        return bucket

    def _collect(self, now_ms: int) -> None:
        """Move the time, and what has come due to the overdue bucket, in tick order."""
        queue = self._queue
        now_tick = now_ms // self.tick_ms
        while queue and queue[0][0] <= now_tick:
            tick, level, bucket = heappop(queue)
            if not bucket:
                continue
            self._now_tick = tick  # step by step, so that a long jump keeps the order
            timers = tuple(bucket)
            bucket.clear()
            if level == 0:
                overdue = self._overdue
                for timer in timers:
                    overdue[timer] = None
                    timer._bucket = overdue
            else:
                for timer in timers:
                    self._place(timer)
        self._now_tick = max(self._now_tick, now_tick)

    def _place(self, timer: Timer) -> None:
        """Put a timer into the bucket for its tick, as of now."""
        tick = timer._tick
        distance = tick - self._now_tick
        if 0 < distance < self.wheel_size:
            bucket = self._lowest[tick % self.wheel_size]
            if bucket.due_tick != tick:
                bucket.due_tick = tick
                heappush(self._queue, (tick, 0, bucket))
        elif distance > 0:
            bucket = self._coarse_bucket(tick)
        else:
            bucket = self._overdue
        bucket[timer] = None
        timer._bucket = bucket

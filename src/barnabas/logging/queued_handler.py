"""A handler that never waits: lines are queued, and a thread writes them.

A pipe that nobody empties, or a disk that hangs, stops only that thread. What waits to be written
is bounded; as it fills up, lines at DEBUG are dropped first, then those at INFO, then all, and a
line says how many.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import NamedTuple, Protocol

from barnabas.logging.formats import event_of
from barnabas.logging.loggers import BROKER

WAITING_MAX = 4 * 1024 * 1024
"""Characters of the lines that wait to be written."""
DEBUG_SHARE, INFO_SHARE = 0.5, 0.75
"""How full the queue may be for a line at DEBUG, and at INFO."""
WRITTEN_AT_ONCE = 64 * 1024
DROPPED = "log.dropped"
FLUSH_S = 2.0
"""How long the end of the process waits for a reader that is slow, or gone."""


class Line(NamedTuple):
    """A line that is ready to be written."""

    logger: str
    event: str
    text: str


class Sink(Protocol):
    """Where lines are written; it may take as long as it likes."""

    def write(self, lines: Sequence[Line]) -> None:
        """Write lines, or raise OSError."""

    def close(self) -> None:
        """Release what is open."""


class QueuedHandler(logging.Handler):
    """Formats records where they come up, and leaves the writing to a thread."""

    def __init__(
        self, sink: Sink, formatter: logging.Formatter, waiting_max: int = WAITING_MAX
    ) -> None:
        super().__init__()
        self.setFormatter(formatter)
        self._sink = sink
        self._waiting_max = waiting_max
        self._queue: SimpleQueue[Line | Event | None] = SimpleQueue()
        # Each number is changed by one side alone: by `emit`, which holds the handler's lock, or by
        # the thread. So none needs a lock, and `flush` may be called with the handler's lock held.
        self._queued = 0
        self._written = 0
        self._dropped: dict[str, int] = {}
        """Lines that were dropped so far, by level."""
        self._reported: dict[str, int] = {}
        """Those of them that a line has said."""
        self._thread: Thread | None = None
        self._closed = False

    def emit(self, record: logging.LogRecord) -> None:
        """Queue a line, or drop it."""
        if self._closed:
            return
        try:
            text = self.format(record)
        except Exception as failure:  # noqa: BLE001 - a mistake in a log call stops nothing
            text = self.format(_unformatted(record, failure))
        if self._queued - self._written + len(text) > self._room(record.levelno):
            level = record.levelname
            self._dropped[level] = self._dropped.get(level, 0) + 1
            return
        self._queued += len(text)
        self._queue.put(Line(record.name, event_of(record), text))
        if self._thread is None:
            self._thread = Thread(target=self._run, name="log lines", daemon=True)
            self._thread.start()

    def _room(self, level: int) -> float:
        if level <= logging.DEBUG:
            return self._waiting_max * DEBUG_SHARE
        return self._waiting_max * INFO_SHARE if level <= logging.INFO else self._waiting_max

    def flush(self) -> None:
        """Wait until everything is written, but not forever."""
        thread = self._thread
        if thread is not None and not self._closed:
            written = Event()
            self._queue.put(written)
            written.wait(FLUSH_S)

    def close(self) -> None:
        """Write what waits, and end the thread; if the reader is gone, leave both behind."""
        if not self._closed:
            self._closed = True
            thread = self._thread
            if thread is None:
                self._sink.close()
            else:
                self._queue.put(None)
                thread.join(FLUSH_S)
        super().close()

    # in the thread

    def _run(self) -> None:
        ended = False
        while not ended:
            item = self._queue.get()
            lines: list[Line] = []
            size = 0
            flushed: list[Event] = []
            while True:
                if item is None:
                    ended = True
                elif isinstance(item, Event):
                    flushed.append(item)
                else:
                    lines.append(item)
                    size += len(item.text)
                if ended or size >= WRITTEN_AT_ONCE:
                    break
                try:
                    item = self._queue.get_nowait()
                except Empty:
                    break
            self._write(lines)
            self._written += size
            self._report_dropped()
            for each in flushed:
                each.set()
        self._sink.close()

    def _write(self, lines: list[Line]) -> None:
        if lines:
            # Closed, read by nobody, or the disk is full: there is nowhere to say so.
            with suppress(OSError, ValueError):
                self._sink.write(lines)

    def _report_dropped(self) -> None:
        counts = {
            level: count - self._reported.get(level, 0)
            for level, count in self._dropped.copy().items()
            if count > self._reported.get(level, 0)
        }
        if not counts:
            return
        for level, count in counts.items():
            self._reported[level] = self._reported.get(level, 0) + count
        shown = " ".join(f"{level}={count}" for level, count in counts.items())
        record = logging.LogRecord(
            BROKER,
            logging.WARNING,
            __file__,
            0,
            "log lines dropped, they are not read fast enough: %s",
            (shown,),
            None,
        )
        fields = {f"{level.lower()}_lines": count for level, count in counts.items()}
        vars(record).update(event=DROPPED, fields=fields)
        self._write([Line(record.name, DROPPED, self.format(record))])


def _unformatted(record: logging.LogRecord, failure: Exception) -> logging.LogRecord:
    """Return a record that can be written in place of one that cannot."""
    return logging.LogRecord(
        record.name,
        record.levelno,
        record.pathname,
        record.lineno,
        "%s (its arguments could not be written: %s)",
        (str(record.msg), failure),
        None,
    )

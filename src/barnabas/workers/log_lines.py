"""The log lines of a worker, copied to the supervisor's own standard error with the worker's id.

A thread copies, so that a reader of the supervisor's output who is slow holds up the workers'
threads that log, as without a supervisor, and never the supervisor's loop.
"""

from __future__ import annotations

import os
import select
import threading

READ_BYTES = 1 << 16
LINE_BYTES_MAX = 1 << 20


class LineMarker:
    """Puts a mark before each line of a stream of bytes."""

    def __init__(self, mark: bytes) -> None:
        self._mark = mark
        self._rest = b""

    def take(self, data: bytes) -> bytes:
        """Return the lines that are complete now, each with its mark."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > LINE_BYTES_MAX:
            lines.append(self._rest)
            self._rest = b""
        return b"".join(self._mark + line + b"\n" for line in lines)

    def end(self) -> bytes:
        """Return the last line, if it was not complete."""
        return self.take(b"\n") if self._rest else b""


class LineCopier:
    """Copies what is written to `descriptor` to another one, line by line."""

    def __init__(self, target: int, mark: bytes, turns: threading.Lock) -> None:
        """`turns` is shared by all that copy to `target`, so that lines stay whole."""
        self._marker = LineMarker(mark)
        self._turns = turns
        self._target = target
        self._source, self.descriptor = os.pipe()
        self._thread = threading.Thread(target=self._copy, name="barnabas-lines", daemon=True)

    def start(self) -> None:
        """Copy until all who can write have closed; the descriptor is closed here."""
        os.close(self.descriptor)
        self._thread.start()

    def join(self, timeout_s: float) -> None:
        """Wait until all is copied."""
        self._thread.join(timeout_s)

    def _copy(self) -> None:
        try:
            while data := os.read(self._source, READ_BYTES):
                self._write(self._marker.take(data))
            self._write(self._marker.end())
        except OSError:
            pass  # nobody reads our own output any longer
        finally:
            os.close(self._source)

    def _write(self, data: bytes) -> None:
        rest = memoryview(data)
        with self._turns:
            while rest:
                try:
                    rest = rest[os.write(self._target, rest) :]
                except BlockingIOError:  # another process has made the shared pipe non-blocking
                    select.select([], [self._target], [])

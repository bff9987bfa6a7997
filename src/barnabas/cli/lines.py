"""Lines from a file or standard input, as they become available, without a thread.

A pipe or terminal is read when the event loop reports it readable; a regular file always is. Each
step yields all complete lines that have arrived, so that a fast source results in large batches
and a typed line is sent at once.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import AsyncIterator

_CHUNK_BYTES = 1 << 20


async def read_lines(descriptor: int) -> AsyncIterator[list[bytes]]:
    """Yield lists of lines without their line ends; a last line without one counts."""
    rest: list[bytes] = []  # the pieces of an incomplete line
    always_ready = not _can_be_watched(descriptor)
    while True:
        if not always_ready:
            await _readable(descriptor)
        chunk = os.read(descriptor, _CHUNK_BYTES)
        if not chunk:
            break
        first, *others = chunk.split(b"\n")
        rest.append(first)
        if others:
            lines = [b"".join(rest), *others]
            rest = [lines.pop()]
            yield lines
    last = b"".join(rest)
    if last:
        yield [last]


def _can_be_watched(descriptor: int) -> bool:
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(descriptor)


async def _readable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(descriptor, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(descriptor)

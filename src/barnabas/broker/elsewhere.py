"""Work on other threads, waited for to its end whatever becomes of who asked.

A thread cannot be broken off. Who is cancelled while its work runs there comes back only when the
work has ended: until then it may write to files that the next broker, or the next step, will use.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from typing import TypeVar

T = TypeVar("T")


async def elsewhere(executor: Executor | None, work: Callable[..., T], *arguments: object) -> T:
    """Run on an executor (None: the loop's own) and return what the work returned."""
    running = asyncio.get_running_loop().run_in_executor(executor, work, *arguments)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        raise

"""Tasks that nobody waits for: one that ends by a mistake is told to the loop at once.

By itself asyncio tells of it when the task is thrown away. A loop whose owner keeps it for as long
as the broker lives would stand still, and nobody would know.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


def spawn(work: Coroutine[Any, Any, None], what: str) -> asyncio.Task[None]:
    """Run work on its own; `what` names it where it fails."""
    task = asyncio.get_running_loop().create_task(work)
    task.add_done_callback(lambda ended: _tell(ended, what))
    return task


def _tell(ended: asyncio.Task[None], what: str) -> None:
    if not ended.cancelled() and (failure := ended.exception()) is not None:
        ended.get_loop().call_exception_handler(
            {"message": f"{what} has ended by a mistake", "exception": failure, "task": ended}
        )

"""The loop that an asyncio client runs on: the one on which it is started, and no other."""

from __future__ import annotations

import asyncio

from barnabas.client.errors import IllegalStateError


def running_loop(given: asyncio.AbstractEventLoop | None) -> asyncio.AbstractEventLoop:
    """Return the running loop; raise if a client was given another one."""
    running = asyncio.get_running_loop()
    if given is not None and given is not running:
        raise IllegalStateError(
            f"loop={given!r}: must be {running!r}, where start() was awaited; or leave it unset"
        )
    return running

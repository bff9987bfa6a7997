"""What both admin clients do before and around their calls."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from barnabas.client.errors import KafkaTimeoutError, NetworkError, NoBrokersAvailable
from barnabas.client.switchboard import Switchboard
from barnabas.config.clients.admin import AdminOptions

Result = TypeVar("Result")


async def open_board(options: AdminOptions, client_id: str | None = None) -> Switchboard:
    """Return a switchboard that has heard of the cluster; raise NoBrokersAvailable otherwise."""
    board = Switchboard.from_options(options, client_id=client_id)
    try:
        await board.retrying(board.refresh, timeout_ms=options.bootstrap_timeout_ms)
    except NetworkError as failure:
        await board.close()
        raise NoBrokersAvailable(str(failure)) from failure
    except BaseException:
        await board.close()
        raise
    board.start()
    return board


async def within(timeout_ms: float, work: Awaitable[Result]) -> Result:
    """Await some work, for a time at most."""
    try:
        async with asyncio.timeout(timeout_ms / 1000) as limit:
            return await work
    except TimeoutError:
        if not limit.expired():
            raise
        raise KafkaTimeoutError(
            f"the call is not done within default.api.timeout.ms={timeout_ms:g}"
        ) from None

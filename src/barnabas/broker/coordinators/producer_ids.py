"""Producer ids: assigned one by one from reserved blocks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from barnabas.coordination.contract import CoordinationError
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError


class ProducerIds:
    """The block of ids that this broker holds."""

    def __init__(self, allocate: Callable[[], Awaitable[range]]) -> None:
        self._allocate = allocate
        self._block = range(0)
        self._lock = asyncio.Lock()

    async def next_id(self) -> int:
        """Return an id that was never used before."""
        async with self._lock:
            if not self._block:
                try:
                    self._block = await self._allocate()
                except CoordinationError as failure:
                    # Every producer retries on this code.
                    raise RequestError(
                        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
                        f"could not reserve a block of producer ids: {failure}",
                    ) from failure
            producer_id = self._block[0]
            self._block = self._block[1:]
            return producer_id

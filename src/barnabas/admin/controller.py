"""Requests to the controller, wherever it is by now.

On a KRaft cluster Metadata names some broker as the controller, which forwards requests to the
real one; nothing here depends on the difference.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TypeVar

from barnabas.admin.settling import Answer, Key, settle
from barnabas.client.cluster_client import CONTROLLER, ClusterClient
from barnabas.client.connection import Connection
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError

Result = TypeVar("Result")

PASSING = (ErrorCode.NOT_CONTROLLER, ErrorCode.THROTTLING_QUOTA_EXCEEDED)
"""Codes after which nothing has changed: after others the change may still be in progress."""


def is_passing(key: object, failure: RequestError) -> bool:
    """Return whether a rejected change can be retried without harm."""
    return failure.code in PASSING


async def ask_controller(
    client: ClusterClient,
    keys: Iterable[Key],
    ask: Callable[[Connection, list[Key]], Awaitable[Mapping[Key, Answer | RequestError]]],
    *,
    timeout_ms: float | None = None,
) -> dict[Key, Answer | RequestError]:
    """Ask about several things; see `settle`."""

    async def attempt(missing: list[Key]) -> Mapping[Key, Answer | RequestError]:
        return await ask(await client.connection(CONTROLLER), missing)

    return await settle(client, keys, attempt, passing=is_passing, timeout_ms=timeout_ms)


async def at_controller(
    client: ClusterClient,
    ask: Callable[[Connection], Awaitable[Result]],
    *,
    timeout_ms: float | None = None,
) -> Result:
    """Run `ask` with a connection to the controller, with retries after transient failures."""

    async def attempt() -> Result:
        return await ask(await client.connection(CONTROLLER))

    return await client.retrying(attempt, timeout_ms=timeout_ms)

"""Ask the broker that coordinates a group or a transactional id, wherever it is by now."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from enum import IntEnum
from typing import TypeVar

from barnabas.client.connection import Connection
from barnabas.client.switchboard import Switchboard
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.wire.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from barnabas.wire.schema import Message

Result = TypeVar("Result")

LAST_SINGLE_VERSION = 3
"""Later versions ask for several keys at once."""


class Kind(IntEnum):
    """What is coordinated."""

    GROUP = 0
    TRANSACTION = 1


async def find_coordinator(board: Switchboard, key: str, kind: Kind) -> int:
    """Return the node id of a coordinator; raises while there is none."""
    connection = await board.connection()
    version = capped(connection, FindCoordinatorRequest, LAST_SINGLE_VERSION)
    request = FindCoordinatorRequest(key=key, key_type=kind)
    response: FindCoordinatorResponse = await connection.send(request, version=version)
    check(response.error_code, response.error_message or f"the coordinator of {key!r}")
    return response.node_id


async def at_coordinator(
    board: Switchboard,
    key: str,
    kind: Kind,
    ask: Callable[[Connection], Awaitable[Result]],
) -> Result:
    """Run `ask` with a connection to the coordinator, again where the answer is a passing one."""

    async def attempt() -> Result:
        node_id = await find_coordinator(board, key, kind)
        return await ask(await board.connection(node_id))

    return await board.retrying(attempt)


def capped(connection: Connection, request: type[Message], last: int) -> int:
    """Return the newest version that the broker knows, `last` at most."""
    return min(connection.version_of(request), last)


def check(error_code: int, what: str) -> None:
    """Raise if a response carries an error."""
    code = ErrorCode.of(error_code)
    if code is not ErrorCode.NONE:
        raise RequestError(code, f"{what}: {code.meaning}")

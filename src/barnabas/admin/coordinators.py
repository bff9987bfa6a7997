"""Requests to the coordinator of a group or a transactional id, wherever it is by now."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from enum import IntEnum
from typing import TypeVar

from barnabas.admin.failures import coded, failure
from barnabas.admin.settling import settle
from barnabas.client.cluster_client import ClusterClient
from barnabas.client.connection import Connection
from barnabas.model.errors import BarnabasError, RequestError
from barnabas.wire.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from barnabas.wire.schema import Message

Answer = TypeVar("Answer")
Result = TypeVar("Result")

LAST_SINGLE_VERSION = 3
"""Later versions take several keys in one request."""


class Kind(IntEnum):
    """The kind of key that is coordinated."""

    GROUP = 0
    TRANSACTION = 1


async def find_coordinator(client: ClusterClient, key: str, kind: Kind) -> int:
    """Return the node id of a coordinator; raises while there is none."""
    found = (await find_coordinators(client, [key], kind))[key]
    if isinstance(found, RequestError):
        raise found
    return found


async def find_coordinators(
    client: ClusterClient, keys: Iterable[str], kind: Kind
) -> dict[str, int | RequestError]:
    """Return the node ids of coordinators, with one request if the broker supports that."""
    connection = await client.connection()
    version = connection.version_of(FindCoordinatorRequest)
    wanted = list(keys)
    if version <= LAST_SINGLE_VERSION:
        return {key: await _find_one(connection, key, kind, version) for key in wanted}
    request = FindCoordinatorRequest(key_type=kind, coordinator_keys=wanted)
    response: FindCoordinatorResponse = await connection.send(request, version=version)
    return {
        each.key: _failure(each.error_code, each.key, each.error_message)
        if each.error_code
        else each.node_id
        for each in response.coordinators
    }


async def _find_one(
    connection: Connection, key: str, kind: Kind, version: int
) -> int | RequestError:
    request = FindCoordinatorRequest(key=key, key_type=kind)
    response: FindCoordinatorResponse = await connection.send(request, version=version)
    if response.error_code:
        return _failure(response.error_code, key, response.error_message)
    return response.node_id


def _failure(error_code: int, key: str, message: str | None) -> RequestError:
    return failure(error_code, f"the coordinator of {key!r}", message)


async def at_coordinator(
    client: ClusterClient,
    key: str,
    kind: Kind,
    ask: Callable[[Connection], Awaitable[Result]],
    *,
    timeout_ms: float | None = None,
) -> Result:
    """Run `ask` with a connection to the coordinator, with retries after transient failures."""

    async def attempt() -> Result:
        node_id = await find_coordinator(client, key, kind)
        return await ask(await client.connection(node_id))

    return await client.retrying(attempt, timeout_ms=timeout_ms)


async def ask_coordinators(
    client: ClusterClient,
    keys: Iterable[str],
    kind: Kind,
    ask: Callable[[int, Connection, list[str]], Awaitable[Mapping[str, Answer | RequestError]]],
    *,
    timeout_ms: float | None = None,
) -> dict[str, Answer | RequestError]:
    """Ask each coordinator once about all its keys; see `settle`."""

    async def one(node_id: int, coordinated: list[str]) -> Mapping[str, Answer | RequestError]:
        try:
            return await ask(node_id, await client.connection(node_id), coordinated)
        except BarnabasError as broken:
            return dict.fromkeys(coordinated, coded(broken))

    async def attempt(missing: list[str]) -> Mapping[str, Answer | RequestError]:
        outcomes: dict[str, Answer | RequestError] = {}
        by_node: dict[int, list[str]] = {}
        for key, found in (await find_coordinators(client, missing, kind)).items():
            if isinstance(found, RequestError):
                outcomes[key] = found
            else:
                by_node.setdefault(found, []).append(key)
        for answers in await asyncio.gather(*(one(*each) for each in by_node.items())):
            outcomes |= answers
        return outcomes

    return await settle(client, keys, attempt, timeout_ms=timeout_ms)


def capped(connection: Connection, request: type[Message], last: int) -> int:
    """Return the newest version that the broker supports, `last` at most."""
    return min(connection.version_of(request), last)

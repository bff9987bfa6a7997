"""The delegation tokens of the cluster on this broker: loaded, followed by notices, and changed.

A notice has the id of a token that was created, renewed or removed: its node is read again. With
each new session everything is loaded again, because notices may have been removed in between.
One lock orders what this broker reads and writes, so that an older read never replaces a newer one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from barnabas.broker.cluster.tree_errors import refused_as
from barnabas.broker.loop import spawn
from barnabas.coordination.contract import (
    Coordination,
    Create,
    Delete,
    Event,
    NodeExists,
    NoNode,
    NoPermission,
    SessionExpired,
    Set,
)
from barnabas.metadata import tree_schema as nodes
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError, CorruptFileError, RequestError
from barnabas.security.delegation_tokens import DelegationToken, DelegationTokens
from barnabas.security.principal import Principal

logger = logging.getLogger("barnabas.authentication")

NOTICES_KEPT = 1000
"""How many notices are kept: every broker has seen older ones long ago."""


class SharedTokens:
    """Keeps this broker's tokens equal to those in the tree."""

    def __init__(
        self, tree: Coordination, tokens: DelegationTokens, now_ms: Callable[[], int]
    ) -> None:
        self._tree = tree
        self._tokens = tokens
        self._now_ms = now_ms
        self._last = ""
        """The newest notice that was acted upon."""
        self._lock = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Load all tokens and follow the notices, at the start or after a lost session."""
        if not self._tokens.enabled:
            return
        async with self._lock:
            for path in (nodes.DELEGATION_TOKENS, nodes.DELEGATION_TOKEN_CHANGES):
                await self._ensure(path)
            notices = await self._tree.children(nodes.DELEGATION_TOKEN_CHANGES, self._watch)
            self._last = max(notices, default="")
            known = {token.token_id for token in self._tokens.all()}
            stored = set(await self._tree.children(nodes.DELEGATION_TOKENS))
            for token_id in known | stored:
                await self._reload(token_id)

    def stop(self) -> None:
        """Stop following."""
        for task in self._tasks:
            task.cancel()

    async def add(self, token: DelegationToken) -> None:
        """Store a new token, and let the other brokers know."""
        async with self._lock:
            with refused_as():
                change = Create(_path(token.token_id), _node_of(token).encode())
                await self._tree.multi([change, _notice(token.token_id)])
            self._tokens.set(token)

    async def renew(self, token: DelegationToken) -> None:
        """Store a token's other expiry, and let the other brokers know; raise if it is gone."""
        async with self._lock:
            with refused_as():
                change = Set(_path(token.token_id), _node_of(token).encode())
                try:
                    await self._tree.multi([change, _notice(token.token_id)])
                except NoNode:  # another broker has removed it
                    self._tokens.remove(token.token_id)
                    raise RequestError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND) from None
            self._tokens.set(token)

    async def remove(self, token_id: str) -> None:
        """Remove a token, and let the other brokers know."""
        async with self._lock:
            with refused_as():
                try:
                    await self._tree.multi([Delete(_path(token_id)), _notice(token_id)])
                except NoNode:  # another broker was faster
                    logger.debug("token %s was removed already", token_id)
            self._tokens.remove(token_id)

    async def sweep(self) -> None:
        """Remove the tokens that have expired; the controller does so."""
        for token in self._tokens.expired(self._now_ms()):
            try:
                await self.remove(token.token_id)
            except RequestError as failure:
                logger.warning("expired tokens stay until the next sweep: %s", failure)
                return
            logger.info("token %s of %s has expired and was removed", token.token_id, token.owner)

    # notices

    def _watch(self, _: Event) -> None:
        task = spawn(self._follow(), "following changes of delegation tokens")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _follow(self) -> None:
        try:
            async with self._lock:
                await self._read()
        except SessionExpired:
            return  # everything is loaded again with the next session
        except BarnabasError as failure:
            logger.error("changes of delegation tokens could not be read: %s", failure)

    async def _read(self) -> None:
        names = await self._tree.children(nodes.DELEGATION_TOKEN_CHANGES, self._watch)
        for name in names:
            if name > self._last:
                try:
                    data, _ = await self._tree.get(f"{nodes.DELEGATION_TOKEN_CHANGES}/{name}")
                except NoNode:
                    continue
                await self._reload(data.decode(errors="replace"))
                self._last = name
        for name in names[:-NOTICES_KEPT]:
            try:
                await self._tree.delete(f"{nodes.DELEGATION_TOKEN_CHANGES}/{name}")
            except NoNode:
                continue

    async def _reload(self, token_id: str) -> None:
        path = _path(token_id)
        try:
            data, _ = await self._tree.get(path)
            self._tokens.set(_token_of(nodes.DelegationTokenNode.decode(path, data)))
        except NoNode:
            self._tokens.remove(token_id)
        except (CorruptFileError, NoPermission, ValueError) as failure:
            logger.error("token %r is unreadable, nobody can log in with it: %s", token_id, failure)
            self._tokens.remove(token_id)

    async def _ensure(self, path: str) -> None:
        if await self._tree.exists(path) is None:
            try:
                await self._tree.create(path, make_parents=True)
            except NodeExists:
                return


def _path(token_id: str) -> str:
    return f"{nodes.DELEGATION_TOKENS}/{token_id}"


def _notice(token_id: str) -> Create:
    path = f"{nodes.DELEGATION_TOKEN_CHANGES}/token_change_"
    return Create(path, token_id.encode(), sequence=True)


def _node_of(token: DelegationToken) -> nodes.DelegationTokenNode:
    return nodes.DelegationTokenNode(
        token.token_id,
        str(token.owner),
        str(token.requester),
        [str(renewer) for renewer in token.renewers],
        token.issued_ms,
        token.expires_ms,
        token.ends_ms,
    )


def _token_of(node: nodes.DelegationTokenNode) -> DelegationToken:
    return DelegationToken(
        node.token_id,
        _principal(node.owner),
        _principal(node.requester),
        tuple(_principal(renewer) for renewer in node.renewers),
        node.issued_ms,
        node.expires_ms,
        node.ends_ms,
    )


def _principal(text: str) -> Principal:
    kind, colon, name = text.partition(":")
    if not colon:
        raise ValueError(f"{text!r} is not a principal")
    return Principal(kind, name)

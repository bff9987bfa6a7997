"""Coordination by a ZooKeeper ensemble: what clusters run on.

    settings = ZooKeeperSettings(("zk1:2181", "zk2:2181"), "/barnabas")
    tree = ZooKeeperCoordination(settings)

Calls are pipelined, at most `in_flight_max` at a time, and answered in order; reads of many nodes
share a request if the server supports that (3.6 and later). While disconnected, calls wait
(`session`); those whose response was lost are repeated, but a write is first looked for in the tree
(`evidence`), so that it does not happen twice and a node of ours is not taken for another's.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar, cast

from barnabas.coordination.contract import (
    ANY_VERSION,
    DATA_SIZE_MAX,
    BadVersion,
    Contact,
    Coordination,
    CoordinationError,
    Create,
    Delete,
    Found,
    NodeExists,
    NoNode,
    Operation,
    Result,
    SessionListener,
    SessionState,
    Set,
    Stat,
    Watch,
    check_path,
    parent_of,
    parents_of,
)
from barnabas.coordination.zookeeper.errors import Unimplemented, first_failure, refusal
from barnabas.coordination.zookeeper.evidence import outcome
from barnabas.coordination.zookeeper.link import (
    Link,
    children_mark,
    errors,
    node_mark,
    stat_of,
)
from barnabas.coordination.zookeeper.session import (
    RETRY_PAUSE_S,
    AnswerLost,
    Ask,
    ZooKeeperSession,
)
from barnabas.coordination.zookeeper.settings import ZooKeeperSettings
from barnabas.coordination.zookeeper.watches import Kind
from barnabas.model.errors import InvalidValueError

logger = logging.getLogger("barnabas.coordination")

T = TypeVar("T")

READS_PER_REQUEST = 500
"""The server limits a request to a mebibyte; a response has no limit, but delays others."""

LARGE_BYTES = 1_000_000
"""A server with the default jute.maxbuffer may not accept more than this: it closes the connection
without a response.
"""


class ZooKeeperCoordination(Coordination):
    """A session with a ZooKeeper ensemble; see `Coordination` for the calls."""

    def __init__(self, settings: ZooKeeperSettings) -> None:
        """Prepare a session; `start` opens it."""
        self._session = ZooKeeperSession(settings)
        self._slots = asyncio.Semaphore(settings.in_flight_max)
        # Until a server responds that it cannot.
        self._reads_together = True

    # The session

    @property
    def session_id(self) -> int:
        return self._session.session_id

    @property
    def state(self) -> SessionState:
        return self._session.state

    @property
    def contact(self) -> Contact | None:
        return self._session.contact

    @property
    def _link(self) -> Link | None:
        return self._session.link

    def measure(self, record: Callable[[float], object]) -> None:
        self._session.record = record

    def add_session_listener(self, listener: SessionListener) -> None:
        self._session.add_listener(listener)

    def remove_session_listener(self, listener: SessionListener) -> None:
        self._session.remove_listener(listener)

    async def start(self) -> None:
        """Open a session; raises ServiceUnavailable or NoPermission if that cannot be done."""
        await self._session.start()

    async def close(self) -> None:
        await self._session.close()

    # Reads

    async def get(self, path: str, watch: Watch | None = None) -> Found:
        check_path(path)

        def arrived(value: tuple[bytes, Any]) -> None:
            if watch is not None:
                self._session.watch(Kind.NODE, path, watch, node_mark(value[1]))

        data, stat = await self._read(
            path, lambda link, then: link.get(path, watch is not None, then), arrived
        )
        return data or b"", stat_of(stat)

    async def get_many(
        self, paths: Sequence[str], watch: Watch | None = None
    ) -> list[Found | None]:
        for path in paths:
            check_path(path)
        if watch is None and self._reads_together:
            pieces = [
                self._get_together(paths[start : start + READS_PER_REQUEST])
                for start in range(0, len(paths), READS_PER_REQUEST)
            ]
            return [found for piece in await _all(pieces) for found in piece]
        found: list[Found | None] = []
        for start in range(0, len(paths), READS_PER_REQUEST):
            piece = paths[start : start + READS_PER_REQUEST]
            found += await _all([self._get_if_there(path, watch) for path in piece])
        return found

    async def _get_together(self, paths: Sequence[str]) -> list[Found | None]:
        """Read nodes in one request, which cannot set watches."""
        try:
            answers = await self._read(
                paths[0], lambda link, then: link.get_many(paths, then), lambda _: None
            )
        except Unimplemented:
            self._reads_together = False
            return await self.get_many(paths)
        found: list[Found | None] = []
        for path, answer in zip(paths, answers, strict=True):
            if isinstance(answer, errors.NoNodeError):
                found.append(None)
            elif isinstance(answer, Exception):
                raise refusal(answer, path)
            else:
                found.append((answer[0] or b"", stat_of(answer[1])))
        return found

    async def _get_if_there(self, path: str, watch: Watch | None) -> Found | None:
        try:
            return await self.get(path, watch)
        except NoNode:
            return None

    async def exists(self, path: str, watch: Watch | None = None) -> Stat | None:
        check_path(path)

        def arrived(stat: Any) -> None:
            if watch is not None:
                self._session.watch(Kind.NODE, path, watch, stat and node_mark(stat))

        stat = await self._read(
            path, lambda link, then: link.exists(path, watch is not None, then), arrived
        )
        return stat and stat_of(stat)

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        check_path(path)

        def arrived(value: tuple[list[str], Any]) -> None:
            if watch is not None:
                self._session.watch(Kind.CHILDREN, path, watch, children_mark(value[1]))

        names, _ = await self._read(
            path, lambda link, then: link.children(path, watch is not None, then), arrived
        )
        return sorted(names)

    # Writes

    async def create(
        self,
        path: str,
        data: bytes = b"",
        *,
        ephemeral: bool = False,
        sequence: bool = False,
        make_parents: bool = False,
    ) -> str:
        operation = Create(path, bytes(data), ephemeral, sequence)
        while True:
            try:
                created = await self._write(
                    [operation], lambda link, then: link.create(operation, then)
                )
                return cast(str, created)
            except NoNode:
                if not make_parents:
                    raise
                await self._make_parents(path)

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> Stat:
        operation = Set(path, bytes(data), version)
        stat = await self._write([operation], lambda link, then: link.set(operation, then))
        return stat if isinstance(stat, Stat) else stat_of(stat)

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        operation = Delete(path, version)
        await self._write([operation], lambda link, then: link.delete(operation, then))

    async def multi(self, operations: Sequence[Operation]) -> list[Result]:
        if not operations:
            return []
        results = await self._write(
            operations, lambda link, then: link.multi(operations, then), whole=True
        )
        return [_result(each) for each in results]

    async def set_access(self, path: str) -> None:
        """Give a node the ACL that it would get if it were created now."""
        check_path(path)
        await self._read(path, lambda link, then: link.set_access(path, then), lambda _: None)

    # Asking

    async def _read(self, path: str, ask: Ask, arrived: Callable[[Any], object]) -> Any:
        session_id = self.session_id
        while True:
            try:
                async with self._slots:
                    return await self._session.ask(session_id, ask, arrived)
            except AnswerLost:
                await asyncio.sleep(RETRY_PAUSE_S)
            except errors.ZookeeperError as failure:
                raise refusal(failure, path) from None

    async def _write(
        self, operations: Sequence[Operation], ask: Ask, *, whole: bool = False
    ) -> Any:
        """Apply a write once; return its one result, or with `whole` the list of all."""
        for operation in operations:
            _check(operation)
        session_id = self.session_id
        before: int | None = None
        while True:
            link = self._link
            known = link.last_zxid if link is not None else 0
            try:
                async with self._slots:
                    answer = await self._session.ask(session_id, ask)
                if not whole:
                    return answer
                failed = first_failure(answer)
                if failed is None:
                    return answer
                index, failure = failed
            except AnswerLost:
                before = known if before is None else before
                await asyncio.sleep(RETRY_PAUSE_S)
                done = await outcome(self, operations, before)
                if done is not None:
                    return done if whole else done[0]
                _check_size(operations)
                continue
            except errors.ZookeeperError as met:
                index, failure = 0, met
            # The first attempt may have arrived after all, while we looked for it.
            done = None if before is None else await outcome(self, operations, before)
            if done is not None:
                return done if whole else done[0]
            raise await self._write_refusal(failure, operations[index])

    async def _make_parents(self, path: str) -> None:
        for parent in parents_of(path):
            if await self.exists(parent) is None:
                try:
                    await self.create(parent)
                except NodeExists:
                    logger.debug("%s was created by another session in the meantime", parent)

    async def _write_refusal(self, failure: Exception, operation: Operation) -> Exception:
        path = operation.path
        if isinstance(failure, errors.BadVersionError) and not isinstance(operation, Create):
            stat = await self.exists(path)
            found = "is gone" if stat is None else f"has version {stat.version}"
            return BadVersion(path, f"{path} {found}, not {operation.version}")
        if isinstance(failure, errors.NoNodeError) and isinstance(operation, Create):
            path = parent_of(path)
        return refusal(failure, path)


def _check(operation: Operation) -> None:
    """Reject what no service could do, without asking."""
    path = check_path(operation.path)
    if isinstance(operation, Create | Set) and len(operation.data) > DATA_SIZE_MAX:
        size = len(operation.data)
        raise InvalidValueError(f"{path}: {size} bytes of data exceed the limit of {DATA_SIZE_MAX}")
    if isinstance(operation, Delete) and path == "/":
        raise InvalidValueError("the root cannot be deleted")


def _check_size(operations: Sequence[Operation]) -> None:
    """Refuse to repeat a large request that had no effect: each attempt hurts all others."""
    size = sum(
        len(each.path) + (len(each.data) if isinstance(each, Create | Set) else 0)
        for each in operations
    )
    if size > LARGE_BYTES:
        raise CoordinationError(
            operations[0].path,
            f"ZooKeeper did not respond to a request of {size:,} bytes; its limit is "
            "jute.maxbuffer, by default 1,048,575",
        )


def _result(value: Any) -> Result:
    """Return the result of a transaction's operation, as the contract has it."""
    if value is None or value is True:
        return None
    return value if isinstance(value, str | Stat) else stat_of(value)


async def _all(calls: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """Make calls concurrently; if one fails, cancel the others."""
    answers = await asyncio.gather(*calls, return_exceptions=True)
    results: list[T] = []
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
        results.append(answer)
    return results

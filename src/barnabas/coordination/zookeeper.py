"""Coordination by a ZooKeeper ensemble: what clusters run on.

    settings = ZooKeeperSettings(("zk1:2181", "zk2:2181"), "/barnabas")
    tree = ZooKeeperCoordination(settings)

Calls are pipelined, at most `in_flight_max` at a time, and answered in order; reads of many nodes
travel together, where the server can do that (3.6 and later). While contact is
lost the session is SUSPENDED: calls wait, those whose answer was lost are asked again, and a
write is first looked for in the tree (`zookeeper_evidence`), so that it is not done twice and a
node that we did create is not taken for another's. When contact is back all watches are armed
again before anything else is asked, and what was missed fires (`zookeeper_watches`).

An answer that came over a connection on which the watches were not yet armed is thrown away and
asked for again: otherwise a session could see a change before it hears of it.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, TypeAlias, TypeVar, cast

from barnabas.coordination.contract import (
    ANY_VERSION,
    DATA_SIZE_MAX,
    BadVersion,
    Coordination,
    Create,
    Delete,
    Event,
    Found,
    NodeExists,
    NoNode,
    NoPermission,
    Operation,
    Result,
    ServiceUnavailable,
    SessionExpired,
    SessionListener,
    SessionState,
    Set,
    Stat,
    Watch,
    check_path,
    parent_of,
    parents_of,
)
from barnabas.coordination.zookeeper_evidence import outcome
from barnabas.coordination.zookeeper_link import (
    Answered,
    Link,
    LinkState,
    children_mark,
    errors,
    is_lost,
    is_over,
    node_mark,
    stat_of,
)
from barnabas.coordination.zookeeper_refusals import Unimplemented, first_failure, refusal
from barnabas.coordination.zookeeper_settings import ZooKeeperSettings
from barnabas.coordination.zookeeper_watches import Kind, Watches
from barnabas.model.errors import InvalidValueError

logger = logging.getLogger("barnabas.zookeeper")

T = TypeVar("T")

_Ask: TypeAlias = Callable[[Link, Answered], object]

# After a lost answer: kazoo may still be busy failing what it had queued.
_RETRY_PAUSE_S = 0.01

READS_PER_REQUEST = 500
"""A request is bounded by the server at a mebibyte; its answer is not, but it holds up others."""

_OPEN_STATES = (SessionState.CONNECTED, SessionState.SUSPENDED)


class _AnswerLost(Exception):
    """It is not known whether the question was heard; ask again."""


class ZooKeeperCoordination(Coordination):
    """A session with a ZooKeeper ensemble; see `Coordination` for the calls."""

    def __init__(self, settings: ZooKeeperSettings) -> None:
        """Prepare a session; `start` opens it."""
        self._settings = settings
        self._session_id = 0
        self._state = SessionState.CLOSED
        self._listeners: list[SessionListener] = []
        self._watches = Watches()
        self._link: Link | None = None
        self._slots = asyncio.Semaphore(settings.in_flight_max)
        self._contact = asyncio.Event()
        # Grows with each connection, so that an answer can be told from one of the next.
        self._connections = 0
        self._opened: asyncio.Future[None] | None = None
        self._ending: asyncio.Task[None] | None = None
        # Until a server says that it cannot.
        self._reads_together = True

    # The session

    @property
    def session_id(self) -> int:
        return self._session_id

    @property
    def state(self) -> SessionState:
        return self._state

    def add_session_listener(self, listener: SessionListener) -> None:
        self._listeners.append(listener)

    def remove_session_listener(self, listener: SessionListener) -> None:
        if listener in self._listeners:
            self._listeners.remove(listener)

    async def start(self) -> None:
        """Open a session; raises ServiceUnavailable or NoPermission if that cannot be done."""
        if self._state in _OPEN_STATES:
            return
        self._loop = asyncio.get_running_loop()
        self._context = contextvars.copy_context()
        await self._ended()
        self._contact.clear()
        self._opened = self._loop.create_future()
        self._link = Link(self._settings, self._loop, self._hear_state, self._hear_event)
        self._link.start()
        try:
            async with asyncio.timeout(self._settings.connection_timeout_ms / 1000):
                await self._opened
                await self._make_chroot(self._link)
        except TimeoutError:
            await self._abandon()
            raise ServiceUnavailable(
                f"no session with ZooKeeper at {self._settings} within "
                f"{self._settings.connection_timeout_ms} ms (zookeeper.connection.timeout.ms)"
            ) from None
        except BaseException:
            await self._abandon()
            raise
        finally:
            self._opened = None
        self._enter(SessionState.CONNECTED)
        if not self._contact.is_set():
            self._enter(SessionState.SUSPENDED)

    async def close(self) -> None:
        if self._state is not SessionState.CLOSED:
            self._enter(SessionState.CLOSED)
        await self._abandon()
        await self._ended()

    # Reads

    async def get(self, path: str, watch: Watch | None = None) -> Found:
        check_path(path)

        def arrived(value: tuple[bytes, Any]) -> None:
            if watch is not None:
                self._watches.add(Kind.NODE, path, watch, node_mark(value[1]))

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
        """Read nodes by one request; a watch cannot be left by it."""
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
                self._watches.add(Kind.NODE, path, watch, stat and node_mark(stat))

        stat = await self._read(
            path, lambda link, then: link.exists(path, watch is not None, then), arrived
        )
        return stat and stat_of(stat)

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        check_path(path)

        def arrived(value: tuple[list[str], Any]) -> None:
            if watch is not None:
                self._watches.add(Kind.CHILDREN, path, watch, children_mark(value[1]))

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

    # Asking

    async def _read(self, path: str, ask: _Ask, arrived: Callable[[Any], object]) -> Any:
        session_id = self._session_id
        while True:
            try:
                async with self._slots:
                    return await self._issue(session_id, ask, arrived)
            except _AnswerLost:
                await asyncio.sleep(_RETRY_PAUSE_S)
            except errors.ZookeeperError as failure:
                raise refusal(failure, path) from None

    async def _write(
        self, operations: Sequence[Operation], ask: _Ask, *, whole: bool = False
    ) -> Any:
        """Do a write once; return its one result, or with `whole` the list of all."""
        for operation in operations:
            _check(operation)
        session_id = self._session_id
        before: int | None = None
        while True:
            link = self._link
            known = link.last_zxid if link is not None else 0
            try:
                async with self._slots:
                    answer = await self._issue(session_id, ask)
                if not whole:
                    return answer
                failed = first_failure(answer)
                if failed is None:
                    return answer
                index, failure = failed
            except _AnswerLost:
                before = known if before is None else before
                await asyncio.sleep(_RETRY_PAUSE_S)
                done = await outcome(self, operations, before)
                if done is not None:
                    return done if whole else done[0]
                continue
            except errors.ZookeeperError as met:
                index, failure = 0, met
            # A first attempt may have come through after all, while we looked for it.
            done = None if before is None else await outcome(self, operations, before)
            if done is not None:
                return done if whole else done[0]
            raise await self._write_refusal(failure, operations[index])

    async def _issue(
        self, session_id: int, ask: _Ask, arrived: Callable[[Any], object] | None = None
    ) -> Any:
        """Ask once and return the answer; with `arrived`, one that respects the watches."""
        link = await self._link_of(session_id)
        connection = self._connections
        reply: asyncio.Future[Any] = self._loop.create_future()

        def answered(value: Any, failure: Exception | None) -> None:
            if reply.done():
                return  # The call was cancelled.
            if failure is not None:
                reply.set_exception(self._understood(failure, session_id))
            elif arrived is not None and connection != self._connections:
                reply.set_exception(_AnswerLost())
            else:
                if arrived is not None:
                    # Here and not after the wait: the next thing heard may be the watch's event.
                    arrived(value)
                reply.set_result(value)

        ask(link, answered)
        return await reply

    def _understood(self, failure: Exception, session_id: int) -> Exception:
        if is_over(failure) or not self._is_open(session_id):
            return SessionExpired(session_id)
        return _AnswerLost() if is_lost(failure) else failure

    async def _link_of(self, session_id: int) -> Link:
        """Return the link once there is contact; raise SessionExpired if the session ended."""
        while self._is_open(session_id):
            if self._contact.is_set():
                assert self._link is not None
                return self._link
            await self._contact.wait()
        raise SessionExpired(session_id)

    def _is_open(self, session_id: int) -> bool:
        return self._state in _OPEN_STATES and session_id == self._session_id

    async def _make_parents(self, path: str) -> None:
        for parent in parents_of(path):
            if await self.exists(parent) is None:
                try:
                    await self.create(parent)
                except NodeExists:
                    logger.debug("%s was created by another session meanwhile", parent)

    async def _make_chroot(self, link: Link) -> None:
        """Create the nodes of the chroot that are missing, before the session counts as open."""
        chroot = self._settings.chroot
        for path in [*parents_of(chroot), chroot] if chroot else []:
            while True:
                reply: asyncio.Future[Exception | None] = self._loop.create_future()
                link.create_chroot(path, partial(_settle, reply))
                failure = await reply
                if failure is None or isinstance(failure, errors.NodeExistsError):
                    break
                if not is_lost(failure):
                    raise refusal(failure, path)
                await asyncio.sleep(_RETRY_PAUSE_S)

    # What the link tells

    def _hear_state(self, link: Link, state: LinkState, session_id: int) -> None:
        if link is not self._link:
            return
        if state is LinkState.CONNECTED:
            self._connections += 1
            self._session_id = session_id
            self._arm_watches(link)
            self._contact.set()
            if self._opened is not None and not self._opened.done():
                self._opened.set_result(None)
            elif self._state is SessionState.SUSPENDED:
                self._enter(SessionState.CONNECTED)
        elif state is LinkState.SUSPENDED:
            self._contact.clear()
            if self._state is SessionState.CONNECTED:
                self._enter(SessionState.SUSPENDED)
        elif self._state in _OPEN_STATES:
            self._enter(SessionState.EXPIRED)
            self._drop_link()
        elif state is LinkState.REFUSED and self._opened is not None and not self._opened.done():
            self._opened.set_exception(
                NoPermission("", f"ZooKeeper at {self._settings} refused the credentials")
            )

    def _hear_event(self, link: Link, event: Event) -> None:
        if link is self._link:
            for watch in self._watches.take(event):
                self._loop.call_soon(watch, event, context=self._context)

    def _arm_watches(self, link: Link) -> None:
        connection = self._connections
        for kind, path in self._watches:

            def arrived(
                value: Any, failure: Exception | None, kind: Kind = kind, path: str = path
            ) -> None:
                if connection != self._connections:
                    return
                if kind is Kind.NODE:
                    mark = value and node_mark(value)
                else:
                    mark = value and children_mark(value[1])
                if failure is None or isinstance(failure, errors.NoNodeError):
                    missed = self._watches.missed(kind, path, mark)
                    if missed is not None:
                        self._hear_event(link, missed)

            if kind is Kind.NODE:
                link.exists(path, True, arrived)
            else:
                link.children(path, True, arrived)

    # Inside

    def _enter(self, state: SessionState) -> None:
        self._state = state
        logger.log(
            logging.WARNING if state is SessionState.EXPIRED else logging.INFO,
            "session 0x%x with ZooKeeper at %s is %s",
            self._session_id & 0xFFFFFFFFFFFFFFFF,
            self._settings,
            state.value,
        )
        for listener in list(self._listeners):
            self._loop.call_soon(listener, state, context=self._context)

    def _drop_link(self) -> None:
        """Let the link go, and those who wait for contact see that the session is over."""
        self._watches.clear()
        link, self._link = self._link, None
        self._contact.set()
        if link is not None:
            self._ending = self._loop.create_task(link.stop())

    async def _abandon(self) -> None:
        self._drop_link()
        await self._ended()

    async def _ended(self) -> None:
        """Wait until kazoo's thread of an earlier session has ended."""
        if self._ending is not None:
            await asyncio.shield(self._ending)
            self._ending = None

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
    """Refuse what no service could do, before it is asked."""
    path = check_path(operation.path)
    if isinstance(operation, Create | Set) and len(operation.data) > DATA_SIZE_MAX:
        size = len(operation.data)
        raise InvalidValueError(f"{path}: {size} bytes of data; at most {DATA_SIZE_MAX}")
    if isinstance(operation, Delete) and path == "/":
        raise InvalidValueError("the root cannot be deleted")


def _result(value: Any) -> Result:
    """Return what an operation of a transaction gave, as the contract has it."""
    if value is None or value is True:
        return None
    return value if isinstance(value, str | Stat) else stat_of(value)


async def _all(calls: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """Make calls side by side; where one fails, leave none behind."""
    answers = await asyncio.gather(*calls, return_exceptions=True)
    results: list[T] = []
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
        results.append(answer)
    return results


def _settle(reply: asyncio.Future[Exception | None], _: object, failure: Exception | None) -> None:
    if not reply.done():
        reply.set_result(failure)

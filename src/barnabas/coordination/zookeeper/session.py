"""A session with a ZooKeeper ensemble: its connection, the watches that outlive it, and its end.

While disconnected the session is SUSPENDED, and callers wait. After a reconnect all watches are set
again before any other request, and missed changes fire them (`watches`). A response that arrived
over a connection on which the watches were not yet set counts as lost: otherwise a session could
see a change before its watch fires.

An expired session stays expired until `start` opens the next one, over a new link.

The session has a heartbeat besides kazoo's pings: a `sync`, which unlike a ping or a read goes to
the leader of the ensemble, so that its response proves that the ensemble has not expired the
session.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import time
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

from barnabas.coordination.contract import (
    Contact,
    Event,
    NoPermission,
    ServiceUnavailable,
    SessionExpired,
    SessionListener,
    SessionState,
    Watch,
    parents_of,
)
from barnabas.coordination.zookeeper.errors import refusal
from barnabas.coordination.zookeeper.link import (
    Answered,
    Link,
    LinkState,
    children_mark,
    errors,
    is_lost,
    is_over,
    node_mark,
)
from barnabas.coordination.zookeeper.settings import ZooKeeperSettings
from barnabas.coordination.zookeeper.watches import Kind, Mark, Watches

logger = logging.getLogger("barnabas.coordination")

Ask: TypeAlias = Callable[[Link, Answered], object]
"""Sends one request over a link."""

RETRY_PAUSE_S = 0.01
"""Pause after a lost response: kazoo may still be failing what it had queued."""

HEARTBEATS_PER_TIMEOUT = 6

_OPEN_STATES = (SessionState.CONNECTED, SessionState.SUSPENDED)


class AnswerLost(Exception):
    """The response was lost: it is not known whether the request took effect; ask again."""


class ZooKeeperSession:
    """One session at a time, and the link that keeps it alive."""

    def __init__(self, settings: ZooKeeperSettings) -> None:
        """Prepare a session; `start` opens it."""
        self.session_id = 0
        self.state = SessionState.CLOSED
        self.link: Link | None = None
        self._settings = settings
        self._listeners: list[SessionListener] = []
        self._watches = Watches()
        self._contact = asyncio.Event()
        # Grows with each connection, so that responses of different connections can be told apart.
        self._connections = 0
        self._opened: asyncio.Future[None] | None = None
        self._ending: asyncio.Task[None] | None = None
        self._asked_s = self._heard_s = 0.0
        self._heartbeat: asyncio.TimerHandle | None = None
        self.record: Callable[[float], object] | None = None
        """Gets the seconds from each request to its response."""

    @property
    def contact(self) -> Contact | None:
        """When the ensemble last showed that the session is alive; None without a session."""
        link = self.link
        if link is None or self.state not in _OPEN_STATES:
            return None
        now_s = time.monotonic()
        return Contact(
            link.timeout_ms,
            (now_s - self._asked_s) * 1000,
            (now_s - self._heard_s) * 1000,
            self._asked_s,
        )

    def add_listener(self, listener: SessionListener) -> None:
        """Call `listener` after every change of state."""
        self._listeners.append(listener)

    def remove_listener(self, listener: SessionListener) -> None:
        """Remove `listener`."""
        if listener in self._listeners:
            self._listeners.remove(listener)

    async def start(self) -> None:
        """Open a session; raises ServiceUnavailable or NoPermission."""
        if self.state in _OPEN_STATES:
            return
        self._loop = asyncio.get_running_loop()
        self._context = contextvars.copy_context()
        await self._ended()
        self._contact.clear()
        self._opened = self._loop.create_future()
        self.link = Link(self._settings, self._loop, self._on_state, self._on_event)
        self.link.start()
        try:
            async with asyncio.timeout(self._settings.connection_timeout_ms / 1000):
                await self._opened
                await self._make_chroot(self.link)
                await self._check_access(self.link)
        except TimeoutError:
            link = self.link
            await self._abandon()
            # Asked after the end: a first attempt may still be in its handshake when time is up.
            failure = link.last_failure
            because = f": {failure}" if failure else ""
            raise ServiceUnavailable(
                f"could not open a session with ZooKeeper at {self._settings} within "
                f"{self._settings.connection_timeout_ms} ms "
                f"(zookeeper.connection.timeout.ms){because}"
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
        """End the session; pending calls raise SessionExpired."""
        if self.state is not SessionState.CLOSED:
            self._enter(SessionState.CLOSED)
        await self._abandon()

    # Requests

    def watch(self, kind: Kind, path: str, watch: Watch, mark: Mark | None) -> None:
        """Call `watch` when a node differs from what the reader of `mark` saw."""
        self._watches.add(kind, path, watch, mark)

    async def ask(
        self, session_id: int, ask: Ask, arrived: Callable[[Any], object] | None = None
    ) -> Any:
        """Ask once and return the response; with `arrived`, one that respects the watches.

        Raises SessionExpired, AnswerLost, or the library's own error.
        """
        link = await self._link_of(session_id)
        connection = self._connections
        reply: asyncio.Future[Any] = self._loop.create_future()
        asked_s = time.monotonic()

        def answered(value: Any, failure: Exception | None) -> None:
            if self.record is not None and (failure is None or not is_lost(failure)):
                self.record(time.monotonic() - asked_s)
            if reply.done():
                return  # The call was cancelled.
            if failure is not None:
                reply.set_exception(self._understood(failure, session_id))
            elif arrived is not None and connection != self._connections:
                reply.set_exception(AnswerLost())
            else:
                if arrived is not None:
                    # Here and not after the wait: the next thing to arrive may be the watch's
                    # event.
                    arrived(value)
                reply.set_result(value)

        ask(link, answered)
        return await reply

    def _understood(self, failure: Exception, session_id: int) -> Exception:
        if is_over(failure) or not self._is_open(session_id):
            return SessionExpired(session_id)
        return AnswerLost() if is_lost(failure) else failure

    async def _link_of(self, session_id: int) -> Link:
        """Return the link once it is connected; raise SessionExpired if the session ended."""
        while self._is_open(session_id):
            if self._contact.is_set():
                assert self.link is not None
                return self.link
            await self._contact.wait()
        raise SessionExpired(session_id)

    def _is_open(self, session_id: int) -> bool:
        return self.state in _OPEN_STATES and session_id == self.session_id

    async def _make_chroot(self, link: Link) -> None:
        """Create the missing nodes of the chroot, before the session counts as open."""
        chroot = self._settings.chroot
        for path in [*parents_of(chroot), chroot] if chroot else []:
            # Looked for first: under a node of another user not even an existing one is reported
            # as such.
            stat, failure = await self._until_answered(partial(link.exists_chroot, path))
            if failure is None and stat is None:
                _, failure = await self._until_answered(partial(link.create_chroot, path))
            if failure is not None and not isinstance(failure, errors.NodeExistsError):
                raise self._start_failure(failure, path)

    async def _check_access(self, link: Link) -> None:
        """Ask for anything, as a server that demands a login answers nothing without."""
        _, failure = await self._until_answered(link.sync)
        if failure is not None:
            raise self._start_failure(failure, "/")

    def _start_failure(self, failure: Exception, path: str) -> Exception:
        """Return the error of a start; a session that has ended already can be opened again."""
        return SessionExpired(self.session_id) if is_over(failure) else refusal(failure, path)

    async def _until_answered(
        self, ask: Callable[[Answered], object]
    ) -> tuple[Any, Exception | None]:
        """Ask, again if the response is lost; return the result and the failure."""
        while True:
            reply: asyncio.Future[tuple[Any, Exception | None]] = self._loop.create_future()
            ask(partial(_settle, reply))
            result, failure = await reply
            if failure is None or not is_lost(failure):
                return result, failure
            await asyncio.sleep(RETRY_PAUSE_S)

    # What the link reports

    def _on_state(self, link: Link, state: LinkState, session_id: int) -> None:
        if link is not self.link:
            return
        if state is LinkState.CONNECTED:
            self._connections += 1
            self.session_id = session_id
            self._asked_s, self._heard_s = link.connecting_s, time.monotonic()
            self._arm_watches(link)
            self._beat(link, self._connections)
            self._contact.set()
            if self._opened is not None and not self._opened.done():
                self._opened.set_result(None)
            elif self.state is SessionState.SUSPENDED:
                self._enter(SessionState.CONNECTED)
        elif state is LinkState.SUSPENDED:
            self._contact.clear()
            if self.state is SessionState.CONNECTED:
                self._enter(SessionState.SUSPENDED)
        elif self.state in _OPEN_STATES:
            self._enter(SessionState.EXPIRED)
            self._drop_link()
        elif state is LinkState.REFUSED and self._opened is not None and not self._opened.done():
            self._opened.set_exception(
                NoPermission("", f"ZooKeeper at {self._settings} {link.refusal}")
            )

    def _on_event(self, link: Link, event: Event) -> None:
        if link is self.link:
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
                        self._on_event(link, missed)

            if kind is Kind.NODE:
                link.exists(path, True, arrived)
            else:
                link.children(path, True, arrived)

    def _beat(self, link: Link, connection: int) -> None:
        """Send heartbeats, one after the response to the other, on one connection."""
        if link is not self.link or connection != self._connections:
            return
        asked_s = time.monotonic()

        def answered(_: object, failure: Exception | None) -> None:
            if link is not self.link or connection != self._connections:
                return
            if failure is None:
                self._asked_s, self._heard_s = asked_s, time.monotonic()
            pause_s = asked_s + link.timeout_ms / 1000 / HEARTBEATS_PER_TIMEOUT - time.monotonic()
            self._heartbeat = self._loop.call_later(
                max(pause_s, RETRY_PAUSE_S), self._beat, link, connection
            )

        link.sync(answered)

    # Inside

    def _enter(self, state: SessionState) -> None:
        self.state = state
        logger.log(
            logging.WARNING if state is SessionState.EXPIRED else logging.INFO,
            "session 0x%x with ZooKeeper at %s is %s",
            self.session_id & 0xFFFFFFFFFFFFFFFF,
            self._settings,
            state.value,
        )
        for listener in list(self._listeners):
            self._loop.call_soon(listener, state, context=self._context)

    def _drop_link(self) -> None:
        """Drop the link; callers that wait for a connection see that the session has ended."""
        self._watches.clear()
        if self._heartbeat is not None:
            self._heartbeat.cancel()
            self._heartbeat = None
        link, self.link = self.link, None
        self._contact.set()
        if link is not None:
            self._ending = self._loop.create_task(link.stop())

    async def _abandon(self) -> None:
        self._drop_link()
        await self._ended()

    async def _ended(self) -> None:
        """Wait for the kazoo threads of earlier sessions to end."""
        if self._ending is not None:
            await asyncio.shield(self._ending)
            self._ending = None


def _settle(
    reply: asyncio.Future[tuple[Any, Exception | None]], result: Any, failure: Exception | None
) -> None:
    if not reply.done():
        reply.set_result((result, failure))

"""One KazooClient on an event loop: the only module that talks to the library.

kazoo reads its socket on a thread of its own. Everything it reports (responses, watch events,
state changes) is put on the loop from that one thread, in the order in which it happened on the
connection: so a watch fires before a response that contains its change, which kazoo's own pair of
worker threads would not guarantee.

A link lives as long as one session. It reconnects by itself; when the session is lost it is stopped
and discarded.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import secrets
import socket
import ssl
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import Enum
from typing import Any, TypeAlias

from barnabas.coordination.contract import (
    Check,
    Create,
    Delete,
    Event,
    EventType,
    Operation,
    Set,
    Stat,
)
from barnabas.coordination.zookeeper.digest_md5 import DigestMd5, DigestMd5Error
from barnabas.coordination.zookeeper.node_acls import Access, access_of
from barnabas.coordination.zookeeper.settings import SaslLogin, ZooKeeperSettings
from barnabas.coordination.zookeeper.watches import Mark
from barnabas.model.errors import ConfigError

try:
    from kazoo import exceptions as errors
    from kazoo.client import KazooClient
    from kazoo.handlers import utils as kazoo_utils
    from kazoo.handlers.threading import AsyncResult, KazooTimeoutError
    from kazoo.protocol.serialization import SASL
    from kazoo.protocol.states import KazooState, KeeperState
    from kazoo.security import CREATOR_ALL_ACL, OPEN_ACL_UNSAFE, READ_ACL_UNSAFE

    from barnabas.coordination.zookeeper.reads import ReadMany
except ImportError as missing:
    raise ConfigError(
        "ZooKeeper support requires kazoo: pip install 'barnabas[zookeeper]'"
    ) from missing

__all__ = [
    "Answered",
    "Link",
    "LinkState",
    "children_mark",
    "errors",
    "is_lost",
    "is_over",
    "node_mark",
    "stat_of",
]

logger = logging.getLogger("barnabas.coordination")

Answered: TypeAlias = Callable[[Any, Exception | None], None]
"""Called with a result or an exception, on the loop."""

# Initial and maximum backoff between connection attempts.
_RECONNECT_S = (0.05, 0.4)
_CUT_S = 0.05
_FIRST_PATIENCE_S = 0.5
_PATIENCE_S = 5.0
_PATIENCE_SHARE = 1 / 3
"""How long a server that accepted the connection may stay silent, initially and at most: it may be
starting, and another server might respond sooner. A fraction of the timeout limits it, too.
"""

_EVENTS = {
    "CREATED": EventType.CREATED,
    "DELETED": EventType.DELETED,
    "CHANGED": EventType.CHANGED,
    "CHILD": EventType.CHILDREN,
}

_ACLS = {
    Access.EVERYONE: OPEN_ACL_UNSAFE,
    Access.CREATOR_AND_READERS: CREATOR_ALL_ACL + READ_ACL_UNSAFE,
    Access.CREATOR: CREATOR_ALL_ACL,
}


class LinkState(Enum):
    """What a link reports about its session."""

    CONNECTED = "connected"
    SUSPENDED = "suspended"
    EXPIRED = "expired"
    REFUSED = "refused"
    """The login failed; `refusal` of the link says how."""


def is_lost(failure: Exception) -> bool:
    """Return whether the response was lost: the request may or may not have taken effect."""
    return isinstance(failure, errors.ConnectionLoss | errors.SessionMovedError)


def is_over(failure: Exception) -> bool:
    """Return whether the session has ended."""
    return isinstance(failure, errors.SessionExpiredError)


def stat_of(stat: Any) -> Stat:
    """Convert kazoo's stat to ours."""
    return Stat(stat.version, stat.czxid, stat.mzxid, stat.ephemeralOwner, stat.numChildren)


def node_mark(stat: Any) -> Mark:
    """Return what a reader of a node saw."""
    return Mark(stat.czxid, stat.mzxid)


def children_mark(stat: Any) -> Mark:
    """Return what a reader of a node's children saw."""
    return Mark(stat.czxid, stat.pzxid)


class Link:
    """A connection that keeps one session alive."""

    def __init__(
        self,
        settings: ZooKeeperSettings,
        loop: asyncio.AbstractEventLoop,
        on_state: Callable[[Link, LinkState, int], object],
        on_event: Callable[[Link, Event], object],
    ) -> None:
        """Prepare a link; nothing is opened before `start`."""
        self._settings = settings
        self._loop = loop
        self._context = contextvars.copy_context()
        self._on_state = on_state
        self._on_event = on_event
        first_s, longest_s = _RECONNECT_S
        self._handler = _LoopHandler(self._post, settings.tls, self._opened)
        self._client = KazooClient(
            hosts=",".join(settings.servers),
            timeout=settings.session_timeout_ms / 1000,
            handler=self._handler,
            connection_retry={"max_tries": -1, "delay": first_s, "max_delay": longest_s},
            auth_data=[("digest", settings.credentials)] if settings.credentials else None,
            use_ssl=settings.tls is not None,
        )
        self._client.add_listener(self._state_changed)
        self.timeout_ms = settings.session_timeout_ms
        """The session timeout granted by the server."""
        self.connecting_s = self._began_s = 0.0
        """When the current connection was opened: the session was confirmed after that."""
        self.refusal = "rejected the credentials"
        """What the servers did with the login, if it failed."""
        self._patience_s = _FIRST_PATIENCE_S
        self._measure_connecting()
        if settings.login is not None:
            self._log_in_with(settings.login)

    @property
    def last_failure(self) -> str | None:
        """Why the last attempt to connect failed, if it was before a server could respond."""
        return self._handler.failure

    @property
    def last_zxid(self) -> int:
        """The newest transaction of the server as of its last response."""
        return int(self._client.last_zxid)

    def start(self) -> None:
        """Begin to connect; `on_state` is called on success."""
        self._client.start_async()

    async def stop(self) -> None:
        """Close the session if connected, and end kazoo's thread."""
        stopping = self._loop.run_in_executor(None, self._stop)
        if not self._client.connected:
            # Its thread may be waiting for a silent server; there is nothing to close.
            while not (await asyncio.wait([stopping], timeout=_CUT_S))[0]:
                self._handler.cut()
        await stopping

    def _opened(self, connected: socket.socket) -> None:
        # kazoo gives a connection attempt as long as the session lasts, which ends with it.
        longest_s = min(_PATIENCE_S, self._settings.session_timeout_ms / 1000 * _PATIENCE_SHARE)
        self._patience_s = min(self._patience_s, longest_s)
        self._loop.call_later(self._patience_s, self._lose_patience, connected)

    def _lose_patience(self, connected: socket.socket) -> None:
        if not self._client.connected and self._handler.uses(connected):
            logger.info("ZooKeeper at %s does not respond, reconnecting", self._settings)
            self._patience_s *= 2  # it may need longer
            self._handler.cut()

    def _stop(self) -> None:
        try:
            self._client.stop()
        except errors.WriterNotClosedException:
            # The server neither responds nor closes the connection: the thread ends when it does.
            logger.warning("ZooKeeper at %s did not close the session in time", self._settings)
        else:
            self._client.close()

    def _measure_connecting(self) -> None:
        """Record when a connection opens and which timeout it grants; report it after the login.

        kazoo reports it before the login, and the times not at all. All this happens on its thread.
        """
        connection = self._client._connection
        connect = connection._connect

        def measured(*arguments: Any) -> tuple[float, float]:
            self._began_s = time.monotonic()
            read_timeout_ms, connect_timeout_ms = connect(*arguments)
            self.timeout_ms = round(read_timeout_ms * 3 / 2)  # it waits for two thirds of it
            self.connecting_s = self._began_s
            self._patience_s = _FIRST_PATIENCE_S
            self._report(LinkState.CONNECTED)
            return read_timeout_ms, connect_timeout_ms

        connection._connect = measured

    def _log_in_with(self, login: SaslLogin) -> None:
        """Have kazoo log in on each connection, by our own DIGEST-MD5: its own needs a library."""
        connection = self._client._connection

        def exchange(token: bytes, number: int, timeout_s: float) -> bytes:
            connection._submit(SASL(token), timeout_s, number)
            header, body, offset = connection._read_header(timeout_s)
            if header.err:
                raise errors.AuthFailedError(f"error {header.err}")
            answer: bytes | None = SASL.deserialize(body, offset)[0]
            return answer or b""

        def log_in(_host: str, timeout_s: float) -> None:
            attempt = DigestMd5(login.user, login.password, secrets.token_hex(16))
            challenge = exchange(b"", 1, timeout_s)
            try:
                if not challenge:
                    raise DigestMd5Error("has no SASL: its own login configuration lacks `Server`")
                self.refusal = f"rejected the login of user {login.user!r}"
                attempt.check(exchange(attempt.answer(challenge), 2, timeout_s))
            except DigestMd5Error as failure:
                self.refusal = str(failure)
                raise errors.AuthFailedError(self.refusal) from failure

        connection.sasl_options = {}
        connection._authenticate_with_sasl = log_in

    # Requests; each is answered once, on the loop, in the order of the requests.

    def create(self, operation: Create, answered: Answered) -> None:
        """Create a node; the result is its full path."""
        self._ask(
            self._client.create_async(
                self._full(operation.path),
                operation.data,
                acl=self._acl(operation.path),
                ephemeral=operation.ephemeral,
                sequence=operation.sequence,
            ),
            lambda path, failure: answered(path and self._below(path), failure),
        )

    def create_chroot(self, path: str, answered: Answered) -> None:
        """Create a node above the tree, or the tree's root."""
        self._ask(self._client.create_async(path, acl=self._acl("/")), answered)

    def exists_chroot(self, path: str, answered: Answered) -> None:
        """Read the stat of a node above the tree, or of its root; None if it does not exist."""
        self._ask(self._client.exists_async(path), answered)

    def get(self, path: str, watched: bool, answered: Answered) -> None:
        """Read data and stat."""
        self._ask(self._client.get_async(self._full(path), self._watch(watched)), answered)

    def get_many(self, paths: Sequence[str], answered: Answered) -> None:
        """Read data and stat of each; the result has a pair or an exception for each."""
        answer = self._client.handler.async_result()
        # The library has no call for this, but sends any request object.
        self._client._call(ReadMany([self._full(path) for path in paths]), answer)
        self._ask(answer, answered)

    def set_access(self, path: str, answered: Answered) -> None:
        """Give an existing node the ACL that it would get if it were created now."""
        self._ask(self._client.set_acls_async(self._full(path), self._acl(path)), answered)

    def exists(self, path: str, watched: bool, answered: Answered) -> None:
        """Read the stat, None if the node does not exist."""
        self._ask(self._client.exists_async(self._full(path), self._watch(watched)), answered)

    def sync(self, answered: Answered) -> None:
        """Have the leader of the ensemble confirm that the session is alive."""
        self._ask(self._client.sync_async(self._full("/")), answered)

    def children(self, path: str, watched: bool, answered: Answered) -> None:
        """Read the names of the children, and the stat."""
        self._ask(
            self._client.get_children_async(self._full(path), self._watch(watched), True), answered
        )

    def set(self, operation: Set, answered: Answered) -> None:
        """Replace a node's data; the result is the new stat."""
        path = self._full(operation.path)
        self._ask(self._client.set_async(path, operation.data, operation.version), answered)

    def delete(self, operation: Delete, answered: Answered) -> None:
        """Delete a node."""
        path = self._full(operation.path)
        self._ask(self._client.delete_async(path, operation.version), answered)

    def multi(self, operations: Sequence[Operation], answered: Answered) -> None:
        """Apply all or none; the result has a result or an exception for each."""
        request = self._client.transaction()
        for operation in operations:
            path = self._full(operation.path)
            match operation:
                case Create(_, data, ephemeral, sequence):
                    request.create(path, data, self._acl(operation.path), ephemeral, sequence)
                case Set(_, data, version):
                    request.set_data(path, data, version)
                case Delete(_, version):
                    request.delete(path, version)
                case Check(_, version):
                    request.check(path, version)

        def arrived(results: Any, failure: Exception | None) -> None:
            for index, result in enumerate(results or ()):
                if isinstance(result, str):
                    results[index] = self._below(result)
            answered(results, failure)

        self._ask(request.commit_async(), arrived)

    # Inside

    def _ask(self, result: Any, answered: Answered) -> None:
        def arrived(result: Any) -> None:
            answered(result.value, result.exception)

        result.rawlink(arrived)

    def _watch(self, watched: bool) -> Callable[[Any], None] | None:
        return self._event_came if watched else None

    def _event_came(self, event: Any) -> None:
        # An event of type NONE is about the session, which the listener reports as well.
        kind = _EVENTS.get(event.type)
        if kind is not None:
            self._on_event(self, Event(kind, self._below(event.path)))

    def _state_changed(self, state: str) -> None:
        """Handle kazoo's report, on its thread."""
        if state == KazooState.CONNECTED:
            return  # not before the login
        if state == KazooState.SUSPENDED:
            self._report(LinkState.SUSPENDED)
        elif self._client.client_state == KeeperState.AUTH_FAILED:
            self._report(LinkState.REFUSED)
        else:
            self._report(LinkState.EXPIRED)

    def _report(self, state: LinkState) -> None:
        session = self._client.client_id
        self._post(lambda: self._on_state(self, state, session[0] if session else 0))

    def _post(self, act: Callable[[], object]) -> None:
        # Once the loop is closed, there is nobody left to notify.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(act, context=self._context)

    def _full(self, path: str) -> str:
        chroot = self._settings.chroot
        return (chroot + path if path != "/" else chroot) if chroot else path

    def _below(self, path: str) -> str:
        return path[len(self._settings.chroot) :] or "/"

    def _acl(self, path: str) -> Any:
        return _ACLS[access_of(path, restricted=self._settings.set_acl)]


def _why(failure: Exception) -> str:
    if isinstance(failure, ssl.SSLCertVerificationError):
        return f"TLS: the server's certificate is not accepted: {failure.verify_message}"
    if isinstance(failure, ssl.SSLError):
        return f"TLS: {failure.reason or failure}"
    return str(failure) or type(failure).__name__


class _LoopQueue:
    """The loop, in the place of a queue for kazoo's worker thread."""

    def __init__(self, post: Callable[[Callable[[], object]], object]) -> None:
        self.put = post


class _LoopHandler:
    """kazoo's threads, sockets and callbacks: callbacks go to the loop, not to workers."""

    name = "barnabas_loop_handler"
    timeout_exception = KazooTimeoutError
    sleep_func = staticmethod(time.sleep)
    # kazoo calls back on its own thread, immediately, if its handler is not running.
    running = True

    def __init__(
        self,
        post: Callable[[Callable[[], object]], object],
        tls: Any,
        opened: Callable[[socket.socket], object],
    ) -> None:
        self.completion_queue = _LoopQueue(post)
        self._post = post
        self._tls = tls
        self._opened = opened
        self._socket: socket.socket | None = None
        self.failure: str | None = None
        """Why the last connection could not be opened."""

    def uses(self, connected: socket.socket) -> bool:
        """Return whether this is the newest connection."""
        return connected is self._socket

    def cut(self) -> None:
        """Close the connection under kazoo's thread, as its server could."""
        if self._socket is not None:
            with suppress(OSError):  # already closed
                self._socket.shutdown(socket.SHUT_RDWR)

    def start(self) -> None:
        """Do nothing: the loop is running."""

    def stop(self) -> None:
        """Do nothing."""

    def select(self, *args: Any, **kwargs: Any) -> Any:
        return kazoo_utils.selector_select(*args, **kwargs)

    def create_connection(self, address: Any, hostname: str, timeout: float, **_: Any) -> Any:
        """Connect, with TLS if configured."""
        try:
            connected = self._connected(address, hostname, timeout)
        except Exception as failure:
            self.failure = _why(failure)
            raise
        self.failure = None
        self._socket = connected
        self._post(lambda: self._opened(connected))
        return connected

    def _connected(self, address: Any, hostname: str, timeout: float) -> Any:
        connected = kazoo_utils.create_tcp_connection(socket, address, timeout=timeout)
        if self._tls is None:
            return connected
        try:
            return self._tls.wrap_socket(connected, server_hostname=hostname)
        except BaseException:
            connected.close()
            raise

    def create_socket_pair(self) -> Any:
        return kazoo_utils.create_socket_pair(socket)

    def event_object(self) -> threading.Event:
        return threading.Event()

    def lock_object(self) -> Any:
        return threading.Lock()

    def rlock_object(self) -> Any:
        return threading.RLock()

    def async_result(self) -> Any:
        return AsyncResult(self)

    def spawn(self, function: Callable[..., object], *args: Any, **kwargs: Any) -> threading.Thread:
        thread = threading.Thread(
            target=function, args=args, kwargs=kwargs, name="barnabas-zookeeper", daemon=True
        )
        thread.start()
        return thread

    def dispatch_callback(self, callback: Any) -> None:
        self._post(lambda: callback.func(*callback.args))

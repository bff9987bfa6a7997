"""SASL in front of the router: frames of a connection go to its `SaslServer` until it is done.

A session with an end keeps its authenticator in front: it closes the connection when the session
has ended, and lets the client log in again before. One without an end is handed over to the router,
and costs nothing from then on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from typing import Any

from barnabas.broker.loop import offload, spawn
from barnabas.broker.network.connection import Connection, Dispatcher
from barnabas.broker.network.router import Served
from barnabas.config.broker import BrokerOptions
from barnabas.metrics.catalogue.network import (
    EXPIRED_CONNECTIONS,
    FAILED_AUTHENTICATIONS,
    FAILED_REAUTHENTICATIONS,
    NETWORK_PROCESSOR,
    SUCCESSFUL_AUTHENTICATIONS,
    SUCCESSFUL_REAUTHENTICATIONS,
)
from barnabas.metrics.metric import Metric
from barnabas.metrics.registry import Registry
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RemoteProtocolError
from barnabas.security.audit import AuditLog
from barnabas.security.principal import Principal
from barnabas.security.sasl.exchange import NewExchange, Rejected, Step, Work, shown
from barnabas.security.sasl.server import (
    SASL_HANDSHAKE_KEY,
    Action,
    Answer,
    Close,
    Forward,
    SaslServer,
)
from barnabas.wire.codec import decode
from barnabas.wire.frame import response_frame
from barnabas.wire.header import RequestHeader

logger = logging.getLogger("barnabas.authentication")

LOGIN_MS_MAX = 30_000
"""How long a client may take to log in."""
LINGER_S = 0.05
"""How long a connection stays open after a refusal: clients that see its end at the same time as
the refusal report a lost connection instead."""
_HANDSHAKE = SASL_HANDSHAKE_KEY.to_bytes(2, "big")


class SaslListener:
    """What the connections of one listener with SASL share."""

    def __init__(
        self,
        name: str,
        mechanisms: Callable[[], Mapping[str, NewExchange]],
        options: Callable[[], BrokerOptions],
        served: Mapping[int, Served[Any]],
        executor: Executor | None,
        clock_ms: Callable[[], int],
        wall_ms: Callable[[], int],
        metrics: Registry,
        audit: AuditLog,
    ) -> None:
        """`clock_ms` is monotonic, for sessions; `wall_ms` is compared with credentials' ends."""
        self.name = name
        self.mechanisms = mechanisms
        self.served = served
        self.executor = executor
        self.clock_ms = clock_ms
        self.wall_ms = wall_ms
        self._options = options
        self._metrics = metrics
        self.audit = audit
        self.tasks: set[asyncio.Task[None]] = set()

    def authenticate(self, connection: Connection) -> None:
        """Put a new connection's authenticator in front of its dispatcher."""
        connection.dispatcher = Authenticator(self, connection.dispatcher)
        connection.login_due_ms = self.clock_ms() + LOGIN_MS_MAX
        connection.frame_bytes_max = self.receive_max

    @property
    def receive_max(self) -> int:
        """Return the largest frame of a client that is not logged in."""
        return min(
            self._options().sasl_server_max_receive_size, self._options().socket_request_max_bytes
        )

    @property
    def frame_bytes_max(self) -> int:
        """Return the largest frame of a client that is logged in."""
        return self._options().socket_request_max_bytes

    @property
    def delay_ms(self) -> int:
        """Return how long a failed client waits for its answer."""
        return self._options().connection_failed_authentication_delay_ms

    def max_reauth_ms(self, mechanism: str) -> int:
        """Return the longest session of a mechanism; 0 for no limit."""
        return self._options().for_listener(self.name, mechanism).connections_max_reauth_ms

    def count(self, metric: Metric) -> None:
        """Count an event."""
        self._metrics.counter(metric, self.name, NETWORK_PROCESSOR).add()

    def refusal(self, header: RequestHeader, frame: memoryview, position: int) -> bytes:
        """Return the answer to a request that comes when a token is expected."""
        served = self.served.get(header.api_key)
        if served is None:
            return b""
        try:
            body, _ = decode(served.api.request, frame, header.api_version, position)
        except RemoteProtocolError:
            return b""
        response = served.refuse(body, ErrorCode.ILLEGAL_SASL_STATE, None)
        return response_frame(response, header.api_version, header.correlation_id)


class Authenticator:
    """The dispatcher of one connection until its client is logged in, and while it may expire."""

    def __init__(self, listener: SaslListener, after: Dispatcher) -> None:
        """Pass requests of a client that is logged in to `after`."""
        self._listener = listener
        self._after = after
        self._server = SaslServer(listener.mechanisms, listener.max_reauth_ms, listener.refusal)

    def dispatch(self, connection: Connection, frame: memoryview) -> None:
        """Handle a frame, or pass it on."""
        listener, server = self._listener, self._server
        now_ms = listener.clock_ms()
        if server.is_authenticated:
            if frame[:2] != _HANDSHAKE:
                if server.has_expired(now_ms):
                    listener.count(EXPIRED_CONNECTIONS)
                    connection.close("its session has ended, and was not renewed")
                    return
                self._after.dispatch(connection, frame)
                return
            if not server.may_renew(now_ms):
                self._after.dispatch(connection, frame)  # which refuses it
                return
        if len(frame) > listener.receive_max:
            connection.close(
                f"frame of {len(frame)} bytes during re-authentication "
                f"(sasl.server.max.receive.size={listener.receive_max})"
            )
            return
        action = server.receive(frame, now_ms, listener.wall_ms())
        if isinstance(action, Forward):
            self._after.dispatch(connection, frame)
        else:
            self._act(connection, action)

    def _act(self, connection: Connection, action: Action) -> None:
        assert not isinstance(action, Forward), "only a frame can be forwarded"
        if isinstance(action, Answer):
            if self._server.is_authenticated:
                self._logged_in(connection)
            if action.frame:
                connection.answer(action.frame)
            else:
                connection.skip_answer()
        elif isinstance(action, Work):
            task = spawn(self._run(connection, action), "a login")
            self._listener.tasks.add(task)
            task.add_done_callback(self._listener.tasks.discard)
        else:
            self._refused(connection, action)

    async def _run(self, connection: Connection, work: Work) -> None:
        listener = self._listener
        done: Step | Rejected
        try:
            done = await offload(listener.executor, work.run)
        except Rejected as failure:
            done = failure
        action = self._server.resume(done, listener.clock_ms(), listener.wall_ms())
        if connection.is_open:
            self._act(connection, action)

    def _logged_in(self, connection: Connection) -> None:
        server, session, listener = self._server, connection.session, self._listener
        login = server.login
        assert login is not None
        renewed = connection.login_due_ms is None
        session.principal = Principal("User", login.name)
        session.by_token = login.by_token
        connection.login_due_ms = None
        connection.frame_bytes_max = listener.frame_bytes_max
        if server.ends_ms is None:
            connection.dispatcher = self._after
        else:
            connection.dispatcher = self
        logger.debug(
            "connection from %s on %s: %s logged in by %s%s",
            session.client_host,
            session.listener,
            shown(login.name),
            server.mechanism,
            " again" if renewed else "",
        )
        listener.audit.login(
            str(session.principal),
            session.client_host,
            session.listener,
            server.mechanism,
            again=renewed,
        )
        if renewed:
            listener.count(SUCCESSFUL_REAUTHENTICATIONS)
        else:
            listener.count(SUCCESSFUL_AUTHENTICATIONS)

    def _refused(self, connection: Connection, action: Close) -> None:
        """Answer and close, after the delay; what comes meanwhile is not read."""
        listener, session = self._listener, connection.session
        again = connection.login_due_ms is None
        connection.rejected("authentication")
        listener.audit.failed_login(
            session.client_host, session.listener, self._server.chosen, action.why, again=again
        )
        connection.note_rejection("authentication", action.why)
        if again:
            listener.count(FAILED_REAUTHENTICATIONS)
        else:
            listener.count(FAILED_AUTHENTICATIONS)
        logger.warning(
            "connection from %s on %s rejected: %s",
            session.client_host,
            session.listener,
            action.why,
        )
        connection.mute()
        delay_ms = listener.delay_ms if action.delayed else 0
        if delay_ms == 0:
            _answer_and_close(connection, action)
        else:
            asyncio.get_running_loop().call_later(
                delay_ms / 1000, _answer_and_close, connection, action
            )


def _answer_and_close(connection: Connection, action: Close) -> None:
    if action.frame:
        connection.answer(action.frame)
        asyncio.get_running_loop().call_later(LINGER_S, _close, connection)
    else:
        _close(connection)


def _close(connection: Connection) -> None:
    connection.close("rejected", level=logging.DEBUG)  # the reason was logged before

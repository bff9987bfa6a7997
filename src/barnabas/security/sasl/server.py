"""The SASL side of one connection: frames and time in, actions out.

    start ─ApiVersions→ versions known ─SaslHandshake→ tokens ─…→ authenticated ─SaslHandshake→ …

After SaslHandshake v1 tokens travel in SaslAuthenticate requests, after v0 as bare frames. A
session with an end is renewed by a further SaslHandshake (KIP-368), on the same connection, with
the same mechanism and for the same principal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RemoteProtocolError
from barnabas.security.sasl.exchange import (
    Exchange,
    Login,
    NewExchange,
    Rejected,
    Step,
    Work,
    shown,
)
from barnabas.wire.apis import API_BY_KEY, API_BY_NAME, API_VERSIONS_KEY
from barnabas.wire.codec import decode
from barnabas.wire.frame import SIZE, response_frame
from barnabas.wire.header import RequestHeader, decode_request_header
from barnabas.wire.messages.sasl_authenticate import SaslAuthenticateResponse
from barnabas.wire.messages.sasl_handshake import SaslHandshakeResponse
from barnabas.wire.software_name import is_software_name

SASL_HANDSHAKE_KEY = API_BY_NAME["SaslHandshake"].key
SASL_AUTHENTICATE_KEY = API_BY_NAME["SaslAuthenticate"].key
REAUTHENTICATE_AGAIN_MS = 1000
"""A re-authentication that begins earlier after the last one is refused."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Send a frame, or nothing, and continue with the client's next one."""

    frame: bytes


@dataclass(frozen=True, slots=True)
class Forward:
    """Let the broker answer the request as it answers any other."""


@dataclass(frozen=True, slots=True)
class Close:
    """Send a frame, or nothing, and close the connection."""

    why: str
    frame: bytes = b""
    delayed: bool = True
    """Whether both wait for connection.failed.authentication.delay.ms."""


Action = Answer | Forward | Close | Work
Refuse = Callable[[RequestHeader, memoryview, int], bytes]
"""Returns the frame that refuses a request with ILLEGAL_SASL_STATE; empty if it is unreadable."""


class _State(Enum):
    START = "start"
    VERSIONS_KNOWN = "versions known"
    TOKENS = "tokens"
    BARE_TOKENS = "bare tokens"
    AUTHENTICATED = "authenticated"
    ENDED = "ended"


class SaslServer:
    """Authenticates the client of one connection, and again whenever its session ends."""

    def __init__(
        self,
        mechanisms: Callable[[], Mapping[str, NewExchange]],
        max_reauth_ms: Callable[[str], int],
        refuse: Refuse,
    ) -> None:
        """Offer mechanisms; `max_reauth_ms` is the longest session of each, 0 without limit."""
        self._mechanisms = mechanisms
        self._max_reauth_ms = max_reauth_ms
        self._refuse = refuse
        self._state = _State.START
        self._exchange: Exchange | None = None
        self._in_reply_to: RequestHeader | None = None
        """The SaslAuthenticate request of the current token; None for a bare one."""
        self._began_ms: int | None = None
        self.chosen = ""
        """The mechanism of the exchange in progress, or of the last one."""
        self._refusal = ""
        """Why the client is being refused; many send something else than the expected reply."""
        self.mechanism = ""
        """The mechanism of the login."""
        self.login: Login | None = None
        self.ends_ms: int | None = None
        """When the session ends, by the monotonic clock; None for never."""

    @property
    def is_authenticated(self) -> bool:
        """Return whether the client is logged in, and not just about to log in again."""
        return self._state is _State.AUTHENTICATED

    @property
    def is_renewing(self) -> bool:
        """Return whether a client that is logged in is about to log in again."""
        return self.login is not None and not self.is_authenticated

    def has_expired(self, now_ms: int) -> bool:
        """Return whether the session has ended."""
        return self.ends_ms is not None and now_ms >= self.ends_ms

    def may_renew(self, now_ms: int) -> bool:
        """Return whether the client may log in again now."""
        return self.ends_ms is not None and (
            self._began_ms is None or now_ms - self._began_ms >= REAUTHENTICATE_AGAIN_MS
        )

    def receive(self, frame: memoryview, now_ms: int, wall_ms: int) -> Action:
        """Handle a frame: of a client that is not logged in, or that may and wants to renew."""
        if self._state is _State.BARE_TOKENS:
            self._in_reply_to = None
            return self._step(bytes(frame), now_ms, wall_ms)
        try:
            header, position = decode_request_header(frame)
            api = API_BY_KEY[header.api_key]
            versions = api.stable_versions
            if not versions.first <= header.api_version <= versions.last:
                return self._unsupported(header)
            if self._state is _State.TOKENS and header.api_key != SASL_AUTHENTICATE_KEY:
                return self._out_of_turn(header, frame, position)
            body: Any
            body, _ = decode(api.request, frame, header.api_version, position)
        except RemoteProtocolError as failure:
            return self._closed(f"unreadable request before authentication: {failure}")
        if self._state is _State.TOKENS:
            self._in_reply_to = header
            return self._step(bytes(body.auth_bytes), now_ms, wall_ms)
        if header.api_key == API_VERSIONS_KEY and self.login is None:
            return self._versions(header, body)
        if header.api_key == SASL_HANDSHAKE_KEY:
            return self._handshake(header, body.mechanism, now_ms)
        return self._closed(
            f"{api.name} before authentication: is the client's security.protocol SASL_…?"
        )

    def resume(self, done: Step | Rejected, now_ms: int, wall_ms: int) -> Action:
        """Handle the result of work that was run elsewhere."""
        if isinstance(done, Rejected):
            return self._rejected(done)
        return self._stepped(done, now_ms, wall_ms)

    # requests

    def _unsupported(self, header: RequestHeader) -> Action:
        if header.api_key == API_VERSIONS_KEY and self._state is _State.START:
            return Forward()  # the response says which versions there are
        return self._closed(
            f"{API_BY_KEY[header.api_key].name} version {header.api_version} before authentication"
        )

    def _versions(self, header: RequestHeader, body: Any) -> Action:
        if self._state is not _State.START:
            return self._closed("ApiVersions twice before authentication", delayed=False)
        names = body.client_software_name, body.client_software_version
        if header.api_version < 3 or all(is_software_name(name) for name in names):
            self._state = _State.VERSIONS_KNOWN
        return Forward()

    def _handshake(self, header: RequestHeader, mechanism: str, now_ms: int) -> Action:
        offered = self._mechanisms()
        response = SaslHandshakeResponse(mechanisms=list(offered))
        if mechanism not in offered:
            response.error_code = ErrorCode.UNSUPPORTED_SASL_MECHANISM
            return self._closed(
                f"SASL mechanism {shown(mechanism)} is not enabled ({', '.join(offered)} are)",
                response_frame(response, header.api_version, header.correlation_id),
            )
        if self.login is not None:
            self._began_ms = now_ms
        self.chosen = mechanism
        # Another mechanism in a re-authentication is refused with the first token.
        self._exchange = None
        if self.login is None or mechanism == self.mechanism:
            self._exchange = offered[mechanism]()
        self._state = _State.TOKENS if header.api_version else _State.BARE_TOKENS
        return Answer(response_frame(response, header.api_version, header.correlation_id))

    def _out_of_turn(self, header: RequestHeader, frame: memoryview, position: int) -> Action:
        name = API_BY_KEY[header.api_key].name
        why = f"{name} instead of SaslAuthenticate"
        if self._refusal:
            why = f"{why}, after {self._refusal}"
        return self._closed(why, self._refuse(header, frame, position))

    # tokens

    def _step(self, token: bytes, now_ms: int, wall_ms: int) -> Action:
        if self._exchange is None:
            return self._closed(
                f"SASL mechanism changed in re-authentication from {self.mechanism} "
                f"to {self.chosen}"
            )
        try:
            step = self._exchange.step(token, wall_ms)
        except Rejected as failure:
            return self._rejected(failure)
        return step if isinstance(step, Work) else self._stepped(step, now_ms, wall_ms)

    def _stepped(self, step: Step, now_ms: int, wall_ms: int) -> Action:
        lifetime_ms = 0
        self._refusal = step.refusal
        if step.login is not None:
            if self.login is not None and step.login.name != self.login.name:
                return self._rejected(
                    Rejected(
                        f"principal changed in re-authentication from {shown(self.login.name)} "
                        f"to {shown(step.login.name)}",
                        "Cannot change principals during re-authentication from "
                        f"User.{self.login.name}: User.{step.login.name}",
                    )
                )
            lifetime_ms = self._logged_in(step.login, now_ms, wall_ms)
        if self._in_reply_to is None:
            bare = step.answer
            return Answer(b"" if bare is None else SIZE.pack(len(bare)) + bare)
        return Answer(
            self._response(
                SaslAuthenticateResponse(
                    error_message=None,
                    auth_bytes=step.answer or b"",
                    session_lifetime_ms=lifetime_ms,
                )
            )
        )

    def _logged_in(self, login: Login, now_ms: int, wall_ms: int) -> int:
        """Begin a session; return how long it lasts, 0 for as long as the connection."""
        ends = []
        limit_ms = self._max_reauth_ms(self.chosen)
        if limit_ms > 0:
            ends.append(limit_ms)
        if login.ends_ms is not None:
            ends.append(max(login.ends_ms - wall_ms, 1))
        self.login, self.mechanism = login, self.chosen
        self._state, self._exchange = _State.AUTHENTICATED, None
        self.ends_ms = now_ms + min(ends) if ends else None
        return min(ends, default=0)

    def _rejected(self, failure: Rejected) -> Action:
        phase = "authentication" if self.login is None else "re-authentication"
        why = f"{phase} failed ({self.chosen}): {failure}"
        if self._in_reply_to is None:
            return self._closed(why)
        told = failure.told
        if told is None:
            told = (
                f"Authentication failed during {phase} due to invalid credentials with "
                f"SASL mechanism {self.chosen}"
            )
        return self._closed(
            why,
            self._response(
                SaslAuthenticateResponse(
                    error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=told
                )
            ),
        )

    def _response(self, response: SaslAuthenticateResponse) -> bytes:
        header = self._in_reply_to
        assert header is not None
        return response_frame(response, header.api_version, header.correlation_id)

    def _closed(self, why: str, frame: bytes = b"", *, delayed: bool = True) -> Close:
        self._state = _State.ENDED
        return Close(why, frame, delayed)

"""SASL authentication with a broker: SaslHandshake, then SaslAuthenticate until both sides agree.

A mechanism is a small conversation that does not know requests:

    first()             the first message
    next(challenge)     the response to the broker's challenge; empty when there is nothing to send

A rejection is an `AuthenticationFailedError` (or `UnsupportedSaslMechanismError`) with the broker's
message; retrying with the same credentials is pointless. If the broker limits the session,
authentication is renewed when most of it has passed (KIP-368), at a random moment so that many
clients do not do so at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from barnabas.client.addresses import Address
from barnabas.client.errors import AuthenticationFailedError
from barnabas.client.opening import Ask
from barnabas.model.error_codes import ErrorCode
from barnabas.model.request_errors import UnsupportedSaslMechanismError, request_error
from barnabas.wire.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from barnabas.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

RENEW_FROM, RENEW_TO = 0.85, 0.95
"""The fraction of a session after which it is renewed."""


class Mechanism(Protocol):
    """One conversation of a SASL mechanism, from the client's side."""

    @property
    def done(self) -> bool:
        """Return whether the exchange is complete for the client."""

    async def first(self) -> bytes:
        """Return the first message."""

    async def next(self, challenge: bytes) -> bytes:
        """Return the response to a challenge; raise AuthenticationFailedError if it is invalid."""


Converse = Callable[[str], Mechanism]
"""Begins a conversation with the broker on a host."""


class Authentication:
    """Authenticates connections by a mechanism, each with a conversation of its own."""

    def __init__(self, mechanism: str, converse: Converse, random: Callable[[], float]) -> None:
        self.mechanism = mechanism
        self._converse = converse
        self._random = random

    async def __call__(self, ask: Ask, address: Address) -> float:
        """Authenticate; return after how many milliseconds to reauthenticate, 0: never."""
        await self._choose(ask, address)
        conversation = self._converse(address.host)
        message = await conversation.first()
        while True:
            answer: SaslAuthenticateResponse = await ask(
                SaslAuthenticateRequest(auth_bytes=message)
            )
            self._check(answer, address)
            message = await conversation.next(answer.auth_bytes)
            if conversation.done:
                break
        part = RENEW_FROM + (RENEW_TO - RENEW_FROM) * self._random()
        return answer.session_lifetime_ms * part

    async def _choose(self, ask: Ask, address: Address) -> None:
        chosen: SaslHandshakeResponse = await ask(SaslHandshakeRequest(mechanism=self.mechanism))
        if chosen.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
            raise UnsupportedSaslMechanismError(
                f"{address} does not accept sasl.mechanism={self.mechanism}; "
                f"it offers {', '.join(chosen.mechanisms) or 'none'}"
            )
        if chosen.error_code:
            raise request_error(
                chosen.error_code,
                f"{address} rejected SASL: {ErrorCode.of(chosen.error_code).meaning}; "
                f"see security.protocol",
            )

    def _check(self, answer: SaslAuthenticateResponse, address: Address) -> None:
        if answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED:
            raise AuthenticationFailedError(
                f"{address} rejected the credentials ({self.mechanism}): "
                f"{answer.error_message or 'no reason given'}"
            )
        if answer.error_code:
            raise request_error(
                answer.error_code,
                f"{address} failed to authenticate this client ({self.mechanism}): "
                f"{answer.error_message or ErrorCode.of(answer.error_code).meaning}",
            )

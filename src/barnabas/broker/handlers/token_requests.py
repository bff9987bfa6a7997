"""What the requests about delegation tokens have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.config.listeners import SecurityProtocol
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.security.delegation_tokens import Lifetimes
from barnabas.security.principal import ANONYMOUS

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.session import Session

USER = "User"
FIRST_REQUESTER_VERSION = 3
"""From it on, answers say who has requested a token; its owner may be another."""


def check_channel(session: Session) -> None:
    """Raise unless the client has logged in, and by something else than a token."""
    named = session.protocol is not SecurityProtocol.PLAINTEXT and not (
        session.protocol is SecurityProtocol.SSL and session.principal == ANONYMOUS
    )
    if not named or session.by_token:
        raise RequestError(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)


def check_enabled(broker: Broker) -> None:
    """Raise unless this broker has the secret that signs tokens."""
    if not broker.delegation_tokens.enabled:
        raise RequestError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)


def check_request(broker: Broker, session: Session) -> None:
    """Raise unless the client may ask about tokens, and this broker has any."""
    check_channel(session)
    check_enabled(broker)


def lifetimes_of(broker: Broker) -> Lifetimes:
    """Return how long tokens are valid."""
    options = broker.options
    return Lifetimes(
        options.delegation_token_max_lifetime_ms, options.delegation_token_expiry_time_ms
    )

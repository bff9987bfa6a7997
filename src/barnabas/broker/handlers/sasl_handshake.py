"""SaslHandshake of a client that need not log in (again), or cannot: rejected.

The handshakes of logins do not come here: `network/authentication.py` handles them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.model.error_codes import ErrorCode
from barnabas.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.request import Request


def handle(broker: Broker, request: Request[SaslHandshakeRequest]) -> SaslHandshakeResponse:
    """Answer that no login is expected."""
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)


def refuse(
    request: SaslHandshakeRequest, code: ErrorCode, message: str | None
) -> SaslHandshakeResponse:
    """Answer with an error."""
    return SaslHandshakeResponse(error_code=code)

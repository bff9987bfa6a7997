"""SaslAuthenticate of a client that is logged in, or on a listener without SASL: rejected.

The tokens of a login do not come here: `network/authentication.py` handles them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.model.error_codes import ErrorCode
from barnabas.wire.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.request import Request


def handle(broker: Broker, request: Request[SaslAuthenticateRequest]) -> SaslAuthenticateResponse:
    """Answer that no token is expected."""
    return SaslAuthenticateResponse(
        error_code=ErrorCode.ILLEGAL_SASL_STATE,
        error_message="SaslAuthenticate request received after successful authentication",
    )


def refuse(
    request: SaslAuthenticateRequest, code: ErrorCode, message: str | None
) -> SaslAuthenticateResponse:
    """Answer with an error."""
    return SaslAuthenticateResponse(error_code=code, error_message=message)

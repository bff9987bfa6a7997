"""ExpireDelegationToken: another expiry, or the end of a token at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.handlers.token_requests import check_request
from barnabas.model.error_codes import ErrorCode
from barnabas.wire.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.request import Request


async def handle(
    broker: Broker, request: Request[ExpireDelegationTokenRequest]
) -> ExpireDelegationTokenResponse:
    """Change a token's expiry, if the client owns it or is among its renewers."""
    check_request(broker, request.session)
    token, ends_now = broker.delegation_tokens.expiring(
        bytes(request.body.hmac),
        request.session.principal,
        request.body.expiry_time_period_ms,
        broker.now_ms(),
    )
    if ends_now:
        await broker.parts.shared_tokens.remove(token.token_id)
    else:
        await broker.parts.shared_tokens.renew(token)
    broker.audit_change(
        request.session, "token expired", token=token.token_id, expires=str(token.expires_ms)
    )
    return ExpireDelegationTokenResponse(expiry_timestamp_ms=token.expires_ms)


def refuse(
    request: ExpireDelegationTokenRequest, code: ErrorCode, message: str | None
) -> ExpireDelegationTokenResponse:
    """Answer with an error."""
    return ExpireDelegationTokenResponse(error_code=code, expiry_timestamp_ms=-1)

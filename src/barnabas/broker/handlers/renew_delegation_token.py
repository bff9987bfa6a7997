"""RenewDelegationToken: a later expiry, up to the token's maximum lifetime."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.handlers.token_requests import check_request, lifetimes_of
from barnabas.model.error_codes import ErrorCode
from barnabas.wire.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.request import Request


async def handle(
    broker: Broker, request: Request[RenewDelegationTokenRequest]
) -> RenewDelegationTokenResponse:
    """Renew a token, if the client owns it or is among its renewers."""
    check_request(broker, request.session)
    token = broker.delegation_tokens.renewed(
        bytes(request.body.hmac),
        request.session.principal,
        request.body.renew_period_ms,
        lifetimes_of(broker),
        broker.now_ms(),
    )
    await broker.parts.shared_tokens.renew(token)
    broker.audit_change(
        request.session, "token renewed", token=token.token_id, expires=str(token.expires_ms)
    )
    return RenewDelegationTokenResponse(expiry_timestamp_ms=token.expires_ms)


def refuse(
    request: RenewDelegationTokenRequest, code: ErrorCode, message: str | None
) -> RenewDelegationTokenResponse:
    """Answer with an error."""
    return RenewDelegationTokenResponse(error_code=code, expiry_timestamp_ms=-1)

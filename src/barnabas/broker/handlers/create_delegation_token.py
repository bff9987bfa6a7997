"""CreateDelegationToken: a password for a limited time, for oneself or (v3) for another user."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.handlers.token_requests import (
    FIRST_REQUESTER_VERSION,
    USER,
    check_channel,
    check_enabled,
    lifetimes_of,
)
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.security.authorizer import Operation, ResourceType
from barnabas.security.principal import Principal
from barnabas.wire.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.request import Request


async def handle(
    broker: Broker, request: Request[CreateDelegationTokenRequest]
) -> CreateDelegationTokenResponse:
    """Create a token, store it, and answer with its password."""
    body, session = request.body, request.session
    requester = owner = session.principal
    if body.owner_principal_name:
        owner = Principal(body.owner_principal_type or USER, body.owner_principal_name)
    check_channel(session)
    if owner != requester and not broker.allows(
        session, Operation.CREATE_TOKENS, ResourceType.USER, str(owner)
    ):
        raise RequestError(ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED)
    renewers = [Principal(each.principal_type, each.principal_name) for each in body.renewers]
    if any(renewer.kind != USER for renewer in renewers):
        raise RequestError(ErrorCode.INVALID_PRINCIPAL_TYPE)
    check_enabled(broker)
    tokens = broker.delegation_tokens
    token = tokens.create(
        owner, requester, renewers, body.max_lifetime_ms, lifetimes_of(broker), broker.now_ms()
    )
    await broker.parts.shared_tokens.add(token)
    broker.audit_change(session, "token created", token=token.token_id, owner=str(owner))
    named = request.version >= FIRST_REQUESTER_VERSION
    return CreateDelegationTokenResponse(
        principal_type=owner.kind,
        principal_name=owner.name,
        token_requester_principal_type=requester.kind if named else "",
        token_requester_principal_name=requester.name if named else "",
        issue_timestamp_ms=token.issued_ms,
        expiry_timestamp_ms=token.expires_ms,
        max_timestamp_ms=token.ends_ms,
        token_id=token.token_id,
        hmac=tokens.hmac_of(token.token_id),
    )


def refuse(
    request: CreateDelegationTokenRequest, code: ErrorCode, message: str | None
) -> CreateDelegationTokenResponse:
    """Answer with an error."""
    return CreateDelegationTokenResponse(
        error_code=code,
        issue_timestamp_ms=-1,
        expiry_timestamp_ms=-1,
        max_timestamp_ms=-1,
    )

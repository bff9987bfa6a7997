"""DescribeDelegationToken: the tokens that a client may see, with their passwords."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.handlers.token_requests import FIRST_REQUESTER_VERSION, check_request
from barnabas.model.error_codes import ErrorCode
from barnabas.security.authorizer import Operation, ResourceType
from barnabas.security.delegation_tokens import DelegationToken
from barnabas.security.principal import Principal
from barnabas.wire.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.request import Request


def handle(
    broker: Broker, request: Request[DescribeDelegationTokenRequest]
) -> DescribeDelegationTokenResponse:
    """List tokens; the others are left out without an error."""
    session = request.session
    check_request(broker, session)
    owners = None
    if request.body.owners is not None:
        owners = [
            Principal(each.principal_type, each.principal_name) for each in request.body.owners
        ]

    def may_see(token: DelegationToken) -> bool:
        return (
            token.concerns(session.principal)
            or broker.allows(
                session, Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.token_id
            )
            or broker.allows(
                session, Operation.DESCRIBE_TOKENS, ResourceType.USER, str(token.owner)
            )
        )

    tokens = broker.delegation_tokens
    named = request.version >= FIRST_REQUESTER_VERSION
    return DescribeDelegationTokenResponse(
        tokens=[
            DescribedDelegationToken(
                principal_type=token.owner.kind,
                principal_name=token.owner.name,
                token_requester_principal_type=token.requester.kind if named else "",
                token_requester_principal_name=token.requester.name if named else "",
                issue_timestamp=token.issued_ms,
                expiry_timestamp=token.expires_ms,
                max_timestamp=token.ends_ms,
                token_id=token.token_id,
                hmac=tokens.hmac_of(token.token_id),
                renewers=[
                    DescribedDelegationTokenRenewer(
                        principal_type=renewer.kind, principal_name=renewer.name
                    )
                    for renewer in token.renewers
                ],
            )
            for token in tokens.visible(owners, may_see)
        ]
    )


def refuse(
    request: DescribeDelegationTokenRequest, code: ErrorCode, message: str | None
) -> DescribeDelegationTokenResponse:
    """Answer with an error."""
    return DescribeDelegationTokenResponse(error_code=code)

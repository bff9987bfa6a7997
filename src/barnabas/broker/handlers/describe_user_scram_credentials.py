"""DescribeUserScramCredentials: which users can log in by SCRAM, and the iterations of each."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from barnabas.security.sasl.scram_credentials import MECHANISMS
from barnabas.wire.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.request import Request


def handle(
    broker: Broker, request: Request[DescribeUserScramCredentialsRequest]
) -> DescribeUserScramCredentialsResponse:
    """Describe the named users, or all; never a salt or a key."""
    if not broker.allows(request.session, Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME):
        raise RequestError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    credentials = broker.sasl.credentials
    named = [user.name for user in request.body.users or ()] or credentials.users
    results = []
    for user, count in sorted(Counter(named).items()):
        result = DescribeUserScramCredentialsResult(user=user, error_message=None)
        found = credentials.of_user(user)
        if count > 1:
            result.error_code = ErrorCode.DUPLICATE_RESOURCE
            result.error_message = (
                f"Cannot describe SCRAM credentials for the same user twice in a single request: "
                f"{user}"
            )
        elif not found:
            result.error_code = ErrorCode.RESOURCE_NOT_FOUND
            result.error_message = (
                f"Attempt to describe a user credential that does not exist: {user}"
            )
        else:
            result.credential_infos = [
                CredentialInfo(mechanism=MECHANISMS[name].number, iterations=credential.iterations)
                for name, credential in found.items()
            ]
        results.append(result)
    return DescribeUserScramCredentialsResponse(error_message=None, results=results)


def refuse(
    request: DescribeUserScramCredentialsRequest, code: ErrorCode, message: str | None
) -> DescribeUserScramCredentialsResponse:
    """Answer the request, and every user that it names, with one error."""
    return DescribeUserScramCredentialsResponse(
        error_code=code,
        error_message=message,
        results=[
            DescribeUserScramCredentialsResult(
                user=user.name, error_code=code, error_message=message
            )
            for user in request.users or ()
        ],
    )

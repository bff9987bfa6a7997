"""AlterUserScramCredentials: set and delete passwords of users, which the client has salted.

All changes of one user succeed or fail together. The keys are stored beside the user's quotas.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from barnabas.broker.cluster.tree_errors import refused_as
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from barnabas.security.sasl.scram_credentials import (
    BY_NUMBER,
    ITERATIONS_MAX,
    ITERATIONS_MIN,
    ScramCredential,
)
from barnabas.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.request import Request

Change = ScramCredentialDeletion | ScramCredentialUpsertion


async def handle(
    broker: Broker, request: Request[AlterUserScramCredentialsRequest]
) -> AlterUserScramCredentialsResponse:
    """Change each user on its own."""
    body = request.body
    if not broker.allows(request.session, Operation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME):
        raise RequestError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    broker.check_controller()
    results = []
    for user, changes in _by_user(body).items():
        result = AlterUserScramCredentialsResult(user=user, error_message=None)
        try:
            _check(user, changes)
            await _store(broker, user, changes)
            broker.audit_change(
                request.session, "user changed", user=user, changes=_described(changes)
            )
        except RequestError as failure:
            result.error_code, result.error_message = failure.code, failure.message
        results.append(result)
    return AlterUserScramCredentialsResponse(results=results)


def refuse(
    request: AlterUserScramCredentialsRequest, code: ErrorCode, message: str | None
) -> AlterUserScramCredentialsResponse:
    """Answer every user with one error."""
    return AlterUserScramCredentialsResponse(
        results=[
            AlterUserScramCredentialsResult(user=user, error_code=code, error_message=message)
            for user in _by_user(request)
        ]
    )


def _described(changes: Iterable[Change]) -> str:
    return ", ".join(
        f"{BY_NUMBER[change.mechanism].name} "
        f"{'set' if isinstance(change, ScramCredentialUpsertion) else 'deleted'}"
        for change in changes
    )


def _by_user(request: AlterUserScramCredentialsRequest) -> dict[str, list[Change]]:
    users: dict[str, list[Change]] = {}
    changes: list[Change] = [*request.deletions, *request.upsertions]
    for change in changes:
        users.setdefault(change.name, []).append(change)
    return users


def _check(user: str, changes: Iterable[Change]) -> None:
    """Raise RequestError for what can be seen without the credentials that there are."""
    if not user:
        raise RequestError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if not user.isprintable():
        raise RequestError(
            ErrorCode.UNACCEPTABLE_CREDENTIAL, "a user name must not have control characters"
        )
    seen: set[int] = set()
    for change in changes:
        if change.mechanism not in BY_NUMBER:
            raise RequestError(
                ErrorCode.UNSUPPORTED_SASL_MECHANISM, f"Unknown SCRAM mechanism: {change.mechanism}"
            )
        if change.mechanism in seen:
            raise RequestError(
                ErrorCode.DUPLICATE_RESOURCE,
                "A user credential cannot be altered twice in the same request",
            )
        seen.add(change.mechanism)
        if isinstance(change, ScramCredentialUpsertion):
            _check_strength(change)


def _check_strength(change: ScramCredentialUpsertion) -> None:
    if change.iterations < ITERATIONS_MIN:
        raise RequestError(
            ErrorCode.UNACCEPTABLE_CREDENTIAL,
            f"Too few iterations: {change.iterations}, the minimum is {ITERATIONS_MIN}",
        )
    if change.iterations > ITERATIONS_MAX:
        raise RequestError(
            ErrorCode.UNACCEPTABLE_CREDENTIAL,
            f"Too many iterations: {change.iterations}, the maximum is {ITERATIONS_MAX}",
        )


async def _store(broker: Broker, user: str, changes: Iterable[Change]) -> None:
    def changed(configs: dict[str, str]) -> Mapping[str, str]:
        for change in changes:
            mechanism = BY_NUMBER[change.mechanism]
            if isinstance(change, ScramCredentialUpsertion):
                configs[mechanism.name] = ScramCredential.of_salted(
                    mechanism, change.salt, change.salted_password, change.iterations
                ).encode()
            elif configs.pop(mechanism.name, None) is None:
                raise RequestError(
                    ErrorCode.RESOURCE_NOT_FOUND,
                    "Attempt to delete a user credential that does not exist",
                )
        return configs

    with refused_as():
        values = await broker.parts.config_store.update("users", user, changed)
    broker.configs_changed("users", user, values)

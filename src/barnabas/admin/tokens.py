"""Delegation tokens: credentials that an authenticated user hands to others for a limited time.

token = await create_delegation_token(client, renewers=["User:ada"], lifetime_ms=3_600_000)
await renew_delegation_token(client, token.hmac)
await expire_delegation_token(client, token.hmac)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from barnabas.admin.controller import at_controller
from barnabas.admin.failures import check
from barnabas.client.cluster_client import ClusterClient
from barnabas.client.connection import Connection
from barnabas.model.errors import InvalidValueError
from barnabas.wire.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from barnabas.wire.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from barnabas.wire.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from barnabas.wire.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)

FIRST_VERSION_WITH_OWNER = 3
BROKERS_CHOICE = -1
"""In place of a time: the broker's default. For an expiry it means immediately."""


@dataclass(frozen=True, slots=True)
class DelegationToken:
    """A token; `hmac` is its secret. Principals are written like `User:ada`."""

    token_id: str
    hmac: bytes = field(repr=False)
    owner: str
    requester: str | None
    issue_ms: int
    expiry_ms: int
    max_ms: int
    renewers: tuple[str, ...]


async def create_delegation_token(
    client: ClusterClient,
    *,
    renewers: Iterable[str] = (),
    lifetime_ms: int = BROKERS_CHOICE,
    owner: str | None = None,
    timeout_ms: float | None = None,
) -> DelegationToken:
    """Create a token for the caller, or for `owner` (3.3 and later) if that is permitted."""
    allowed = list(renewers)

    async def ask(connection: Connection) -> CreateDelegationTokenResponse:
        least = 0 if owner is None else FIRST_VERSION_WITH_OWNER
        version = connection.version_of(CreateDelegationTokenRequest, at_least=least)
        kind, name = (None, None) if owner is None else _principal(owner)
        fields = {"owner_principal_type": kind, "owner_principal_name": name}
        request = CreateDelegationTokenRequest(
            renewers=[
                CreatableRenewers(principal_type=kind, principal_name=name)
                for kind, name in map(_principal, allowed)
            ],
            max_lifetime_ms=lifetime_ms,
            **(fields if version >= FIRST_VERSION_WITH_OWNER else {}),
        )
        response: CreateDelegationTokenResponse = await connection.send(request, version=version)
        check(response.error_code, "delegation token")
        return response

    made = await at_controller(client, ask, timeout_ms=timeout_ms)
    return DelegationToken(
        made.token_id,
        bytes(made.hmac),
        f"{made.principal_type}:{made.principal_name}",
        _requester(made.token_requester_principal_type, made.token_requester_principal_name),
        made.issue_timestamp_ms,
        made.expiry_timestamp_ms,
        made.max_timestamp_ms,
        tuple(allowed),
    )


async def renew_delegation_token(
    client: ClusterClient,
    hmac: bytes,
    *,
    period_ms: int = BROKERS_CHOICE,
    timeout_ms: float | None = None,
) -> int:
    """Renew a token and return its new expiry time."""
    request = RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms)
    return await _change_expiry(client, request, timeout_ms)


async def expire_delegation_token(
    client: ClusterClient,
    hmac: bytes,
    *,
    period_ms: int = BROKERS_CHOICE,
    timeout_ms: float | None = None,
) -> int:
    """Expire a token after a time, or immediately, and return its new expiry time."""
    request = ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms)
    return await _change_expiry(client, request, timeout_ms)


async def _change_expiry(
    client: ClusterClient,
    request: RenewDelegationTokenRequest | ExpireDelegationTokenRequest,
    timeout_ms: float | None,
) -> int:
    async def ask(connection: Connection) -> int:
        response: RenewDelegationTokenResponse | ExpireDelegationTokenResponse
        response = await connection.send(request)
        check(response.error_code, "delegation token")
        return response.expiry_timestamp_ms

    return await at_controller(client, ask, timeout_ms=timeout_ms)


async def describe_delegation_token(
    client: ClusterClient, owners: Iterable[str] | None = None, *, timeout_ms: float | None = None
) -> list[DelegationToken]:
    """Return the tokens of owners (None: all) that the caller may see."""
    wanted = None if owners is None else [_principal(owner) for owner in owners]
    request = DescribeDelegationTokenRequest(
        owners=None
        if wanted is None
        else [
            DescribeDelegationTokenOwner(principal_type=kind, principal_name=name)
            for kind, name in wanted
        ]
    )

    async def attempt() -> DescribeDelegationTokenResponse:
        response: DescribeDelegationTokenResponse = await client.send(request)
        check(response.error_code, "delegation tokens")
        return response

    response = await client.retrying(attempt, timeout_ms=timeout_ms)
    return [
        DelegationToken(
            token.token_id,
            bytes(token.hmac),
            f"{token.principal_type}:{token.principal_name}",
            _requester(token.token_requester_principal_type, token.token_requester_principal_name),
            token.issue_timestamp,
            token.expiry_timestamp,
            token.max_timestamp,
            tuple(f"{each.principal_type}:{each.principal_name}" for each in token.renewers),
        )
        for token in response.tokens
    ]


def _principal(text: str) -> tuple[str, str]:
    kind, colon, name = text.partition(":")
    if not (kind and colon and name):
        raise InvalidValueError(f"principal {text!r}: must be of the form User:name")
    return kind, name


def _requester(kind: str, name: str) -> str | None:
    return f"{kind}:{name}" if kind or name else None

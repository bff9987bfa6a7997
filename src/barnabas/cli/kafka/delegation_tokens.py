"""`kafka-delegation-tokens`: create, renew, expire and describe delegation tokens."""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from barnabas.cli.kafka.acl_rules import principals_of
from barnabas.cli.kafka.flags import BOOTSTRAP, COMMAND_CONFIG, Flag, Flags, Given
from barnabas.cli.session import run as run_session

if TYPE_CHECKING:
    from barnabas.admin.tokens import DelegationToken
    from barnabas.client.cluster_client import ClusterClient

FAILURE = "Error while executing delegation token command : "


def _hmac(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except Error:
        raise ValueError("must be the HMAC of a token, in base64") from None


FLAGS = Flags(
    "Create, renew, expire and describe delegation tokens.",
    (
        BOOTSTRAP._replace(required=True),
        COMMAND_CONFIG._replace(required=True),
        Flag("--create", help="create a token"),
        Flag("--renew", help="renew a token"),
        Flag("--expire", help="expire a token"),
        Flag("--describe", help="describe tokens"),
        Flag("--owner-principal", "User:NAME", "whose tokens", many=True),
        Flag("--renewer-principal", "User:NAME", "who else may renew it", many=True),
        Flag("--max-life-time-period", "MS", "how long it may be renewed; -1: the broker's", int),
        Flag("--renew-time-period", "MS", "how long it is valid; -1: the broker's", int),
        Flag("--expiry-time-period", "MS", "how long it stays valid; -1: it ends now", int),
        Flag("--hmac", "HMAC", "the token's HMAC, in base64", _hmac),
    ),
    one_of=(("create", "renew", "expire", "describe"),),
    needs={
        "create": ("max-life-time-period",),
        "renew": ("hmac", "renew-time-period"),
        "expire": ("hmac", "expiry-time-period"),
    },
    excludes={
        "create": ("hmac", "renew-time-period", "expiry-time-period"),
        "renew": (
            "renewer-principal",
            "max-life-time-period",
            "expiry-time-period",
            "owner-principal",
        ),
        "expire": (
            "renewer-principal",
            "max-life-time-period",
            "renew-time-period",
            "owner-principal",
        ),
        "describe": (
            "renewer-principal",
            "max-life-time-period",
            "renew-time-period",
            "expiry-time-period",
            "hmac",
        ),
    },
)


def run(given: Given) -> None:
    """Do what is asked for."""
    owners = principals_of(given, "owner-principal")
    renewers = principals_of(given, "renewer-principal")
    hmac = b64encode(given["hmac"] or b"").decode()
    if "create" in given:
        print(
            f"Calling create token operation with renewers :[{', '.join(renewers)}] , "
            f"max-life-time-period :{given['max-life-time-period']}"
        )
    elif "renew" in given:
        period = given["renew-time-period"]
        print(f"Calling renew token operation with hmac :{hmac} , renew-time-period :{period}")
    elif "expire" in given:
        period = given["expiry-time-period"]
        print(f"Calling expire token operation with hmac :{hmac} , expire-time-period :{period}")
    elif owners:
        print(f"Calling describe token operation for owners: [{', '.join(owners)}]")
    else:
        print("Calling describe token operation for current user.")

    async def work(client: ClusterClient) -> None:
        if "create" in given:
            await _create(client, given, renewers, owners)
        elif "describe" in given:
            await _describe(client, owners)
        else:
            await _change(client, given)

    run_session(given.connection(), work)


async def _create(
    client: ClusterClient, given: Given, renewers: list[str], owners: list[str]
) -> None:
    from barnabas.admin.tokens import create_delegation_token

    token = await create_delegation_token(
        client,
        renewers=renewers,
        lifetime_ms=given["max-life-time-period"],
        owner=owners[0] if owners else None,
    )
    print(f"Created delegation token with tokenId : {token.token_id}")
    _print([token])


async def _change(client: ClusterClient, given: Given) -> None:
    from barnabas.admin.tokens import expire_delegation_token, renew_delegation_token

    if "renew" in given:
        period_ms = given["renew-time-period"]
        expiry_ms = await renew_delegation_token(client, given["hmac"], period_ms=period_ms)
        verb = "renew"
    else:
        period_ms = given["expiry-time-period"]
        expiry_ms = await expire_delegation_token(client, given["hmac"], period_ms=period_ms)
        verb = "expire"
    print(f"Completed {verb} operation. New expiry date : {_date(expiry_ms)}", end="")


async def _describe(client: ClusterClient, owners: list[str]) -> None:
    from barnabas.admin.tokens import describe_delegation_token

    tokens = await describe_delegation_token(client, owners or None)
    print(f"Total number of tokens : {len(tokens)}", end="")
    _print(tokens)


def _print(tokens: Sequence[DelegationToken]) -> None:
    _print_row(
        "TOKENID", "HMAC", "OWNER", "REQUESTER", "RENEWERS", "ISSUEDATE", "EXPIRYDATE", "MAXDATE"
    )
    for token in tokens:
        _print_row(
            token.token_id,
            b64encode(token.hmac).decode(),
            token.owner,
            token.requester or "",
            f"[{', '.join(token.renewers)}]",
            _date(token.issue_ms),
            _date(token.expiry_ms),
            _date(token.max_ms),
        )
        print()


def _print_row(*cells: str) -> None:
    widths = (15, 30, 15, 15, 25, 15, 15, 15)
    print()
    print(" ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)))


def _date(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000).strftime("%Y-%m-%dT%H:%M")

"""`barnabas tokens`: delegation tokens, with which others log in as their owner for a while.

The HMAC of a token is its password: it goes to a file that only its owner can read, or is printed
when that is asked for. Tokens are named by their ids, so that no secret is on a command line.
"""

from __future__ import annotations

import argparse
import base64
import os
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from barnabas.admin.tokens import (
    BROKERS_CHOICE,
    DelegationToken,
    create_delegation_token,
    describe_delegation_token,
    expire_delegation_token,
    renew_delegation_token,
)
from barnabas.cli.arguments import add_action, duration_ms, principal
from barnabas.cli.command_config import client_options
from barnabas.cli.output import print_json, print_table
from barnabas.cli.session import run
from barnabas.client.cluster_client import ClusterClient
from barnabas.model.errors import InvalidValueError

MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")
ID_HELP = "id of the token; put -- before one of Apache Kafka's that begins with a dash"

_HANDED_ON = {
    "bootstrap.servers": "bootstrap.servers",
    "ssl.cafile": "ssl.truststore.location",
    "ssl.truststore.type": "ssl.truststore.type",
    "ssl.truststore.password": "ssl.truststore.password",
    "ssl.truststore.certificates": "ssl.truststore.certificates",
    "ssl.enabled.protocols": "ssl.enabled.protocols",
    "ssl.ciphers": "ssl.cipher.suites",
    "ssl.endpoint.identification.algorithm": "ssl.endpoint.identification.algorithm",
}
"""Options of this command that a user of the token needs, too, by the names that Java knows."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of all actions."""
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    creating = add_action(
        actions,
        "create",
        "create a token",
        _create,
        "  barnabas tokens create --output token.properties\n"
        "  barnabas tokens create --renewer scheduler --max-lifetime 7d --output job.properties\n"
        "  barnabas tokens create --owner ada --show-secret\n\n"
        "A client that is given token.properties logs in as the owner, until the token expires.",
    )
    creating.add_argument(
        "--owner",
        metavar="PRINCIPAL",
        type=principal,
        help="whose token it is (default: the user of this command); ada is User:ada",
    )
    creating.add_argument(
        "--renewer",
        metavar="PRINCIPAL",
        type=principal,
        action="append",
        default=[],
        help="who else may renew and expire it; may be repeated",
    )
    creating.add_argument(
        "--max-lifetime",
        metavar="SPAN",
        type=duration_ms,
        default=BROKERS_CHOICE,
        help="how long it can be renewed, like 8h or 7d "
        "(default and maximum: the broker's delegation.token.max.lifetime.ms)",
    )
    creating.add_argument(
        "--output",
        metavar="FILE",
        help="write client options that use the token to a new file, which only you can read",
    )
    creating.add_argument(
        "--mechanism",
        choices=MECHANISMS,
        help="sasl.mechanism in this file (default: that of --command-config, or SCRAM-SHA-256)",
    )
    _add_show_secret(creating)
    listing = add_action(
        actions,
        "list",
        "show the tokens that you may see",
        _list,
        "  barnabas tokens list\n  barnabas tokens list --owner ada --json",
    )
    listing.add_argument(
        "--owner",
        metavar="PRINCIPAL",
        type=principal,
        action="append",
        help="only tokens of this owner; may be repeated",
    )
    _add_show_secret(listing)
    renewing = add_action(
        actions,
        "renew",
        "let a token expire later, up to its maximum lifetime",
        _renew,
        "  barnabas tokens renew ID\n  barnabas tokens renew ID --period 12h",
    )
    renewing.add_argument("token", metavar="ID", help=ID_HELP)
    renewing.add_argument(
        "--period",
        metavar="SPAN",
        type=duration_ms,
        default=BROKERS_CHOICE,
        help="from now on, like 12h (default: the broker's delegation.token.expiry.time.ms)",
    )
    expiring = add_action(
        actions,
        "expire",
        "let a token expire now, or soon",
        _expire,
        "  barnabas tokens expire ID\n  barnabas tokens expire ID --after 10m\n\n"
        "Connections that are open stay open until they have to log in again.",
    )
    expiring.add_argument("token", metavar="ID", help=ID_HELP)
    expiring.add_argument(
        "--after",
        metavar="SPAN",
        type=duration_ms,
        default=BROKERS_CHOICE,
        help="after this long, like 10m (default: now)",
    )


def _add_show_secret(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--show-secret", action="store_true", help="print the HMAC, which is the password"
    )


# create


def _create(arguments: argparse.Namespace) -> None:
    if arguments.mechanism is not None and arguments.output is None:
        raise InvalidValueError("--mechanism is for the file of --output")
    if arguments.output is None:
        token = run(arguments, lambda client: _made(client, arguments))
    else:
        token = _write(arguments)
    _print_tokens(arguments, [token])
    if arguments.output is not None:
        print(f"client options that use the token: {arguments.output}", file=sys.stderr)
    elif not arguments.show_secret:
        print("its secret: barnabas tokens list --show-secret", file=sys.stderr)


async def _made(client: ClusterClient, arguments: argparse.Namespace) -> DelegationToken:
    return await create_delegation_token(
        client,
        renewers=arguments.renewer,
        lifetime_ms=arguments.max_lifetime,
        owner=arguments.owner,
    )


def _write(arguments: argparse.Namespace) -> DelegationToken:
    """Create a token, and the file that uses it; without the file there is no token."""
    path = arguments.output
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise InvalidValueError(f"--output {path}: exists; remove it first") from None
    except OSError as failure:
        reason = (failure.strerror or str(failure)).lower()
        raise InvalidValueError(f"--output {path}: {reason}") from failure
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            os.fchmod(descriptor, 0o600)  # whatever the umask
            token = run(arguments, lambda client: _made(client, arguments))
            file.write(_properties(token, client_options(arguments), arguments.mechanism))
    except BaseException:
        os.unlink(path)
        raise
    return token


def _properties(token: DelegationToken, own: Mapping[str, str], mechanism: str | None) -> str:
    """Return client options that log in by a token, where this command has logged in."""
    # Only here: the other actions write no file.
    from barnabas.config.properties import write_properties

    if mechanism is None:
        mechanism = own.get("sasl.mechanism", "")
        mechanism = mechanism if mechanism in MECHANISMS else MECHANISMS[0]
    encrypted = own.get("security.protocol", "").endswith("SSL")
    options = {theirs: own[name] for name, theirs in _HANDED_ON.items() if name in own}
    if own.get("ssl.check.hostname", "").lower() == "false":
        options["ssl.endpoint.identification.algorithm"] = ""
    options["security.protocol"] = "SASL_SSL" if encrypted else "SASL_PLAINTEXT"
    options["sasl.mechanism"] = mechanism
    options["sasl.jaas.config"] = (
        f'{MODULE} required username="{token.token_id}" password="{_secret(token)}" '
        'tokenauth="true";'
    )
    comment = (
        f"Logs in as {token.owner} by a delegation token, until {_time(token.expiry_ms)}\n"
        f"unless it is renewed, and until {_time(token.max_ms)} at the latest."
    )
    return write_properties(options, comment)


# list


def _list(arguments: argparse.Namespace) -> None:
    owners = arguments.owner
    _print_tokens(
        arguments, run(arguments, lambda client: describe_delegation_token(client, owners))
    )


def _print_tokens(arguments: argparse.Namespace, tokens: list[DelegationToken]) -> None:
    tokens = sorted(tokens, key=lambda token: (token.owner, token.issue_ms, token.token_id))
    if arguments.json:
        print_json([_json(token, secret=arguments.show_secret) for token in tokens])
        return
    columns = ["id", "owner", "requester", "renewers", "issued", "expires", "latest expiry"]
    rows: list[list[object]] = [
        [
            token.token_id,
            token.owner,
            token.requester,
            ", ".join(token.renewers) or None,
            _time(token.issue_ms),
            _time(token.expiry_ms),
            _time(token.max_ms),
        ]
        for token in tokens
    ]
    if arguments.show_secret:
        columns.append("hmac")
        rows = [[*row, _secret(token)] for row, token in zip(rows, tokens, strict=True)]
    print_table(columns, rows)


def _json(token: DelegationToken, *, secret: bool) -> dict[str, Any]:
    shown = {
        "id": token.token_id,
        "owner": token.owner,
        "requester": token.requester,
        "renewers": list(token.renewers),
        "issue_ms": token.issue_ms,
        "expiry_ms": token.expiry_ms,
        "max_ms": token.max_ms,
    }
    return {**shown, "hmac": _secret(token)} if secret else shown


def _secret(token: DelegationToken) -> str:
    """Return the HMAC as clients use it for a password."""
    return base64.b64encode(token.hmac).decode()


def _time(timestamp_ms: int) -> str:
    try:
        moment = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    except (ValueError, OverflowError, OSError):  # millions of years from now
        return f"@{timestamp_ms}"
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


# renew, expire


def _renew(arguments: argparse.Namespace) -> None:
    async def renew(client: ClusterClient) -> int:
        token = await _token(client, arguments.token)
        return await renew_delegation_token(client, token.hmac, period_ms=arguments.period)

    _print_expiry(arguments, run(arguments, renew), "expires")


def _expire(arguments: argparse.Namespace) -> None:
    async def expire(client: ClusterClient) -> int:
        token = await _token(client, arguments.token)
        return await expire_delegation_token(client, token.hmac, period_ms=arguments.after)

    now = arguments.after == BROKERS_CHOICE
    _print_expiry(arguments, run(arguments, expire), "expired" if now else "expires")


def _print_expiry(arguments: argparse.Namespace, expiry_ms: int, verb: str) -> None:
    if arguments.json:
        print_json({"id": arguments.token, "expiry_ms": expiry_ms})
    else:
        print(f"token {arguments.token} {verb} at {_time(expiry_ms)}")


async def _token(client: ClusterClient, token_id: str) -> DelegationToken:
    for token in await describe_delegation_token(client):
        if token.token_id == token_id:
            return token
    failure = InvalidValueError(f"token {token_id}: does not exist, or you may not see it")
    failure.add_note("barnabas tokens list shows those that you may see")
    raise failure

"""`barnabas quotas`: how much users, client ids and addresses may use, and how much they do."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from barnabas.admin.quotas import (
    CLIENT_ID,
    IP,
    USER,
    Entity,
    QuotaAlteration,
    QuotaFilter,
    QuotaMatch,
    QuotaUsage,
    alter_client_quotas,
    describe_client_quotas,
    describe_quota_usage,
)
from barnabas.cli.arguments import add_action, assignment, index
from barnabas.cli.output import print_json, print_table
from barnabas.cli.session import run
from barnabas.client.cluster_client import ClusterClient
from barnabas.model.errors import InvalidValueError, RequestError
from barnabas.quotas.quota_keys import CLIENT_KEYS, IP_KEYS

KINDS = (USER, CLIENT_ID, IP)
DEFAULT = "<default>"
QUOTAS = f"Quotas of users and client ids: {', '.join(CLIENT_KEYS)}; of addresses: {IP_KEYS[0]}."


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of all actions."""
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    listing = add_action(
        actions,
        "list",
        "show the quotas that are set",
        _list,
        "  barnabas quotas list\n  barnabas quotas list --user ada",
    )
    _add_entity(listing)
    setting = add_action(
        actions,
        "set",
        "set quotas of a user, a client id, both together, or an address",
        _set,
        "  barnabas quotas set --user ada producer_byte_rate=1000000\n"
        "  barnabas quotas set --default-user --default-client-id request_percentage=50\n"
        f"  barnabas quotas set --ip 10.0.0.7 connection_creation_rate=5\n\n{QUOTAS}",
    )
    _add_entity(setting)
    setting.add_argument("values", metavar="QUOTA=VALUE", nargs="+", type=_value, help="a limit")
    removing = add_action(
        actions,
        "remove",
        "remove quotas",
        _remove,
        "  barnabas quotas remove --user ada\n"
        f"  barnabas quotas remove --client-id web consumer_byte_rate\n\n{QUOTAS}",
    )
    _add_entity(removing)
    removing.add_argument(
        "names", metavar="QUOTA", nargs="*", help="remove only these (default: all)"
    )
    usage = add_action(
        actions,
        "show-usage",
        "show what each broker measures, and for how long it throttles clients",
        _show_usage,
        "  barnabas quotas show-usage\n  barnabas quotas show-usage --broker 1 --json",
    )
    usage.add_argument(
        "--broker", metavar="ID", type=index, action="append", help="only this; may be repeated"
    )


def _add_entity(parser: argparse.ArgumentParser) -> None:
    for kind, noun in ((USER, "user"), (CLIENT_ID, "client id"), (IP, "address")):
        which = parser.add_mutually_exclusive_group()
        which.add_argument(f"--{kind}", metavar="NAME", dest=kind, help=f"this {noun}")
        which.add_argument(
            f"--default-{kind}",
            dest=kind,
            action="store_const",
            const=DEFAULT,
            help=f"every {noun} that has no quota of its own",
        )


def _value(text: str) -> tuple[str, float]:
    name, value = assignment(text)
    try:
        return name, float(value)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}: the value must be a number") from None


def _entity(arguments: argparse.Namespace) -> dict[str, str | None]:
    given = {kind: getattr(arguments, kind) for kind in KINDS}
    return {
        kind: None if name == DEFAULT else name for kind, name in given.items() if name is not None
    }


def _text(entity: Entity) -> str:
    if not entity:
        return "all"
    return " ".join(
        f"{kind} {DEFAULT if name is None else name}" for kind, name in sorted_kinds(entity)
    )


def sorted_kinds(entity: Entity) -> list[tuple[str, str | None]]:
    """Return the parts of an entity in the order in which they are named."""
    return sorted(entity.items(), key=lambda part: KINDS.index(part[0]))


def _list(arguments: argparse.Namespace) -> None:
    filters = [
        QuotaFilter(kind, QuotaMatch.DEFAULT if name is None else QuotaMatch.EXACT, name)
        for kind, name in _entity(arguments).items()
    ]
    found = run(arguments, lambda client: describe_client_quotas(client, filters))
    found.sort(key=lambda quota: _text(quota.entity))
    if arguments.json:
        print_json([{"entity": dict(each.entity), "quotas": dict(each.values)} for each in found])
        return
    print_table(
        ["entity", "quota", "limit"],
        [
            [_text(quota.entity), key, f"{value:.15g}"]
            for quota in found
            for key, value in sorted(quota.values.items())
        ],
    )


def _set(arguments: argparse.Namespace) -> None:
    entity = _required(arguments)
    run(arguments, lambda client: _alter(client, entity, dict(arguments.values)))
    _report(arguments, entity, "set")


def _remove(arguments: argparse.Namespace) -> None:
    entity = _required(arguments)
    names = arguments.names or (IP_KEYS if IP in entity else CLIENT_KEYS)
    run(arguments, lambda client: _alter(client, entity, dict.fromkeys(names)))
    _report(arguments, entity, "removed")


def _required(arguments: argparse.Namespace) -> dict[str, str | None]:
    entity = _entity(arguments)
    if not entity:
        raise InvalidValueError("whose quotas? use --user, --client-id or --ip, or --default-…")
    return entity


async def _alter(client: ClusterClient, entity: Entity, values: Mapping[str, float | None]) -> None:
    (outcome,) = await alter_client_quotas(client, [QuotaAlteration(entity, values)])
    if outcome.error is not None:
        raise outcome.error


def _report(arguments: argparse.Namespace, entity: Entity, done: str) -> None:
    if arguments.json:
        print_json({"entity": dict(entity), "result": done})
    else:
        print(f"quotas of {_text(entity)} {done}")


def _show_usage(arguments: argparse.Namespace) -> int:
    found = run(arguments, lambda client: describe_quota_usage(client, arguments.broker))
    rows: list[tuple[int, QuotaUsage]] = []
    failed: dict[int, RequestError] = {}
    for broker, usages in found.items():
        if isinstance(usages, RequestError):
            failed[broker] = usages
        else:
            ordered = sorted(usages, key=lambda usage: (_text(usage.entity), usage.key))
            rows += [(broker, usage) for usage in ordered]
    if arguments.json:
        print_json(
            [
                {
                    "broker": broker,
                    "entity": dict(usage.entity),
                    "quota": usage.key,
                    "rate": usage.rate,
                    "limit": usage.limit,
                    "throttle_time_ms": usage.throttle_time_ms,
                }
                for broker, usage in rows
            ]
            + [{"broker": broker, "error": str(each)} for broker, each in failed.items()]
        )
    else:
        print_table(
            ["broker", "entity", "quota", "rate", "limit", "used", "throttled"],
            [
                [
                    broker,
                    _text(usage.entity),
                    usage.key,
                    f"{usage.rate:.6g}",
                    None if usage.limit is None else f"{usage.limit:.15g}",
                    None if usage.limit is None else f"{usage.rate / usage.limit:.0%}",
                    f"{usage.throttle_time_ms:.0f} ms",
                ]
                for broker, usage in rows
            ],
        )
        for broker, failure in failed.items():
            print(f"broker {broker}: {failure}")
    return 1 if failed else 0

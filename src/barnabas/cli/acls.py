"""`barnabas acls`: list, add and remove ACLs, and show which of them decides."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import dataclass

from barnabas.admin.acls import (
    ACL,
    ACLFilter,
    ACLOperation,
    AclOutcome,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
    create_acls,
    delete_acls,
    describe_acls,
)
from barnabas.admin.config_entries import ConfigResourceType, Resource
from barnabas.admin.configs import describe_configs
from barnabas.cli.arguments import add_action
from barnabas.cli.arguments import principal as principal_of
from barnabas.cli.output import print_json, print_table
from barnabas.cli.session import run
from barnabas.client.cluster_client import ClusterClient
from barnabas.model.errors import InvalidValueError, RequestError

CLUSTER_NAME = "kafka-cluster"
SUPER_USERS, ALLOW_EVERYONE = "super.users", "allow.everyone.if.no.acl.found"
EVERYTHING = ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY)

_RESOURCES = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional-id": ResourceType.TRANSACTIONAL_ID,
    "delegation-token": ResourceType.DELEGATION_TOKEN,
    "user": ResourceType.USER,
}
_OPERATIONS = {
    each.name.lower().replace("_", "-"): each
    for each in ACLOperation
    if each not in (ACLOperation.UNKNOWN, ACLOperation.ANY)
}
_PATTERNS = {
    each.name.lower(): each
    for each in ACLResourcePatternType
    if each is not ACLResourcePatternType.UNKNOWN
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of all actions."""
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    listing = add_action(
        actions,
        "list",
        "show ACLs, or the one that decides",
        _list,
        "  barnabas acls list\n"
        "  barnabas acls list --topic orders --pattern match\n"
        "  barnabas acls list --principal alice --json\n"
        "  barnabas acls list --why alice read topic:orders",
    )
    _add_resources(listing, _PATTERNS, default="any")
    _add_filter(listing)
    listing.add_argument(
        "--why",
        nargs=3,
        metavar=("PRINCIPAL", "OPERATION", "RESOURCE"),
        help="show whether PRINCIPAL may do OPERATION on RESOURCE (topic:NAME, group:NAME, "
        "transactional-id:NAME, cluster), and the ACL that decides",
    )
    adding = add_action(
        actions,
        "add",
        "add ACLs",
        _add,
        "  barnabas acls add --allow alice --operation read --topic orders\n"
        "  barnabas acls add --allow app --producer --topic logs- --pattern prefixed\n"
        "  barnabas acls add --allow app --consumer --topic orders --group app\n"
        "  barnabas acls add --deny eve --operation all --topic '*' --host 192.0.2.7",
    )
    _add_rules(adding)
    removing = add_action(
        actions,
        "remove",
        "remove the ACLs that match",
        _remove,
        "  barnabas acls remove --principal alice\n"
        "  barnabas acls remove --topic orders --operation write\n"
        "  barnabas acls remove --topic logs- --pattern prefixed\n"
        "  barnabas acls remove --all",
    )
    _add_resources(removing, _PATTERNS, default="any")
    _add_filter(removing)
    removing.add_argument("--all", action="store_true", help="remove every ACL of the cluster")


def _add_resources(
    parser: argparse.ArgumentParser, patterns: Iterable[str], *, default: str
) -> None:
    for word in _RESOURCES:
        parser.add_argument(
            f"--{word}",
            metavar="NAME",
            action="append",
            default=[],
            help=f"this {word.replace('-', ' ')}; may be repeated; '*' is the ACL of all",
        )
    parser.add_argument("--cluster", action="store_true", help="the cluster itself")
    parser.add_argument(
        "--pattern",
        choices=tuple(patterns),
        default=default,
        help=f"how names are compared (default: {default})",
    )


def _add_filter(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--principal", metavar="NAME", type=principal_of, help="of this principal")
    parser.add_argument("--host", metavar="ADDRESS", help="from this address")
    parser.add_argument("--operation", choices=tuple(_OPERATIONS), help="of this operation")
    parser.add_argument("--permission", choices=("allow", "deny"), help="of this permission")


def _add_rules(parser: argparse.ArgumentParser) -> None:
    _add_resources(parser, ("literal", "prefixed"), default="literal")
    for word in ("allow", "deny"):
        parser.add_argument(
            f"--{word}",
            metavar="PRINCIPAL",
            type=principal_of,
            action="append",
            default=[],
            help=f"{word} this principal (alice is User:alice, '*' is everyone); may be repeated",
        )
    parser.add_argument(
        "--host",
        metavar="ADDRESS",
        action="append",
        default=[],
        help="from this address (default: from anywhere); may be repeated",
    )
    parser.add_argument(
        "--operation",
        choices=tuple(_OPERATIONS),
        action="append",
        default=[],
        help="this operation; may be repeated",
    )
    parser.add_argument(
        "--producer",
        action="store_true",
        help="write, describe and create --topic; write and describe --transactional-id",
    )
    parser.add_argument(
        "--idempotent",
        action="store_true",
        help="with --producer: idempotent-write on the cluster, which brokers before 2.8 require",
    )
    parser.add_argument(
        "--consumer", action="store_true", help="read and describe --topic, read --group"
    )


# add


@dataclass(frozen=True, slots=True)
class _Grant:
    """Operations on one resource."""

    resource: ResourcePattern
    operations: tuple[ACLOperation, ...]


def _named(arguments: argparse.Namespace) -> list[tuple[ResourceType, str]]:
    """Return the resources that were named."""
    found = [
        (kind, name)
        for word, kind in _RESOURCES.items()
        for name in getattr(arguments, word.replace("-", "_"))
    ]
    return [*found, *([(ResourceType.CLUSTER, CLUSTER_NAME)] if arguments.cluster else [])]


def _grants(arguments: argparse.Namespace) -> list[_Grant]:
    pattern_type = _PATTERNS[arguments.pattern]
    operations = tuple(_OPERATIONS[word] for word in arguments.operation)
    resources = [
        ResourcePattern(
            kind,
            name,
            ACLResourcePatternType.LITERAL if kind is ResourceType.CLUSTER else pattern_type,
        )
        for kind, name in _named(arguments)
    ]
    if not (arguments.producer or arguments.consumer):
        if arguments.idempotent:
            raise InvalidValueError("--idempotent is for --producer")
        if not operations:
            raise InvalidValueError("no --operation; or use --producer or --consumer")
        if not resources:
            raise InvalidValueError("no resource; use --topic, --group, --cluster or another")
        return [_Grant(resource, operations) for resource in resources]
    if operations:
        raise InvalidValueError("--producer and --consumer imply their operations")
    return _shortcuts(arguments, resources)


def _shortcuts(arguments: argparse.Namespace, resources: list[ResourcePattern]) -> list[_Grant]:
    """Return what producers and consumers need, as Kafka's own tool grants it."""
    describe, create = ACLOperation.DESCRIBE, ACLOperation.CREATE
    read, write = ACLOperation.READ, ACLOperation.WRITE
    wanted: dict[ResourceType, set[ACLOperation]] = {}
    if arguments.producer:
        wanted[ResourceType.TOPIC] = {write, describe, create}
        wanted[ResourceType.TRANSACTIONAL_ID] = {write, describe}
    if arguments.consumer:
        wanted.setdefault(ResourceType.TOPIC, set()).update((read, describe))
        wanted[ResourceType.GROUP] = {read}
    kinds = {resource.resource_type for resource in resources}
    if ResourceType.TOPIC not in kinds:
        raise InvalidValueError("--producer and --consumer need a --topic")
    if arguments.consumer and ResourceType.GROUP not in kinds:
        raise InvalidValueError("--consumer needs a --group")
    for kind in kinds:
        if kind not in wanted:
            word = kind.name.lower().replace("_", "-")
            raise InvalidValueError(f"--{word} has no meaning with --producer or --consumer")
    grants = [
        _Grant(resource, tuple(sorted(wanted[resource.resource_type]))) for resource in resources
    ]
    if arguments.producer and arguments.idempotent:
        cluster = ResourcePattern(ResourceType.CLUSTER, CLUSTER_NAME)
        grants.append(_Grant(cluster, (ACLOperation.IDEMPOTENT_WRITE,)))
    return grants


def _add(arguments: argparse.Namespace) -> int | None:
    grants = _grants(arguments)
    who = [(each, ACLPermissionType.ALLOW) for each in arguments.allow]
    who += [(each, ACLPermissionType.DENY) for each in arguments.deny]
    if not who:
        raise InvalidValueError("no principal; use --allow or --deny")
    acls = [
        ACL(principal, host, operation, permission, grant.resource)
        for grant in grants
        for principal, permission in who
        for operation in grant.operations
        for host in arguments.host or ["*"]
    ]
    outcomes = run(arguments, lambda client: create_acls(client, acls))
    return _report(arguments, outcomes, "added")


# remove


def _filters(arguments: argparse.Namespace) -> list[ACLFilter]:
    pattern_type = _PATTERNS[arguments.pattern]
    resources = [
        ResourcePatternFilter(kind, name, pattern_type) for kind, name in _named(arguments)
    ]
    if not resources:
        resources = [ResourcePatternFilter(ResourceType.ANY, None, pattern_type)]
    return [
        ACLFilter(
            arguments.principal,
            arguments.host,
            _OPERATIONS[arguments.operation] if arguments.operation else ACLOperation.ANY,
            ACLPermissionType[arguments.permission.upper()]
            if arguments.permission
            else ACLPermissionType.ANY,
            resource,
        )
        for resource in resources
    ]


def _remove(arguments: argparse.Namespace) -> int | None:
    filters = _filters(arguments)
    everything = ACLFilter(None, None, ACLOperation.ANY, ACLPermissionType.ANY, EVERYTHING)
    if (filters == [everything]) is not arguments.all:
        raise InvalidValueError(
            "--all removes every ACL: give no other option with it"
            if arguments.all
            else "nothing says which ACLs to remove; --all removes every ACL"
        )
    deletions = run(arguments, lambda client: delete_acls(client, filters))
    for deletion in deletions:
        if deletion.error is not None:
            raise deletion.error
    outcomes = [outcome for deletion in deletions for outcome in deletion.matched]
    return _report(arguments, outcomes, "removed")


def _report(arguments: argparse.Namespace, outcomes: list[AclOutcome], done: str) -> int | None:
    failed = [outcome for outcome in outcomes if outcome.error is not None]
    if failed and len(failed) == len(outcomes):
        error = failed[0].error
        assert error is not None
        raise error
    if arguments.json:
        print_json(
            [
                {**_json(outcome.acl), "error": outcome.error and str(outcome.error)}
                for outcome in outcomes
            ]
        )
    else:
        _print_acls([outcome.acl for outcome in outcomes if outcome.error is None])
        print(f"{len(outcomes) - len(failed)} ACLs {done}")
        for outcome in failed:
            print(f"not {done}: {_sentence(outcome.acl)}: {outcome.error}")
    return 1 if failed else None


# list


def _list(arguments: argparse.Namespace) -> int | None:
    if arguments.why is not None:
        return _why(arguments)
    filters = _filters(arguments)

    async def describe(client: ClusterClient) -> list[ACL]:
        found: dict[ACL, None] = {}
        for each in filters:
            found |= dict.fromkeys(await describe_acls(client, each))
        return list(found)

    acls = run(arguments, describe)
    if arguments.json:
        print_json([_json(acl) for acl in acls])
    else:
        _print_acls(acls)
    return None


def _print_acls(acls: list[ACL]) -> None:
    if acls:
        print_table(
            ["resource", "pattern", "principal", "permission", "operation", "host"],
            [
                [
                    _resource(acl.resource_pattern),
                    acl.resource_pattern.pattern_type.name.lower(),
                    acl.principal,
                    acl.permission_type.name.lower(),
                    acl.operation.name.lower().replace("_", "-"),
                    acl.host,
                ]
                for acl in acls
            ],
        )


def _resource(pattern: ResourcePatternFilter) -> str:
    if pattern.resource_type is ResourceType.CLUSTER:
        return "cluster"
    return f"{pattern.resource_type.name.lower().replace('_', '-')}:{pattern.resource_name}"


def _json(acl: ACL) -> dict[str, str]:
    return {
        "resource_type": acl.resource_pattern.resource_type.name.lower(),
        "resource_name": acl.resource_pattern.resource_name,
        "pattern_type": acl.resource_pattern.pattern_type.name.lower(),
        "principal": acl.principal,
        "host": acl.host,
        "operation": acl.operation.name.lower(),
        "permission": acl.permission_type.name.lower(),
    }


def _sentence(acl: ACL) -> str:
    permission = acl.permission_type.name.lower()
    operation = acl.operation.name.lower().replace("_", "-")
    pattern = acl.resource_pattern.pattern_type.name.lower()
    where = f"{_resource(acl.resource_pattern)} ({pattern})"
    return f"{permission} {acl.principal} {operation} on {where} from {acl.host}"


# why


def _question(arguments: argparse.Namespace) -> tuple[str, ACLOperation, ResourcePattern]:
    principal, operation, resource = arguments.why
    if operation.lower() not in _OPERATIONS:
        raise InvalidValueError(f"operation {operation}: must be one of {', '.join(_OPERATIONS)}")
    kind, _, name = resource.partition(":")
    if resource == "cluster":
        pattern = ResourcePattern(ResourceType.CLUSTER, CLUSTER_NAME)
    elif kind in _RESOURCES and name:
        pattern = ResourcePattern(_RESOURCES[kind], name)
    else:
        kinds = ", ".join(f"{word}:NAME" for word in _RESOURCES)
        raise InvalidValueError(f"resource {resource}: must be cluster, or one of {kinds}")
    return principal_of(principal), _OPERATIONS[operation.lower()], pattern


async def _settings(client: ClusterClient) -> dict[str, str] | None:
    """Return the broker's options that decide, too; None if they may not be described."""
    broker_id = next(iter(client.cluster.brokers))
    resource = Resource(ConfigResourceType.BROKER, str(broker_id))
    try:
        entries = await describe_configs(client, resource, [SUPER_USERS, ALLOW_EVERYONE])
    except RequestError:
        return None
    return {entry.name: entry.value or "" for entry in entries}


def _why(arguments: argparse.Namespace) -> int:
    """Decide here, by the cluster's ACLs, as its brokers do."""
    from barnabas.config.broker.security import parse_super_users
    from barnabas.security.acl import AclAuthorizer, Binding, Entry, Pattern
    from barnabas.security.acl.binding import PatternType, Permission
    from barnabas.security.authorizer import Operation
    from barnabas.security.authorizer import ResourceType as Type
    from barnabas.security.principal import Principal, parse_principal

    principal, operation, resource = _question(arguments)
    match = ResourcePatternFilter(
        resource.resource_type, resource.resource_name, ACLResourcePatternType.MATCH
    )
    wanted = ACLFilter(None, None, ACLOperation.ANY, ACLPermissionType.ANY, match)

    async def ask(client: ClusterClient) -> tuple[list[ACL], dict[str, str] | None]:
        return await describe_acls(client, wanted), await _settings(client)

    acls, settings = run(arguments, ask)
    authorizer = AclAuthorizer(
        [Principal(*each) for each in parse_super_users((settings or {}).get(SUPER_USERS, ""))],
        allow_everyone=(settings or {}).get(ALLOW_EVERYONE) == "true",
    )
    by_binding = {
        Binding(
            Pattern(
                Type(acl.resource_pattern.resource_type),
                acl.resource_pattern.resource_name,
                PatternType(acl.resource_pattern.pattern_type),
            ),
            Entry(
                acl.principal,
                acl.host,
                Operation(acl.operation),
                Permission(acl.permission_type),
            ),
        ): acl
        for acl in acls
    }
    authorizer.load(by_binding)
    decision = authorizer.explain(
        parse_principal(principal),
        arguments.host or "*",
        Operation(operation),
        Type(resource.resource_type),
        resource.resource_name,
    )
    rule = by_binding[decision.rule] if decision.rule is not None else None
    if arguments.json:
        print_json(
            {
                "allowed": decision.allowed,
                "reason": decision.reason,
                "rule": _json(rule) if rule is not None else None,
                "super_users_known": settings is not None,
            }
        )
        return 0
    verdict = "allowed" if decision.allowed else "denied"
    reason = _sentence(rule) if rule is not None else decision.reason
    print(f"{verdict}: {reason}")
    if settings is None:
        print(f"{SUPER_USERS} and {ALLOW_EVERYONE} could not be read and are not considered")
    return 0

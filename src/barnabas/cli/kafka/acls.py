"""`kafka-acls`: list, add and remove ACLs, as Kafka's tool does."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from barnabas.admin.acls import ACLResourcePatternType
from barnabas.cli.kafka.acl_places import EVERYTHING, AclPlace, BrokerAcls, TreeAcls
from barnabas.cli.kafka.acl_rules import (
    Rule,
    Rules,
    operation_of,
    pattern_type_of,
    principals_of,
    resources_of,
    rules_of,
)
from barnabas.cli.kafka.flags import BOOTSTRAP, COMMAND_CONFIG, Flag, Flags, Given, UsageError
from barnabas.cli.session import run as run_session

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from barnabas.client.cluster_client import ClusterClient
    from barnabas.coordination.contract import Coordination

FAILURE = "Error while executing ACL command: "
FAILS_ON_STDOUT = True

DEPRECATED = (
    "Warning: support for ACL configuration directly through the authorizer is deprecated and will "
    "be removed in a future release. Please use --bootstrap-server instead to set ACLs through the "
    "admin client."
)

FLAGS = Flags(
    "List, add and remove ACLs.",
    (
        BOOTSTRAP,
        Flag("--bootstrap-controller", "HOST:PORT[,...]", "as --bootstrap-server"),
        COMMAND_CONFIG,
        Flag(
            "--authorizer",
            "CLASS",
            "deprecated",
            inert="ACLs are always in the tree, or at the brokers",
        ),
        Flag(
            "--authorizer-properties",
            "KEY=VALUE",
            "deprecated: zookeeper.connect=HOST:PORT[/CHROOT], to change the tree itself",
            many=True,
        ),
        Flag("--zk-tls-config-file", "FILE", "properties for TLS with ZooKeeper"),
        Flag("--list", help="list ACLs"),
        Flag("--add", help="add ACLs"),
        Flag("--remove", help="remove ACLs"),
        Flag("--topic", "TOPIC", "the topic; * means all", many=True),
        Flag("--group", "GROUP", "the consumer group; * means all", many=True),
        Flag("--cluster", help="the cluster"),
        Flag("--transactional-id", "ID", "the transactional id; * means all", many=True),
        Flag("--delegation-token", "ID", "the delegation token; * means all", many=True),
        Flag("--user-principal", "PRINCIPAL", "the user, as a resource", many=True),
        Flag(
            "--resource-pattern-type",
            "TYPE",
            "literal, prefixed; to list and remove also match, any",
            pattern_type_of,
            default=ACLResourcePatternType.LITERAL,
            read_late=True,
        ),
        Flag("--operation", "OPERATION", "Read, Write, …", operation_of, many=True),
        Flag("--allow-principal", "Type:NAME", "who may", many=True),
        Flag("--deny-principal", "Type:NAME", "who may not", many=True),
        Flag("--principal", "Type:NAME", "list the ACLs of this principal", many=True),
        Flag("--allow-host", "HOST", "from where they may", many=True),
        Flag("--deny-host", "HOST", "from where they may not", many=True),
        Flag("--producer", help="what a producer needs"),
        Flag("--consumer", help="what a consumer needs"),
        Flag("--idempotent", help="with --producer: what an idempotent one needed before 2.8"),
        Flag("--force", help="no questions"),
    ),
    one_of=(("list", "add", "remove"),),
    excludes={
        "list": (
            "producer",
            "consumer",
            "allow-host",
            "allow-principal",
            "deny-host",
            "deny-principal",
        ),
        "producer": ("operation", "deny-principal", "deny-host"),
        "consumer": ("operation", "deny-principal", "deny-host"),
    },
)


def run(given: Given) -> None:
    """Do what is asked for."""
    _check(given)
    rules = {} if "list" in given else rules_of(given)
    if "add" in given:
        _check_added(given, rules)

    async def work(place: AclPlace) -> None:
        if "add" in given:
            for resource, each in rules.items():
                print(f"Adding ACLs for resource `{resource}`: \n {_lines(each)} \n")
                await place.add(resource, each)
        elif "remove" in given:
            for resource, each in rules.items():
                what = f"ACLs: \n {_lines(each)} \n from" if each else "all ACLs for"
                verb = "remove" if each else "delete"
                question = f"Are you sure you want to {verb} {what} resource filter `{resource}`?"
                if "force" in given or _confirmed(f"{question} (y/n)"):
                    await place.remove(resource, each)
        else:
            await _list(place, given)

    if "authorizer-properties" in given:
        _on_tree(given, work)
        return

    async def at_brokers(client: ClusterClient) -> None:
        await work(BrokerAcls(client))

    connection = given.connection()
    connection.bootstrap = connection.bootstrap or given["bootstrap-controller"]
    run_session(connection, at_brokers)


def _on_tree(given: Given, work: Callable[[AclPlace], Awaitable[None]]) -> None:
    from barnabas.cli.kafka.tree import on_tree, properties_of

    properties = dict(text.partition("=")[::2] for text in given["authorizer-properties"])
    properties = {key.removeprefix("authorizer."): value for key, value in properties.items()}
    connect = properties.pop("zookeeper.connect", None) or properties.pop("zookeeper.url", None)
    if not connect:
        raise UsageError("--authorizer-properties needs zookeeper.connect=HOST:PORT[/CHROOT]")
    known = properties_of(given["zk-tls-config-file"]) | {
        key: value for key, value in properties.items() if key.startswith("zookeeper.")
    }
    print(DEPRECATED, file=sys.stderr)

    async def in_tree(tree: Coordination) -> None:
        place = TreeAcls(tree)
        await place.prepare()
        await work(place)

    on_tree(connect, in_tree, known)


def _check(given: Given) -> None:
    servers = {"bootstrap-server", "bootstrap-controller"} & given.values.keys()
    if len(servers) > 1:
        raise UsageError(
            "Only one of --bootstrap-server or --bootstrap-controller must be specified"
        )
    if servers and "authorizer" in given:
        raise UsageError("Only one of --bootstrap-server or --authorizer must be specified")
    if not servers and "authorizer-properties" not in given:
        if "authorizer" in given:
            raise UsageError('Missing required argument "[authorizer-properties]"')
        raise UsageError("One of --bootstrap-server or --authorizer-properties must be specified")
    if servers and "authorizer-properties" in given:
        raise UsageError(
            "The --authorizer-properties option can only be used with --authorizer option"
        )
    if not servers and "command-config" in given:
        raise UsageError(
            "The --command-config option can only be used with --bootstrap-server option"
        )
    if "principal" in given and "list" not in given:
        raise UsageError("The --principal option is only available if --list is set")
    if "producer" in given and "topic" not in given:
        raise UsageError("With --producer you must specify a --topic")
    if "idempotent" in given and "producer" not in given:
        raise UsageError("The --idempotent option is only available if --producer is set")
    if "consumer" in given and (
        not {"topic", "group"} <= given.values.keys()
        or ("producer" not in given and {"cluster", "transactional-id"} & given.values.keys())
    ):
        raise UsageError(
            "With --consumer you must specify a --topic and a --group and no --cluster or "
            "--transactional-id option should be specified."
        )


def _check_added(given: Given, rules: Rules) -> None:
    pattern = given["resource-pattern-type"]
    if pattern in (ACLResourcePatternType.ANY, ACLResourcePatternType.MATCH):
        raise UsageError(
            f"A '--resource-pattern-type' value of '{pattern.name}' is not valid when adding acls."
        )
    if not all(rules.values()):
        raise UsageError(
            "You must specify one of: --allow-principal, --deny-principal when trying to add ACLs."
        )


def _confirmed(question: str) -> bool:
    print(question, flush=True)
    return sys.stdin.readline().strip().lower() == "y"


async def _list(place: AclPlace, given: Given) -> None:
    found: Rules = {}
    for wanted in resources_of(given) or [EVERYTHING]:
        for resource, rules in (await place.find(wanted)).items():
            found[resource] = list(dict.fromkeys([*found.get(resource, []), *rules]))
    principals = principals_of(given, "principal")
    for principal in principals:
        print(f"ACLs for principal `{principal}`")
        own = {
            resource: [rule for rule in rules if rule.principal == principal]
            for resource, rules in found.items()
        }
        _print({resource: rules for resource, rules in own.items() if rules})
    if not principals:
        _print(found)


def _print(found: Rules) -> None:
    for resource, rules in found.items():
        print(f"Current ACLs for resource `{resource}`: \n {_lines(rules)} \n")


def _lines(rules: list[Rule]) -> str:
    return "\n".join(f"\t{rule}" for rule in rules)

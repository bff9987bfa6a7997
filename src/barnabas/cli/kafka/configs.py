"""`kafka-configs`: show and change options of topics, brokers, users, clients and addresses."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.cli.kafka.config_entity import (
    BROKER_LOGGERS,
    BROKERS,
    CLIENT_METRICS,
    CLIENTS,
    GROUPS,
    IPS,
    TOPICS,
    TYPES,
    USERS,
    Changes,
    Entity,
)
from barnabas.cli.kafka.flags import (
    BOOTSTRAP,
    COMMAND_CONFIG,
    ZOOKEEPER,
    Flag,
    Flags,
    Given,
    UsageError,
)
from barnabas.cli.session import run as run_session

if TYPE_CHECKING:
    from barnabas.client.cluster_client import ClusterClient

FAILURE = ""

DEPRECATED = (
    "Warning: --zookeeper is deprecated and will be removed in a future version of Kafka.\n"
    "Use --bootstrap-server instead to specify a broker to connect to."
)
NAMED = {
    "topic": TOPICS,
    "client": CLIENTS,
    "user": USERS,
    "broker": BROKERS,
    "broker-logger": BROKER_LOGGERS,
    "ip": IPS,
    "client-metrics": CLIENT_METRICS,
    "group": GROUPS,
}
"""Flags that give type and name at once."""
DEFAULTS = {
    "client-defaults": CLIENTS,
    "user-defaults": USERS,
    "broker-defaults": BROKERS,
    "ip-defaults": IPS,
}

FLAGS = Flags(
    "Show and change options of topics, brokers, users, clients, addresses and client metrics.",
    (
        BOOTSTRAP,
        Flag("--bootstrap-controller", "HOST:PORT[,...]", "as --bootstrap-server"),
        ZOOKEEPER,
        COMMAND_CONFIG,
        Flag("--alter", help="change options"),
        Flag("--describe", help="show options"),
        Flag("--all", help="show all options, not only those that were changed"),
        Flag("--entity-type", "TYPE", ", ".join(TYPES), many=True),
        Flag("--entity-name", "NAME", "name of the entity", many=True),
        Flag("--entity-default", help="the default of the type"),
        Flag(
            "--add-config",
            "K=V[,K=[V,V]...]",
            "options to set; values with commas stand in square brackets",
        ),
        Flag("--add-config-file", "FILE", "properties file with options to set"),
        Flag("--delete-config", "K[,K...]", "options to reset", many=True),
        Flag("--force", help="no questions", inert="nothing is asked"),
        Flag("--topic", "TOPIC", "the options of a topic"),
        Flag("--client", "CLIENT-ID", "the options of a client id"),
        Flag("--client-defaults", help="the defaults of client ids"),
        Flag("--user", "NAME", "the options of a user"),
        Flag("--user-defaults", help="the defaults of users"),
        Flag("--broker", "ID", "the options of a broker"),
        Flag("--broker-defaults", help="the options of all brokers"),
        Flag("--broker-logger", "ID", "the loggers of a broker"),
        Flag("--ip", "ADDRESS", "the limits of an address"),
        Flag("--ip-defaults", help="the limits of all addresses"),
        Flag("--client-metrics", "NAME", "a subscription to clients' metrics"),
        Flag("--group", "GROUP", "the options of a group"),
        Flag("--zk-tls-config-file", "FILE", "properties for TLS with ZooKeeper"),
    ),
    one_of=(("describe", "alter"),),
    excludes={"describe": ("add-config", "add-config-file", "delete-config"), "alter": ("all",)},
)


def run(given: Given) -> None:
    """Do what is asked for."""
    entities = entities_of(given)
    _check_connection(given)
    _check(given, entities)
    changes = changes_of(given) if "alter" in given else None
    if "zookeeper" in given:
        print(DEPRECATED)
        from barnabas.cli.kafka import config_tree

        if config_tree.run(given, entities, changes):
            return
    connection = given.connection()
    if "bootstrap-controller" in given:
        connection.bootstrap = given["bootstrap-controller"]
    if entities[0].type in (USERS, CLIENTS, IPS):
        from barnabas.cli.kafka import config_quotas as actions
    else:
        from barnabas.cli.kafka import config_resources as actions  # type: ignore[no-redef]

    async def work(client: ClusterClient) -> None:
        if changes is None:
            await actions.describe(client, entities, everything=given["all"])
        else:
            await actions.alter(client, entities, changes)
            first = entities[0]
            if first.name:
                print(f"Completed updating config for {first.type[:-1]} {first.name}.")
            else:
                print(f"Completed updating default config for {first.type} in the cluster.")

    run_session(connection, work)
    sys.stdout.flush()


def entities_of(given: Given) -> list[Entity]:
    """Return types with names: None if none is given, empty for the default."""
    types = list(given["entity-type"])
    for kind in types:
        if kind not in TYPES:
            raise UsageError(
                f"Invalid entity type {kind}, the entity type must be one of {', '.join(TYPES)} "
                "with a --bootstrap-server or --bootstrap-controller argument"
            )
    single = [key for key in (*NAMED, *DEFAULTS) if key in given]
    if single and {"entity-type", "entity-name", "entity-default"} & given.values.keys():
        raise UsageError(
            "--entity-{type,name,default} should not be used in conjunction with specific entity "
            "flags"
        )
    names = iter(given["entity-name"])
    given_names = [
        next(names) if key == "entity-name" else ""
        for key in given.order
        if key in ("entity-name", "entity-default")
    ]
    types += [{**NAMED, **DEFAULTS}[key] for key in single]
    given_names += [given[key] if key in NAMED else "" for key in single]
    if not types:
        raise UsageError("At least one entity type must be specified")
    if len(set(types)) < len(types):
        raise UsageError(f"Duplicate entity type(s) specified: {','.join(types)}")
    if len(types) > 1 and set(types) != {USERS, CLIENTS}:
        raise UsageError("Only 'users' and 'clients' entity types may be specified together")
    if len(given_names) > len(types):
        raise UsageError("More entity names specified than entity types")
    return [
        Entity(kind, given_names[index] if index < len(given_names) else None)
        for index, kind in enumerate(types)
    ]


def _check_connection(given: Given) -> None:
    servers = {"bootstrap-server", "bootstrap-controller", "zookeeper"} & given.values.keys()
    if not servers:
        raise UsageError(
            "One of the required --bootstrap-server, --boostrap-controller, or --zookeeper "
            "arguments must be specified"
        )
    if len(servers) > 1:
        raise UsageError(
            "Only one of --bootstrap-server, --boostrap-controller, and --zookeeper can be "
            "specified"
        )
    if "zk-tls-config-file" in given and "zookeeper" not in given:
        raise UsageError(
            "Only the --zookeeper option can be used with the --zk-tls-config-file option."
        )


def _check(given: Given, entities: list[Entity]) -> None:
    kinds = [entity.type for entity in entities]
    named = any(entity.name for entity in entities)
    for entity in entities:
        if entity.name and entity.type in (BROKERS, BROKER_LOGGERS):
            if not re.fullmatch(r"[+-]?[0-9]+", entity.name):
                raise UsageError(
                    f"The entity name for {entity.type} must be a valid integer broker id, but it "
                    f"is: {entity.name}"
                )
        elif entity.name and entity.type == IPS and not _is_resolvable(entity.name):
            raise UsageError(
                "The entity name for ips must be a valid IP or resolvable host, but it is: "
                f"{entity.name}"
            )
    if "describe" in given:
        if BROKER_LOGGERS in kinds and not named:
            raise UsageError("an entity name must be specified with --describe of broker-loggers")
        return
    if {USERS, CLIENTS, BROKERS, IPS} & set(kinds):
        if all(entity.name is None for entity in entities):
            raise UsageError(
                "an entity-name or default entity must be specified with --alter of users, clients,"
                " brokers or ips"
            )
    elif not named:
        raise UsageError(f"an entity name must be specified with --alter of {kinds[0]}")
    if "add-config" in given and "add-config-file" in given:
        raise UsageError("Only one of --add-config or --add-config-file must be specified")
    if not {"add-config", "add-config-file", "delete-config"} & given.values.keys():
        raise UsageError(
            "At least one of --add-config, --add-config-file, or --delete-config must be specified "
            "with --alter"
        )


def _is_resolvable(name: str) -> bool:
    import socket

    try:
        socket.getaddrinfo(name, None)
    except OSError:
        return False
    return True


_OUTSIDE_BRACKETS = r"(?=[^\]]*(?:\[|$))"


def changes_of(given: Given) -> Changes:
    """Return the options to set and those to reset."""
    added: dict[str, str] = {}
    if "add-config-file" in given:
        from barnabas.config.properties import read_properties

        added.update(read_properties(Path(given["add-config-file"]).read_text("utf-8")))
    if "add-config" in given:
        for part in re.split(f",{_OUTSIDE_BRACKETS}", given["add-config"]):
            pair = re.split(rf"\s*=\s*{_OUTSIDE_BRACKETS}", part)
            if len(pair) != 2:
                raise UsageError(
                    "requirement failed: Invalid entity config: all configs to be added must be in "
                    'the format "key=val".'
                )
            added[pair[0].strip()] = re.sub(r"[\[\]]", "", pair[1]).strip()
    removed = [name.strip() for text in given["delete-config"] for name in text.split(",")]
    for name in (*added, *removed):
        if not re.fullmatch(r"[a-zA-Z0-9._-]*", name):
            raise UsageError(f"Invalid character found for config key: {name}")
    if "message.format.version" in added:
        print(
            "WARNING: The configuration message.format.version="
            f"{added['message.format.version']} is specified. This configuration will be ignored "
            "if the version is newer than the inter.broker.protocol.version specified in the "
            "broker or if the inter.broker.protocol.version is 3.0 or newer. This configuration is "
            "deprecated and it will be removed in Apache Kafka 4.0."
        )
    return Changes(added, removed)

"""`barnabas configs`: show and change options of topics, brokers, the cluster, client metrics.

The levels of a broker's loggers are shown and set in the same way.
"""

from __future__ import annotations

import argparse
from functools import partial

from barnabas.admin.config_entries import (
    AlterConfigOp,
    Change,
    ConfigResourceType,
    ConfigSource,
    Resource,
)
from barnabas.admin.configs import alter_configs, describe_configs
from barnabas.cli.arguments import add_action, assignment, index
from barnabas.cli.output import print_json, print_table
from barnabas.cli.session import run
from barnabas.model.errors import InvalidValueError


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of all actions."""
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    describe = add_action(
        actions,
        "describe",
        "show options and where their values come from",
        _describe,
        "  barnabas configs describe --topic orders\n"
        "  barnabas configs describe --topic orders retention.ms segment.bytes\n"
        "  barnabas configs describe --broker 0 --all --json\n"
        "  barnabas configs describe --broker-loggers 0",
    )
    _add_resource(describe)
    describe.add_argument("names", metavar="NAME", nargs="*", help="show only these options")
    describe.add_argument(
        "--all", action="store_true", help="also show options with their default value"
    )
    describe.add_argument("--docs", action="store_true", help="also show what each option means")
    alter = add_action(
        actions,
        "alter",
        "change options",
        _alter,
        "  barnabas configs alter --topic orders --set retention.ms=86400000\n"
        "  barnabas configs alter --topic orders --append cleanup.policy=compact\n"
        "  barnabas configs alter --cluster --delete log.retention.ms --dry-run\n"
        "  barnabas configs alter --broker-loggers 0 --set barnabas.request=DEBUG\n"
        "  barnabas configs alter --client-metrics all --set metrics=* --set interval.ms=10000",
    )
    _add_resource(alter)
    for option, operation, explanation in (
        ("--set", AlterConfigOp.SET, "set an option"),
        ("--append", AlterConfigOp.APPEND, "add to a list option"),
        ("--subtract", AlterConfigOp.SUBTRACT, "remove from a list option"),
    ):
        alter.add_argument(
            option,
            metavar="NAME=VALUE",
            dest="changes",
            action="append",
            default=[],
            type=partial(_change, operation),
            help=f"{explanation}; may be repeated",
        )
    alter.add_argument(
        "--delete",
        metavar="NAME",
        dest="changes",
        action="append",
        type=lambda name: Change(AlterConfigOp.DELETE, name),
        help="reset an option to its default; may be repeated",
    )
    alter.add_argument(
        "--dry-run", action="store_true", help="only check whether the change is valid"
    )


def _change(operation: AlterConfigOp, text: str) -> Change:
    return Change(operation, *assignment(text))


def _add_resource(parser: argparse.ArgumentParser) -> None:
    owner = parser.add_mutually_exclusive_group(required=True)
    owner.add_argument("--topic", metavar="TOPIC", help="options of this topic")
    owner.add_argument("--broker", metavar="ID", type=index, help="options of this broker")
    owner.add_argument(
        "--broker-loggers", metavar="ID", type=index, help="levels of this broker's loggers"
    )
    owner.add_argument(
        "--cluster", action="store_true", help="cluster-wide defaults of all brokers"
    )
    owner.add_argument(
        "--client-metrics", metavar="NAME", help="which metrics clients push (KIP-714)"
    )


def _resource(arguments: argparse.Namespace) -> tuple[Resource, str]:
    if arguments.topic is not None:
        return Resource(ConfigResourceType.TOPIC, arguments.topic), f"topic {arguments.topic}"
    if arguments.broker is not None:
        return Resource(
            ConfigResourceType.BROKER, str(arguments.broker)
        ), f"broker {arguments.broker}"
    if arguments.broker_loggers is not None:
        broker = str(arguments.broker_loggers)
        return Resource(ConfigResourceType.BROKER_LOGGER, broker), f"broker {broker}'s loggers"
    if arguments.client_metrics is not None:
        name = arguments.client_metrics
        return Resource(ConfigResourceType.CLIENT_METRICS, name), f"client metrics {name}"
    return Resource(ConfigResourceType.BROKER, ""), "the cluster"


def _describe(arguments: argparse.Namespace) -> None:
    resource, _ = _resource(arguments)
    names = arguments.names or None
    entries = run(
        arguments,
        lambda client: describe_configs(client, resource, names, documentation=arguments.docs),
    )
    shown = [
        entry
        for entry in entries
        if names is not None or arguments.all or entry.source is not ConfigSource.DEFAULT
    ]
    if arguments.json:
        print_json(
            [
                {
                    "name": entry.name,
                    "value": entry.value,
                    "source": entry.source.name.lower(),
                    "read_only": entry.read_only,
                    "sensitive": entry.sensitive,
                    **({"documentation": entry.documentation} if arguments.docs else {}),
                }
                for entry in shown
            ]
        )
        return
    columns = ["option", "value", "source", *(["meaning"] if arguments.docs else [])]
    print_table(
        columns,
        [
            [
                entry.name,
                "(secret)" if entry.sensitive else entry.value,
                entry.source.name.lower().replace("_", " "),
                *([entry.documentation] if arguments.docs else []),
            ]
            for entry in shown
        ],
    )


def _alter(arguments: argparse.Namespace) -> None:
    if not arguments.changes:
        raise InvalidValueError("nothing to change; use --set, --delete, --append or --subtract")
    resource, name = _resource(arguments)
    run(
        arguments,
        lambda client: alter_configs(
            client, resource, arguments.changes, validate_only=arguments.dry_run
        ),
    )
    done = "would be" if arguments.dry_run else "are"
    if arguments.json:
        print_json({"resource": name, "changed": not arguments.dry_run})
    else:
        print(f"options of {name} {done} changed")

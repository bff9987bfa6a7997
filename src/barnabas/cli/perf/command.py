"""`barnabas perf`: measure how fast records are produced, consumed, and both."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from barnabas.cli.arguments import add_action, assignment, count, seconds
from barnabas.cli.interruption import INTERRUPTION

if TYPE_CHECKING:
    from barnabas.cli.perf.meter import Figures
    from barnabas.cli.perf.plan import Plan
    from barnabas.client.cluster_client import ClusterClient

CLIENTS = "barnabas, confluent-kafka, aiokafka and kafka-python"

PRODUCE_EXAMPLES = """\
  barnabas perf produce orders --records 100000
  barnabas perf produce orders --duration 30 --throughput 5000 --record-size 1000
  barnabas perf produce orders --records 100000 --client barnabas,confluent-kafka,aiokafka
  barnabas perf produce orders --records 100000 --clients 2 --client-option linger.ms=5

With --throughput, latencies count from when a record was due, not from when it could be sent: a
stall shows in every record that it delays. Without it, records are sent as fast as the client takes
them, and latencies are mostly the time in its queue."""
CONSUME_EXAMPLES = """\
  barnabas perf consume orders
  barnabas perf consume orders --records 100000 --json
  barnabas perf consume orders --from end --duration 30

With --from end, latencies count from the records' timestamps, by the clocks of the machines."""
LATENCY_EXAMPLES = """\
  barnabas perf latency orders --records 1000
  barnabas perf latency orders --duration 30 --throughput 500

A record is sent, written and read back before the next one; with --throughput, records are sent
when they are due."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the actions and their arguments."""
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    produce = add_action(actions, "produce", "measure sending records", _produce, PRODUCE_EXAMPLES)
    _add_common(produce)
    _add_records(produce)
    _add_sending(produce)
    payload = produce.add_mutually_exclusive_group()
    _add_record_size(payload)
    payload.add_argument(
        "--payload-file", metavar="FILE", help="send lines of this file, chosen at random"
    )
    produce.add_argument(
        "--transaction-duration",
        metavar="SECONDS",
        type=seconds,
        help="send in transactions, and commit each after so long",
    )
    consume = add_action(actions, "consume", "measure reading records", _consume, CONSUME_EXAMPLES)
    _add_common(consume)
    _add_records(consume)
    consume.add_argument(
        "--from",
        dest="start",
        choices=["beginning", "end"],
        default="beginning",
        help="where to start (default: beginning)",
    )
    consume.add_argument(
        "--group",
        metavar="NAME",
        help="read as members of this group, and commit nothing (default: without a group)",
    )
    consume.add_argument(
        "--idle",
        metavar="SECONDS",
        type=seconds,
        default=3.0,
        help="end when no record has arrived for so long (default: 3)",
    )
    latency = add_action(
        actions, "latency", "measure sending records and reading them", _latency, LATENCY_EXAMPLES
    )
    _add_common(latency)
    _add_records(latency)
    _add_sending(latency)
    _add_record_size(latency)


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topic", metavar="TOPIC")
    parser.add_argument(
        "--client",
        metavar="NAME[,...]",
        type=_clients,
        default=["barnabas"],
        help=f"clients to measure, one after another: {CLIENTS} (default: barnabas)",
    )
    parser.add_argument(
        "--clients",
        metavar="N",
        type=count,
        default=1,
        help="run so many of each at once, in processes of their own (default: 1)",
    )
    parser.add_argument(
        "--client-option",
        metavar="NAME=VALUE",
        type=assignment,
        action="append",
        default=[],
        help="an option of the clients, by Kafka's name; may be repeated",
    )


def _add_records(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--records", metavar="N", type=count, help="end after so many records")
    parser.add_argument(
        "--duration", metavar="SECONDS", type=seconds, help="end after so many seconds"
    )


def _add_sending(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--throughput",
        metavar="N",
        type=_rate,
        help="send so many records a second, all clients together (default: no limit)",
    )
    parser.add_argument(
        "--acks",
        choices=["-1", "0", "1", "all"],
        default="all",
        help="who must have a record before it counts as sent (default: all)",
    )
    parser.add_argument(
        "--codec",
        choices=["none", "gzip", "snappy", "lz4", "zstd"],
        default="none",
        help="compression of batches (default: none)",
    )


def _add_record_size(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--record-size",
        metavar="BYTES",
        type=count,
        default=100,
        help="size of the values that are sent (default: 100)",
    )


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not 0 < rate < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number of records")
    return rate


def _clients(text: str) -> list[str]:
    from importlib.util import find_spec

    from barnabas.cli.perf.plan import CLIENTS as KNOWN
    from barnabas.cli.perf.plan import MODULES

    names = list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise argparse.ArgumentTypeError("no client is named")
    for name in names:
        if name not in KNOWN:
            raise argparse.ArgumentTypeError(f"unknown client {name!r}: must be {', '.join(KNOWN)}")
        if name in MODULES and find_spec(MODULES[name]) is None:
            raise argparse.ArgumentTypeError(f"{name} is not installed: pip install {name}")
    return names


# Actions.


def _produce(arguments: argparse.Namespace) -> int:
    from barnabas.cli.perf.payloads import read_payloads
    from barnabas.cli.perf.plan import Plan
    from barnabas.model.errors import InvalidValueError

    if arguments.payload_file is not None:
        read_payloads(arguments.payload_file)  # rejects a wrong one before clients start
    transactions = arguments.transaction_duration
    if transactions is not None and arguments.acks not in ("all", "-1"):
        raise InvalidValueError(f"--acks {arguments.acks}: transactions need --acks all")
    plan = Plan(
        "produce",
        arguments.topic,
        records=_records(arguments, 100_000),
        duration_s=arguments.duration,
        throughput=arguments.throughput,
        record_size=arguments.record_size,
        payload_file=arguments.payload_file,
        transaction_ms=None if transactions is None else transactions * 1000,
    )
    return _measure(arguments, plan, _sending_options(arguments))


def _consume(arguments: argparse.Namespace) -> int:
    from barnabas.cli.perf.plan import Plan

    at_end = arguments.start == "end"
    options = {"auto.offset.reset": "latest" if at_end else "earliest"}
    if arguments.group is not None:
        options["group.id"] = arguments.group
        options["enable.auto.commit"] = "false"  # the next client reads the same records
    plan = Plan(
        "consume",
        arguments.topic,
        records=arguments.records,
        duration_s=arguments.duration,
        from_end=at_end,
        group=arguments.group,
        idle_s=float("inf") if at_end and arguments.duration else arguments.idle,
    )
    return _measure(arguments, plan, options)


def _latency(arguments: argparse.Namespace) -> int:
    from barnabas.cli.perf.plan import Plan

    plan = Plan(
        "latency",
        arguments.topic,
        records=_records(arguments, 1000),
        duration_s=arguments.duration,
        throughput=arguments.throughput,
        record_size=arguments.record_size,
    )
    return _measure(arguments, plan, _sending_options(arguments))


def _records(arguments: argparse.Namespace, default: int) -> int | None:
    """Return how many records to send: those of the arguments, or `default` without a time."""
    if arguments.records is None and arguments.duration is None:
        return default
    number: int | None = arguments.records
    return number


def _sending_options(arguments: argparse.Namespace) -> dict[str, str]:
    return {"acks": arguments.acks, "compression.type": arguments.codec}


# Measuring.


def _measure(arguments: argparse.Namespace, plan: Plan, options: dict[str, str]) -> int:
    """Measure one client after another, and report."""
    from barnabas.cli.output import counted
    from barnabas.cli.perf.fleet import Fleet, MeasurementError
    from barnabas.cli.perf.report import LiveLine
    from barnabas.cli.progress_line import ProgressLine
    from barnabas.cli.session import run
    from barnabas.model.errors import InvalidValueError

    if arguments.command_config.path is not None and arguments.client != ["barnabas"]:
        raise InvalidValueError(
            "--command-config is for our own client: give the others' options one by one, "
            "with --client-option NAME=VALUE"
        )
    partitions = run(arguments, lambda client: _partitions(client, arguments.topic))
    if plan.action == "consume" and plan.group is None and len(partitions) < arguments.clients:
        raise InvalidValueError(
            f"--clients {arguments.clients}: topic {plan.topic} has "
            f"{counted(len(partitions), 'partition')}, and each client reads its own; run no more "
            "clients than that, or read as a group: --group NAME"
        )
    measured: dict[str, Figures] = {}
    failed: dict[str, str] = {}
    with INTERRUPTION.held() as hold:
        with ProgressLine(wanted=not arguments.json) as line:
            for client in arguments.client:
                fleet = Fleet(_shares(arguments, plan, client, options, partitions))
                hold.ends_by(fleet.stop)
                live = LiveLine(client)

                def show(figures: Figures, live: LiveLine = live) -> None:
                    line.show(live.text(figures))

                enough = plan.records if plan.action == "consume" else None
                try:
                    measured[client] = fleet.run(show, enough)
                except MeasurementError as failure:
                    failed[client] = str(failure)
                hold.ends_by(None)
                if INTERRUPTION.is_pending:
                    break
        _print(arguments, measured, failed)
        if INTERRUPTION.is_pending and measured:
            INTERRUPTION.closed()  # the report is the last line
    return 1 if failed or any(figures.failures for figures in measured.values()) else 0


async def _partitions(client: ClusterClient, topic: str) -> list[int]:
    """Return the partitions of the topic; raise if it does not exist."""
    from barnabas.model.errors import InvalidValueError

    view = (await client.refresh([topic])).topics.get(topic)
    if view is None or not view.partitions:
        failure = InvalidValueError(f"topic {topic!r} does not exist")
        failure.add_note(f"create it with: barnabas topics create {topic}")
        raise failure
    return sorted(view.partitions)


def _shares(
    arguments: argparse.Namespace,
    plan: Plan,
    client: str,
    options: dict[str, str],
    partitions: list[int],
) -> list[Plan]:
    """Return the plan of each process: its share of records, throughput and partitions."""
    from barnabas.cli.command_config import client_options

    clients: int = arguments.clients
    base = {
        **client_options(arguments),
        "client.id": arguments.command_config.options.get("client.id", "barnabas-perf"),
    }
    plans = []
    for number in range(clients):
        own = {**base, **options, **dict(arguments.client_option)}
        if plan.transaction_ms is not None:
            own.setdefault("transactional.id", f"barnabas-perf-{number}")
            if clients > 1 and "transactional.id" in dict(arguments.client_option):
                own["transactional.id"] += f"-{number}"
        own_partitions = partitions[number::clients]
        records = plan.records
        if records is not None and plan.action != "consume":
            records = records // clients + (number < records % clients)
        plans.append(
            replace(
                plan,
                client=client,
                options=own,
                records=records,
                throughput=plan.throughput / clients if plan.throughput else None,
                partitions=tuple(partitions if plan.action == "latency" else own_partitions),
            )
        )
    return plans


def _print(
    arguments: argparse.Namespace, measured: dict[str, Figures], failed: dict[str, str]
) -> None:
    from barnabas.cli.output import counted, print_json, print_table
    from barnabas.cli.perf.report import document, histogram_lines, latencies, rates

    if arguments.json:
        print_json([document(client, figures) for client, figures in measured.items()])
    elif measured:
        print_table(*rates(measured))
        header, rows = latencies(measured)
        if rows:
            print()
            print_table(header, rows)
        for client, figures in measured.items():
            lines = histogram_lines(figures.latencies)
            if lines:
                print(f"\n{client}: latencies of {counted(figures.latencies.count, 'record')}")
                print("\n".join(lines))
    sys.stdout.flush()
    for client, figures in measured.items():
        if figures.failures:
            failed[client] = (
                f"{counted(figures.failures, 'record')} failed, the first: {figures.first_failure}"
            )
    for client, reason in failed.items():
        print(f"barnabas perf: {client}: {reason}", file=sys.stderr)

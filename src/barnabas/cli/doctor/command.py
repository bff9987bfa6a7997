"""`barnabas doctor`: check the way to a cluster, the cluster, and a broker's machine."""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from barnabas.cli.arguments import add_connection
from barnabas.cli.command_config import bootstrap_of, client_options
from barnabas.cli.doctor.cluster_probes import cluster_checks
from barnabas.cli.doctor.connecting import ClusterView, is_loopback
from barnabas.cli.doctor.finding import Severity, amber
from barnabas.cli.doctor.machine import machine_checks, zookeeper_addresses, zookeeper_server
from barnabas.cli.doctor.options_checks import BrokerOptionsView, Risky, Wrong, option_checks
from barnabas.cli.doctor.probes import (
    Access,
    handshake,
    log_in,
    negotiate,
    reach,
    resolve,
    view_cluster,
    visit,
)
from barnabas.cli.doctor.report import Report, has_colour
from barnabas.cli.session import on_loop
from barnabas.client.addresses import Address, parse_addresses
from barnabas.client.cluster_client import ClusterClient
from barnabas.client.metadata import ClientMetadata
from barnabas.config.broker import BrokerOptions
from barnabas.config.clients.admin import AdminOptions
from barnabas.config.clients.options import parse_client_options
from barnabas.config.properties import read_properties
from barnabas.model.errors import BarnabasError, ConfigError

EXAMPLES = """\
examples:
  barnabas doctor
  barnabas doctor --bootstrap-server broker-1:9093 --command-config client.properties
  barnabas doctor --topic probes
  barnabas doctor --read-only --json
  barnabas doctor --server-properties server.properties
  barnabas doctor --data-dir /var/lib/barnabas

Without --server-properties and --data-dir it checks the way to the cluster, and the cluster; with
one of them the machine that it runs on, and the cluster, too, if --bootstrap-server is given.

Each line is green (well), amber (works, and may not for long) or red (does not work). Exit codes:
0 if nothing is red, 1 if something is (with --strict: or amber), 2 misused.
"""

CONNECT_MS_MAX = 10_000.0


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.epilog = EXAMPLES
    add_connection(parser)
    parser.add_argument(
        "--topic",
        metavar="TOPIC",
        help="send a record to each broker through this topic and read it back "
        "(default: a temporary topic)",
    )
    parser.add_argument(
        "--read-only", action="store_true", help="send no record, create no temporary topic"
    )
    parser.add_argument(
        "--server-properties", metavar="FILE", help="check this broker's options and machine"
    )
    parser.add_argument(
        "--data-dir",
        metavar="DIR",
        action="append",
        default=[],
        help="check this directory of a broker, and the machine; may be repeated "
        "(default: log.dirs in --server-properties)",
    )
    parser.add_argument("--strict", action="store_true", help="exit with 1 for amber, too")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run all checks, and return the exit code."""
    report = Report(json=arguments.json, colour=has_colour())
    is_local = bool(arguments.server_properties or arguments.data_dir)
    if is_local:
        _machine(arguments, report)
    if not is_local or arguments.bootstrap is not None:
        options, addresses = _client(arguments)
        on_loop(_cluster(arguments, options, addresses, report))
    report.close(int(time.time() * 1000))
    return report.exit_code(strict=arguments.strict)


# -- the machine of a broker


def _machine(arguments: argparse.Namespace, report: Report) -> None:
    path: str | None = arguments.server_properties
    options = None if path is None else _server_options(path, report)
    directories: list[str] = arguments.data_dir
    broker_id = None
    if options is not None:
        directories = directories or list(options.log_directories)
        broker_id = options.broker_id if options.broker_id >= 0 else None
    for check in machine_checks(directories, broker_id):
        report.judge(check)
    if options is not None and options.zookeeper_connect:
        on_loop(_zookeeper(options, report))


def _server_options(path: str, report: Report) -> BrokerOptions | None:
    try:
        text = Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as failure:
        raise ConfigError(f"--server-properties {path}: cannot read: {failure}") from failure
    try:
        options = BrokerOptions.parse(read_properties(text))
    except ConfigError as failure:
        report.judge(Wrong(path, str(failure), "correct it: a broker does not start with this"))
        return None
    for warning in options.warnings():
        report.judge(Risky(path, warning, "remove it, or correct its name"))
    values = {
        name: shown
        for name, declared in options.options.items()
        if (shown := declared.text(options.value(name))) is not None
    }
    view = BrokerOptionsView(path, values, set(options.given), is_barnabas=False)
    for check in option_checks(view, brokers=None):
        report.judge(check)
    return options


async def _zookeeper(options: BrokerOptions, report: Report) -> None:
    assert options.zookeeper_connect is not None
    tls = options.zookeeper_ssl_client_enable
    servers = zookeeper_addresses(options.zookeeper_connect)
    timeout_ms = min(options.zookeeper_session_timeout_ms, CONNECT_MS_MAX)
    probes = (zookeeper_server(server, timeout_ms, tls=tls) for server in servers)
    for check in await asyncio.gather(*probes):
        report.judge(check)


# -- the way to a cluster, and the cluster


def _client(arguments: argparse.Namespace) -> tuple[dict[str, Any], list[Address]]:
    """Return the options of the clients, and the addresses to begin with."""
    options: dict[str, Any] = client_options(arguments)
    timeout_ms = max(1, int(arguments.timeout * 1000))
    own = {
        "request.timeout.ms": timeout_ms,
        "socket.connection.setup.timeout.ms": min(timeout_ms, int(CONNECT_MS_MAX)),
    }
    return {**options, **own}, parse_addresses(bootstrap_of(arguments))


async def _cluster(
    arguments: argparse.Namespace,
    options: dict[str, Any],
    addresses: list[Address],
    report: Report,
) -> None:
    with arguments.command_config.named():
        parsed = parse_client_options(AdminOptions, options)
    file = arguments.command_config.path
    where = f"in {file}" if file else "in a file, and name it in --command-config"
    access = Access(parsed, where, min(arguments.timeout * 1000, CONNECT_MS_MAX))
    views = [await _way_to(access, address, report) for address in addresses]
    view = next((each for each in views if each is not None), None)
    if view is None or not view.brokers:
        return
    is_local = any(is_loopback(address.host) for address in addresses)
    visits = await asyncio.gather(
        *(
            visit(access, broker, view, bootstrap_is_local=is_local)
            for broker in sorted(view.brokers.values(), key=lambda broker: broker.node_id)
        )
    )
    if any(report.judge(each).severity is Severity.RED for each in visits):
        return  # nothing that follows could succeed
    async with ClusterClient.from_options(parsed) as client:
        with _reported(report, "record"):
            if not arguments.read_only:
                await _records(client, arguments, options, report)
        with _reported(report, "cluster"):
            async for check in cluster_checks(client):
                report.judge(check)


async def _way_to(access: Access, address: Address, report: Report) -> ClientMetadata | None:
    """Check the way to one address step by step; return what it knows of the cluster."""
    resolution = await resolve(address, access.timeout_ms)
    if report.judge(resolution).severity is Severity.RED:
        return None
    reached = await reach(address, resolution.addresses, access.timeout_ms)
    if report.judge(reached).severity is Severity.RED:
        return None
    if access.options.uses_tls:
        secured = await handshake(access, address)
        if report.judge(secured).severity is Severity.RED:
            return None
    versions, connection = await negotiate(access, address)
    if report.judge(versions).severity is Severity.RED or connection is None:
        return None
    try:
        if access.options.uses_sasl:
            login = await log_in(access, connection)
            if report.judge(login).severity is Severity.RED:
                return None
        seen: ClusterView
        seen, view = await view_cluster(access, connection)
        report.judge(seen)
        return view
    finally:
        connection.abort()


async def _records(
    client: ClusterClient, arguments: argparse.Namespace, options: dict[str, Any], report: Report
) -> None:
    # Only here: a client without a way to its cluster needs no producer and no consumer.
    from barnabas.cli.doctor.round_trip import round_trips

    async for outcome in round_trips(client, options, arguments.topic, arguments.timeout):
        report.judge(outcome)


@contextmanager
def _reported(report: Report, check: str) -> Iterator[None]:
    """Report that checks could not be made, instead of ending."""
    try:
        yield
    except BarnabasError as failure:
        step = "allow DESCRIBE on the cluster, or run it as an administrator"
        report.add(amber(check, "", f"not checked: {failure}", step))

"""`barnabas start --workers`: a supervisor and its workers in the foreground."""

from __future__ import annotations

import argparse
import asyncio
import logging
import signal
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.cli.interruption import INTERRUPTION, Hold
from barnabas.cli.start import metrics_line, option_values, use_log_options
from barnabas.workers.plan import WorkerPlan
from barnabas.workers.supervisor import Serving, Supervisor

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from barnabas.cli.service_manager import ServiceManager
    from barnabas.config.broker import BrokerOptions
    from barnabas.logging.output import LogOutput


def supervise(
    arguments: argparse.Namespace,
    options: BrokerOptions,
    output: LogOutput,
    manager: ServiceManager,
) -> int:
    """Run the workers that options ask for, until SIGTERM or SIGINT."""
    use_log_options(options, output)
    output.broker_id = None  # that of worker 1
    for warning in options.warnings():
        logging.getLogger("barnabas.config").warning(warning)

    def read_plan() -> WorkerPlan:
        return WorkerPlan(option_values(arguments), socket.gethostname())

    hints: list[str] = []
    if arguments.secure is not None:
        from barnabas.cli.security import how_to_connect

        hints = how_to_connect(Path(arguments.secure))
    with INTERRUPTION.held(patient=True) as hold:
        asyncio.run(_run(read_plan, arguments.log_level, hints, hold, manager))
    return 0


async def _run(
    read_plan: Callable[[], WorkerPlan],
    log_level: str,
    hints: list[str],
    hold: Hold,
    manager: ServiceManager,
) -> None:
    loop = asyncio.get_running_loop()
    plan = read_plan()
    status = ""
    end_watchdog: list[Callable[[], None]] = []

    def ready(serving: Sequence[Serving]) -> None:
        nonlocal status
        addresses = ", ".join(endpoint for each in serving for endpoint in each.ready.endpoints)
        status = f"ready on {addresses}"
        _print_ready(plan, serving, addresses, hints)
        if supervisor.metrics_address is not None:
            print(metrics_line(*supervisor.metrics_address[:2], plan.options), flush=True)
        manager.ready(status)
        end_watchdog.append(manager.keep_alive(loop))

    supervisor = Supervisor(
        plan,
        log_level=log_level,
        read_plan=read_plan,
        on_ready=ready,
        on_rolled=lambda: manager.ready(status),
    )

    def stop() -> None:
        manager.stopping()
        supervisor.stop()

    def roll() -> None:
        manager.reloading()
        supervisor.roll()

    if not sys.stdin.isatty():  # there, it says that the terminal was closed
        loop.add_signal_handler(signal.SIGHUP, roll)
    hold.ends_by(lambda: loop.call_soon_threadsafe(stop))
    try:
        await supervisor.run()
        print("Barnabas stopped cleanly", flush=True)
        INTERRUPTION.closed()
    finally:
        hold.ends_by(None)
        for end in end_watchdog:
            end()


def _print_ready(
    plan: WorkerPlan, serving: Sequence[Serving], addresses: str, hints: Sequence[str]
) -> None:
    ids = ", ".join(str(each.broker_id) for each in serving)
    directories = ", ".join(plan.options.log_directories)
    print(f"Barnabas brokers {ids} are ready on {addresses} (data in {directories})")
    for each in serving:
        if each.ready.console is not None:
            print(f"console on {each.ready.console}")
    for hint in hints:
        print(hint)
    sys.stdout.flush()

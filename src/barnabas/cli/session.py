"""Runs the asynchronous part of a command with a `ClusterClient` for its cluster.

It starts with one Metadata request, without retries: if no broker responds, the command fails at
once with the reason and the next step instead of retrying until its timeout.
"""

from __future__ import annotations

import argparse
import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from barnabas.cli.command_config import bootstrap_of, client_options
from barnabas.cli.interruption import INTERRUPTION, Hold
from barnabas.cli.next_step import explain_silence, with_next_step
from barnabas.client.addresses import parse_addresses
from barnabas.client.cluster_client import ClusterClient
from barnabas.client.errors import NetworkError

Result = TypeVar("Result")


def run(
    arguments: argparse.Namespace,
    work: Callable[[ClusterClient], Awaitable[Result]],
    *,
    busy: bool = False,
) -> Result:
    """Connect to the cluster, do the work, close; `busy` work is worth loading uvloop."""

    async def session() -> Result:
        async with _client(arguments) as client:
            with with_next_step(arguments.command_config.path):
                try:
                    await client.refresh()
                except NetworkError as failure:
                    explain_silence(failure)
                    raise
                return await work(client)

    return on_loop(session(), busy=busy)


def _client(arguments: argparse.Namespace) -> ClusterClient:
    timeout_ms = arguments.timeout * 1000
    if arguments.command_config.path is None:
        return ClusterClient(
            bootstrap_of(arguments),
            client_id="barnabas-cli",
            connect_timeout_ms=min(timeout_ms, 10_000),
            request_timeout_ms=timeout_ms,
            random=random.Random(),
        )
    # Only here: commands without a file start faster without all these options.
    from barnabas.config.clients.admin import AdminOptions
    from barnabas.config.clients.options import parse_client_options

    own = {
        "request.timeout.ms": max(1, int(timeout_ms)),
        "socket.connection.setup.timeout.ms": max(1, int(min(timeout_ms, 10_000))),
    }
    given = client_options(arguments)
    if arguments.bootstrap is not None:
        parse_addresses(arguments.bootstrap)  # a wrong one is not in the file
    with arguments.command_config.named():
        options = parse_client_options(AdminOptions, {**given, **own})
        return ClusterClient.from_options(options)


def on_loop(work: Coroutine[Any, Any, Result], *, busy: bool = False) -> Result:
    """Run work that opens its own clients; a signal cancels it."""
    with (
        INTERRUPTION.held() as hold,
        asyncio.Runner(loop_factory=_busy_loop if busy else None) as runner,
    ):
        return runner.run(_cancellable(work, hold))


def _busy_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


async def _cancellable(work: Coroutine[Any, Any, Result], hold: Hold) -> Result:
    """Distinguish a request that failed because of Ctrl-C from one that failed by itself."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    hold.ends_by(lambda: loop.call_soon_threadsafe(task.cancel))
    try:
        return await work
    except Exception as failure:
        if task.cancelling():
            raise asyncio.CancelledError from failure
        raise
    finally:
        hold.ends_by(None)

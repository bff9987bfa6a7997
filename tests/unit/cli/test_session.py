"""A session fails fast where no broker answers, and closes what it opened."""

from __future__ import annotations

import argparse
import asyncio

import pytest

from barnabas.cli.command_config import CommandConfig
from barnabas.cli.next_step import NO_BROKER
from barnabas.cli.session import run
from barnabas.client.cluster_client import ClusterClient
from barnabas.client.errors import ConnectError, ConnectionLostError


def arguments(bootstrap: str) -> argparse.Namespace:
    return argparse.Namespace(bootstrap=bootstrap, timeout=30.0, command_config=CommandConfig(None))


@pytest.mark.parametrize("busy", [False, True])
def test_the_work_gets_a_board_that_knows_the_cluster(barnabas_bootstrap: str, busy: bool) -> None:
    async def work(client: ClusterClient) -> tuple[list[int], str]:
        return sorted(client.cluster.brokers), type(asyncio.get_running_loop()).__module__

    brokers, loop = run(arguments(barnabas_bootstrap), work, busy=busy)
    assert brokers == [0]
    assert loop.startswith("uvloop") is busy


def test_no_broker_fails_at_once_with_the_next_step() -> None:
    async def work(client: ClusterClient) -> None:
        raise AssertionError("there is nothing to work with")

    with pytest.raises(ConnectError) as failure:
        run(arguments("127.0.0.1:1"), work)
    assert failure.value.__notes__ == [NO_BROKER]


def test_what_cancellation_breaks_is_cancellation() -> None:
    """Ctrl-C closes connections; the failures that follow from it must not be shown."""
    from barnabas.cli.interruption import Interruption
    from barnabas.cli.session import _cancellable

    async def interrupted() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            raise ConnectionLostError("closed by this client") from None

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(_cancellable(interrupted(), Interruption().held()))


def test_a_failure_of_its_own_stays_one() -> None:
    from barnabas.cli.interruption import Interruption
    from barnabas.cli.session import _cancellable

    async def failing() -> None:
        raise ConnectionLostError("closed by the broker")

    with pytest.raises(ConnectionLostError):
        asyncio.run(_cancellable(failing(), Interruption().held()))

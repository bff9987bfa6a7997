"""The user's rebalance listener, called where the user expects it.

A callback that fails does not stop a rebalance: other members wait for it. Its exception is kept
and raised from the poll when the rebalance is through.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Coroutine
from typing import Any

from barnabas.client.errors import WakeupError
from barnabas.consumer.group.contract import Invoke, RebalanceListenerError
from barnabas.consumer.subscription import Subscription
from barnabas.model.errors import BarnabasError
from barnabas.model.ids import TopicPartition

_log = logging.getLogger(__name__)


async def call_directly(function: Any, *arguments: Any) -> object:
    """Run user code on the loop, and await it if it is a coroutine: the simplest `Invoke`."""
    result = function(*arguments)
    return await result if inspect.isawaitable(result) else result


async def unbroken(work: Coroutine[Any, Any, None]) -> None:
    """Finish a step of a rebalance even if the poll around it is cancelled meanwhile.

    Half of it would leave the group, the subscription and the listener with different beliefs. A
    second cancellation breaks it off nevertheless, see `break_off`.
    """
    step = asyncio.get_running_loop().create_task(work)
    try:
        await asyncio.shield(step)
    except asyncio.CancelledError:
        await step
        raise


def break_off(task: asyncio.Task[Any]) -> None:
    """Cancel a task and, in a moment, the unbroken step that it may be in."""
    task.cancel()
    task.get_loop().call_soon(task.cancel)


class Callbacks:
    """Calls the listener of a subscription."""

    def __init__(self, subscription: Subscription, invoke: Invoke) -> None:
        self._subscription = subscription
        self._invoke = invoke
        self._failure: BarnabasError | None = None

    async def revoked(self, partitions: set[TopicPartition]) -> None:
        """Tell that partitions go to others."""
        if partitions:
            await self._tell("on_partitions_revoked", partitions)

    async def lost(self, partitions: set[TopicPartition]) -> None:
        """Tell that partitions have gone to others."""
        if partitions:
            await self._tell("on_partitions_lost", partitions)

    async def assigned(self, partitions: set[TopicPartition]) -> None:
        """Tell that partitions came, or that a rebalance brought none."""
        await self._tell("on_partitions_assigned", partitions)

    def raise_failure(self) -> None:
        """Raise what a callback raised, once."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    async def _tell(self, name: str, partitions: set[TopicPartition]) -> None:
        listener = self._subscription.listener
        if listener is None:
            return
        method = getattr(listener, name, None)
        if method is None and name == "on_partitions_lost":  # a listener from before KIP-429
            method = listener.on_partitions_revoked
        assert method is not None, f"{listener!r} has no {name}"
        try:
            await self._invoke(method, set(partitions))
        except WakeupError as failure:  # of a call inside the listener: it was meant for the poll
            self._failure = failure
        except Exception as failure:  # noqa: BLE001  # user code may raise anything; it is raised later
            _log.exception("%s of the rebalance listener %r failed", name, listener)
            told = f"{name} of the rebalance listener {listener!r} failed: {failure!r}"
            self._failure = RebalanceListenerError(told)
            self._failure.__cause__ = failure

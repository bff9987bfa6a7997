"""Code of the user that a consumer calls: rebalance listeners, and callbacks of commits.

User code is called through `Invoke`, which the consumer's core provides: on the loop for asyncio
consumers, in the polling thread for blocking ones. A listener may therefore call the consumer's
`commit`. A callback that fails does not stop a rebalance, because other members wait for it: its
exception is kept, and raised from the poll when the rebalance is complete.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from barnabas.client.errors import WakeupError
from barnabas.consumer.group.counts import GroupCounts, Times
from barnabas.model.errors import BarnabasError
from barnabas.model.ids import TopicPartition
from barnabas.structs import OffsetAndMetadata

if TYPE_CHECKING:  # an import cycle: it has a listener
    from barnabas.consumer.subscription import Subscription

_log = logging.getLogger(__name__)

Offsets: TypeAlias = Mapping[TopicPartition, OffsetAndMetadata]
"""The offsets to commit: the next offset to read, and a metadata string, for each partition."""

CommitCallback: TypeAlias = Callable[[Offsets, Exception | None], object]
"""Called when a commit completes, with the offsets, and the failure or None."""

Invoke: TypeAlias = Callable[..., Awaitable[object]]
"""`await invoke(function, *arguments)` runs user code where the user expects it to run, awaits it
if it is a coroutine, and returns its result or raises its exception."""

Wake: TypeAlias = Callable[[], None]
"""Called on the loop when a member's `poll` has work: a waiting poll should call it."""


class ConsumerRebalanceListener(ABC):
    """Notified, inside the consumer's poll, of assigned and revoked partitions; to be subclassed.

    The methods may be coroutines for the asyncio consumer. Those about revoked or lost partitions
    are called only when there are such partitions; `on_partitions_assigned` is called
    after every rebalance, with the partitions that are new to this consumer.
    """

    @abstractmethod
    def on_partitions_revoked(self, revoked: set[TopicPartition]) -> Any:
        """Finish with partitions that are revoked; their offsets can still be committed."""

    @abstractmethod
    def on_partitions_assigned(self, assigned: set[TopicPartition]) -> Any:
        """Begin with partitions, before their first record is read; a `seek` here takes effect."""

    def on_partitions_lost(self, lost: set[TopicPartition]) -> Any:
        """Forget partitions that other members may own by now; they can no longer be committed."""
        return self.on_partitions_revoked(lost)


class AsyncConsumerRebalanceListener(ConsumerRebalanceListener):
    """A listener whose methods are coroutines."""

    @abstractmethod
    async def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        """Finish with partitions that are revoked; their offsets can still be committed."""

    @abstractmethod
    async def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        """Begin with partitions, before their first record is read; a `seek` here takes effect."""

    async def on_partitions_lost(self, lost: set[TopicPartition]) -> None:
        """Forget partitions that other members may own by now; they can no longer be committed."""
        await self.on_partitions_revoked(lost)


class RebalanceListenerError(BarnabasError):
    """A listener's callback failed (its exception is the cause); the rebalance continued."""


async def call_directly(function: Any, *arguments: Any) -> object:
    """Run user code on the loop, and await it if it is a coroutine: the simplest `Invoke`."""
    result = function(*arguments)
    return await result if inspect.isawaitable(result) else result


async def unbroken(work: Coroutine[Any, Any, None]) -> None:
    """Finish a step of a rebalance even if the poll around it is cancelled meanwhile.

    Stopping halfway would leave group, subscription and listener inconsistent. A second
    cancellation interrupts it nevertheless, see `break_off`.
    """
    step = asyncio.get_running_loop().create_task(work)
    try:
        await asyncio.shield(step)
    except asyncio.CancelledError:
        await step
        raise


def break_off(task: asyncio.Task[Any]) -> None:
    """Cancel a task and, shortly after, the unbroken step that it may be in."""
    task.cancel()
    task.get_loop().call_soon(task.cancel)


class ListenerCalls:
    """Calls the listener of a subscription."""

    def __init__(self, subscription: Subscription, invoke: Invoke, counts: GroupCounts) -> None:
        self._subscription = subscription
        self._counts = counts
        self._invoke = invoke
        self._failure: BarnabasError | None = None

    async def revoked(self, partitions: set[TopicPartition]) -> None:
        """Notify the listener that partitions are being revoked."""
        if partitions:
            await self._notify("on_partitions_revoked", partitions, self._counts.revoked)

    async def lost(self, partitions: set[TopicPartition]) -> None:
        """Notify the listener that partitions were lost."""
        if partitions:
            await self._notify("on_partitions_lost", partitions, self._counts.lost)

    async def assigned(self, partitions: set[TopicPartition]) -> None:
        """Notify the listener of new partitions, or of a rebalance that assigned none."""
        await self._notify("on_partitions_assigned", partitions, self._counts.assigned)

    def raise_failure(self) -> None:
        """Raise the exception of a callback, once."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    async def _notify(self, name: str, partitions: set[TopicPartition], times: Times) -> None:
        listener = self._subscription.listener
        if listener is None:
            return
        method = getattr(listener, name, None)
        if method is None and name == "on_partitions_lost":  # a listener from before KIP-429
            method = listener.on_partitions_revoked
        assert method is not None, f"rebalance listener {listener!r} has no {name}"
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        try:
            await self._invoke(method, set(partitions))
        except WakeupError as failure:  # raised inside the listener, meant for the poll
            self._failure = failure
        except Exception as failure:  # noqa: BLE001  # user code may raise anything; it is raised later
            _log.exception("rebalance listener %r: %s failed, rebalance continues", listener, name)
            self._failure = RebalanceListenerError(
                f"rebalance listener {listener!r}: {name} failed: {failure!r}"
            )
            self._failure.__cause__ = failure
        finally:
            times.record((loop.time() - began_s) * 1000)

"""What a consumer's core and its membership in a group know of each other.

`Membership` is what the core calls. One implementation joins classic groups (`classic`), one those
of KIP-848 (`consumer_protocol`), one stands for a consumer without a group (`none`). A membership
keeps its place in the group by itself, on the loop, whether or not the user polls; what the user
can see of a rebalance (callbacks, partitions that come and go) happens only inside `ensure_active`,
which the core awaits inside the user's poll.

User code is called through `Invoke`, which the core gives: on the loop for the asyncio consumer,
in the thread that polls for the plain one. A listener may therefore call the consumer's `commit`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Protocol, TypeAlias

from barnabas.model.errors import BarnabasError
from barnabas.model.group_metadata import ConsumerGroupMetadata, MemberState
from barnabas.model.ids import TopicPartition
from barnabas.structs import OffsetAndMetadata

__all__ = [
    "AsyncConsumerRebalanceListener",
    "CommitCallback",
    "ConsumerGroupMetadata",
    "ConsumerRebalanceListener",
    "Invoke",
    "MemberState",
    "Membership",
    "Offsets",
    "RebalanceListenerError",
    "Wake",
]

Offsets: TypeAlias = Mapping[TopicPartition, OffsetAndMetadata]
"""What is committed: the next offset to read, and a text, for each partition."""

CommitCallback: TypeAlias = Callable[[Offsets, Exception | None], object]
"""Told of the end of a commit: the offsets, and the failure or None."""

Invoke: TypeAlias = Callable[..., Awaitable[object]]
"""`await invoke(function, *arguments)` runs user code where the user expects it to run, awaits it
if it is a coroutine, and returns or raises what it does."""

Wake: TypeAlias = Callable[[], None]
"""Called on the loop when `ensure_active` has something to do: a waiting poll should call it."""


class ConsumerRebalanceListener(ABC):
    """Told, inside the consumer's poll, of partitions that come and go; to be subclassed.

    The methods may be coroutines for the asyncio consumer. Those about partitions that go are
    called only when there is something to give up; `on_partitions_assigned` is called
    after every rebalance, with the partitions that are new to this consumer.
    """

    @abstractmethod
    def on_partitions_revoked(self, revoked: set[TopicPartition]) -> Any:
        """Finish with partitions that go to another consumer; offsets can still be committed."""

    @abstractmethod
    def on_partitions_assigned(self, assigned: set[TopicPartition]) -> Any:
        """Begin with partitions, before their first record is read; a `seek` here counts."""

    def on_partitions_lost(self, lost: set[TopicPartition]) -> Any:
        """Forget partitions that others may have by now; nothing can be committed any more."""
        return self.on_partitions_revoked(lost)


class AsyncConsumerRebalanceListener(ConsumerRebalanceListener):
    """A listener whose methods are coroutines."""

    @abstractmethod
    async def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        """Finish with partitions that go to another consumer; offsets can still be committed."""

    @abstractmethod
    async def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        """Begin with partitions, before their first record is read; a `seek` here counts."""

    async def on_partitions_lost(self, lost: set[TopicPartition]) -> None:
        """Forget partitions that others may have by now; nothing can be committed any more."""
        await self.on_partitions_revoked(lost)


class RebalanceListenerError(BarnabasError):
    """A listener's callback failed (its exception is the cause); the rebalance went on."""


class Membership(Protocol):
    """A consumer's part in a group; all methods are called on the loop."""

    @property
    def needs_attention(self) -> bool:
        """Tell whether `ensure_active` would do something: cheap, for the fast path of poll."""

    @property
    def generation(self) -> int:
        """Return the generation (KIP-848: the member epoch), -1 outside a group."""

    @property
    def member_id(self) -> str:
        """Return the id under which the group knows this consumer, "" if it does not."""

    @property
    def state(self) -> str:
        """Return a text of `MemberState`."""

    def group_metadata(self) -> ConsumerGroupMetadata:
        """Return what a transactional producer needs to commit for this consumer."""

    async def start(self) -> None:
        """Begin to work; joins nothing yet."""

    async def close(
        self, *, commit: bool = True, leave: bool = True, timeout_ms: float | None = None
    ) -> None:
        """End: commit what was consumed (with auto-commit), tell the listener, leave the group.

        `commit=False` leaves out the commit; with `leave=False` the group finds out by itself.
        """

    def note_poll(self, now_ms: float) -> None:
        """Take notice that the user polls: what max.poll.interval.ms counts from."""

    def subscription_changed(self) -> None:
        """Take notice of a new subscription, of none any more, or of partitions set by hand."""

    def metadata_changed(self) -> None:
        """Take notice of a new view of the cluster (topics, partitions)."""

    def topics_followed(self) -> Iterable[str] | None:
        """Return the topics whose metadata the membership needs, beside the user's; None: all."""

    async def ensure_active(self, timeout_ms: float) -> bool:
        """Do what the group waits for: run callbacks, (re)join, take the assignment.

        Returns True when the assigned partitions may be read: the member has joined, or goes on
        with what it keeps while a cooperative rebalance runs. False: the time ran out; the join
        goes on without the caller, and the next call takes it up. Callbacks are not bounded by
        the time.

        Raises what no retry mends (authorization, a fenced instance id, a group of another kind),
        and RebalanceListenerError when user code failed.
        """

    async def commit(self, offsets: Offsets, timeout_ms: float | None = None) -> None:
        """Commit, again while that can help; CommitFailedError if others have the partitions."""

    def commit_soon(self, offsets: Offsets, callback: CommitCallback | None = None) -> None:
        """Commit without waiting, in the order of calls; `callback` is run in a later poll."""

    def commit_parting(self, offsets: Offsets) -> None:
        """Commit without waiting before the user gives all partitions up, and the group with it."""

    async def committed(
        self, partitions: Iterable[TopicPartition], timeout_ms: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the group's committed offsets; partitions without one are left out."""

    def maybe_auto_commit(self, now_ms: float) -> None:
        """Commit what was consumed if enable.auto.commit is on and its interval has passed."""

    def health(self) -> dict[str, Any]:
        """Return what an operator wants to know: coordinator, state, ages of the last calls."""

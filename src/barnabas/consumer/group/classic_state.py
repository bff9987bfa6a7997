"""A member of a classic group, as decisions without waiting: its identity and its next step.

    OUT ──join──▶ JOINING ──assignment──▶ ARRIVED ──taken over in poll──▶ STABLE
     ▲               ▲                       │                              │
     │               └──────────rejoin───────┴──────────────────────────────┤
     └──────────────────────lost, left, refused─────────────────────────────┘

`reason` says why the member has to join (again), None if it need not. Partitions are lost when the
group has rebalanced without the member: `is_lost` stays until the listener was notified.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import NamedTuple

from barnabas.consumer.group.error_actions import ErrorAction
from barnabas.model.error_codes import ErrorCode
from barnabas.model.group_metadata import MemberState
from barnabas.model.ids import TopicPartition

NO_GENERATION = -1


class Phase(Enum):
    """How far a member has joined."""

    OUT = "not in the group"
    JOINING = "waiting for the other members"
    ARRIVED = "has an assignment that the listener does not know yet"
    STABLE = "in the group"


class Revocation(NamedTuple):
    """What a member gives up before it joins."""

    partitions: set[TopicPartition]
    is_lost: bool


class AssignmentChange(NamedTuple):
    """The changes of an assignment."""

    revoked: set[TopicPartition]
    added: set[TopicPartition]


class ClassicState:
    """One member; `is_cooperative` members keep what they own while they rejoin."""

    def __init__(self, is_cooperative: bool) -> None:
        self.is_cooperative = is_cooperative
        self.member_id = ""
        self.generation = NO_GENERATION
        self.phase = Phase.OUT
        self.reason: str | None = "it has not joined yet"
        self.is_lost = False
        self.joined_topics: frozenset[str] = frozenset()
        self.assigned: Sequence[TopicPartition] = ()
        """The last assignment; sticky assignors get it in the next rebalance."""
        self.assigned_in = NO_GENERATION

    @property
    def is_in(self) -> bool:
        """Return whether the group counts on this member's heartbeats."""
        return self.phase in (Phase.ARRIVED, Phase.STABLE)

    @property
    def is_out(self) -> bool:
        """Return whether the group does not know this member."""
        return self.phase is Phase.OUT

    @property
    def may_commit(self) -> bool:
        """Return whether the group would accept this member's commits."""
        return self.generation != NO_GENERATION

    @property
    def state(self) -> str:
        """Return the state as a `MemberState`."""
        if self.phase is Phase.OUT:
            return MemberState.UNJOINED
        is_settled = self.phase is Phase.STABLE and self.reason is None
        return MemberState.STABLE if is_settled else MemberState.REBALANCING

    # -- events

    def request_rejoin(self, reason: str) -> None:
        """Request a rejoin; the first reason is the one that is reported."""
        if self.reason is None:
            self.reason = reason

    def begin_join(self, topics: Iterable[str]) -> None:
        """Begin to join, with this subscription."""
        self.phase = Phase.JOINING
        self.reason = None
        self.joined_topics = frozenset(topics)

    def take_id(self, member_id: str) -> None:
        """Take the id that the group gave; it waits for a join under it (KIP-394)."""
        self.member_id = member_id

    def joined(self, member_id: str, generation: int) -> None:
        """Record the generation; the assignment is still to come."""
        self.member_id = member_id
        self.generation = generation

    def synced(self, partitions: Sequence[TopicPartition]) -> None:
        """Record the assignment; it is applied in the user's poll."""
        self.phase = Phase.ARRIVED
        self.assigned = partitions
        self.assigned_in = self.generation

    def taken_over(self) -> None:
        """Record that the listener was notified of the assignment."""
        self.phase = Phase.STABLE

    def lose(self, reason: str, *, forget: bool) -> None:
        """Record that the group went on without this member; `forget` drops its id, too."""
        self.phase = Phase.OUT
        self.generation = NO_GENERATION
        if forget:
            self.member_id = ""
        self.is_lost = True
        self.reason = reason

    def leave(self) -> None:
        """Leave voluntarily; the next join is a new member's."""
        self.phase = Phase.OUT
        self.generation = NO_GENERATION
        self.member_id = ""
        self.reason = "it has left"

    def fail_join(self, reason: str) -> None:
        """Record that joining failed; the next poll retries as the same member."""
        self.phase = Phase.OUT
        self.reason = reason

    def reported_lost(self) -> None:
        """Record that the listener was notified of the lost partitions."""
        self.is_lost = False

    def apply(self, action: ErrorAction, code: ErrorCode, request: str) -> None:
        """Apply the action that an error response calls for."""
        reason = f"{request} failed with {code.name} ({code.meaning})"
        if action is ErrorAction.REJOIN:
            self.request_rejoin(reason)
        elif action is ErrorAction.RESET:
            self.lose(reason, forget=False)
        elif action is ErrorAction.FORGET:
            self.lose(reason, forget=True)

    def concerns(self, generation: int) -> bool:
        """Return whether a response to a request of that generation still concerns this member."""
        return self.is_in and generation == self.generation

    # -- decisions

    def revocation(self, owned: set[TopicPartition], topics: Iterable[str]) -> Revocation:
        """Return what is given up before joining: all, or what is no longer subscribed to."""
        if self.is_lost:
            return Revocation(owned, is_lost=True)
        if not self.is_cooperative:
            return Revocation(owned, is_lost=False)
        subscribed = set(topics)
        return Revocation({each for each in owned if each.topic not in subscribed}, is_lost=False)

    def change(self, owned: set[TopicPartition]) -> AssignmentChange:
        """Return the changes of the assignment; the next rebalance assigns what is revoked."""
        assigned = set(self.assigned)
        return AssignmentChange(revoked=owned - assigned, added=assigned - owned)

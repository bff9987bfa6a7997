"""A member of a KIP-848 group, as decisions without waiting: its identity, target and assignment.

The broker sends a target; the member reconciles with it in the user's poll and reports what it owns
from then on. Heartbeats mention only what changed since the last acknowledged one; after a failed
one everything is sent again, because it is unknown what arrived.

Partitions are identified by topic id here: a topic that was deleted and recreated is another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, TypeAlias

from barnabas.consumer.group.error_actions import ErrorAction
from barnabas.consumer.group.settings import GroupSettings
from barnabas.model.error_codes import ErrorCode
from barnabas.model.group_metadata import MemberState
from barnabas.model.ids import TopicPartition, Uuid
from barnabas.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

JOINING: Final = 0
LEAVING: Final = -1
LEAVING_FOR_A_WHILE: Final = -2
"""Epochs with which a member joins, leaves, or leaves temporarily as a static member."""

REGEX_VERSION: Final = 1
OWN_ID_VERSION: Final = 1
"""In earlier versions the broker generated the member ids (KIP-1082)."""

IdPartitions: TypeAlias = frozenset[tuple[Uuid, int]]

NOTHING: Final[IdPartitions] = frozenset()


class Subscribed(NamedTuple):
    """The subscription of a member: topics, or an expression that the broker matches."""

    topics: tuple[str, ...] = ()
    regex: str | None = None

    def __bool__(self) -> bool:
        return bool(self.topics or self.regex)


class Report(NamedTuple):
    """The contents of a heartbeat."""

    subscribed: Subscribed
    owned: IdPartitions


class Change(NamedTuple):
    """The changes towards the target, as far as its topics are known by name."""

    revoked: dict[TopicPartition, tuple[Uuid, int]]
    added: dict[TopicPartition, tuple[Uuid, int]]
    unknown: bool
    """Whether the target has topics whose names are still unknown."""

    def __bool__(self) -> bool:
        return bool(self.revoked or self.added)


class Kip848State:
    """One member; `generation` is its epoch, -1 outside the group."""

    def __init__(self, member_id: str) -> None:
        self.member_id = member_id
        self.generation = -1
        self.reason: str | None = "it has not joined yet"
        self.is_lost = False
        self.target: IdPartitions | None = None
        """The target assignment; None until the broker has sent one."""
        self.owned: dict[TopicPartition, tuple[Uuid, int]] = {}
        self.subscribed = Subscribed()
        self._is_named = False  # whether the broker has responded to this id
        self._acknowledged: Report | None = None
        self._sent: Report | None = None

    # -- queries

    @property
    def is_in(self) -> bool:
        """Return whether the group expects heartbeats, or waits for the first one."""
        return self.generation >= JOINING

    @property
    def is_out(self) -> bool:
        """Return whether the group does not know this member."""
        return self.generation < JOINING

    @property
    def may_commit(self) -> bool:
        """Return whether the group would accept this member's commits."""
        return self.generation > JOINING

    @property
    def is_joined(self) -> bool:
        """Return whether the broker has sent a target."""
        return self.may_commit and self.target is not None

    @property
    def state(self) -> str:
        """Return the state as a `MemberState`."""
        if self.is_out:
            return MemberState.UNJOINED
        is_settled = self.target is not None and self.target == frozenset(self.owned.values())
        return MemberState.STABLE if is_settled else MemberState.REBALANCING

    @property
    def has_changes(self) -> bool:
        """Return whether the broker must learn something before the next heartbeat is due."""
        now = self._report()
        return self.is_in and (self._acknowledged or now) != now

    def concerns(self, generation: int) -> bool:
        """Return whether a response to a request of that epoch still concerns this member."""
        return self.is_in and generation == self.generation

    def change(self, names: Mapping[Uuid, str]) -> Change:
        """Return the changes towards the target; topics without a known name have to wait."""
        target = self.target if self.target is not None else frozenset(self.owned.values())
        named = {
            TopicPartition(names[topic_id], number): (topic_id, number)
            for topic_id, number in sorted(target)
            if topic_id in names
        }
        return Change(
            revoked={name: each for name, each in self.owned.items() if each not in target},
            added={name: each for name, each in named.items() if self.owned.get(name) != each},
            unknown=len(named) < len(target),
        )

    def _report(self) -> Report:
        return Report(self.subscribed, frozenset(self.owned.values()))

    # -- events

    def join(self, subscribed: Subscribed) -> None:
        """Begin to join: the next heartbeat is the first."""
        self.generation = JOINING
        self.reason = None
        self.target = None
        self.subscribed = subscribed
        self.resend_all()

    def request(self, settings: GroupSettings, version: int) -> ConsumerGroupHeartbeatRequest:
        """Return the next heartbeat: complete, or with the changes only."""
        now = self._report()
        known, self._sent = self._acknowledged, now
        request = ConsumerGroupHeartbeatRequest(
            group_id=settings.group_id,
            member_id=self.member_id if self._is_named or version >= OWN_ID_VERSION else "",
            member_epoch=self.generation,
            instance_id=settings.instance_id,
        )
        if known is None:
            request.rack_id = settings.rack_id
            request.rebalance_timeout_ms = settings.rebalance_ms_max
            request.server_assignor = settings.remote_assignor
        if known is None or known.subscribed != now.subscribed:
            request.subscribed_topic_names = sorted(now.subscribed.topics)
            if version >= REGEX_VERSION:
                # Empty withdraws an expression that was sent before.
                request.subscribed_topic_regex = now.subscribed.regex or (
                    None if known is None else ""
                )
        if known is None or known.owned != now.owned:
            request.topic_partitions = topic_partitions(now.owned)
        return request

    def answered(self, response: ConsumerGroupHeartbeatResponse) -> None:
        """Handle the response to the last heartbeat."""
        self._acknowledged = self._sent
        self.generation = response.member_epoch
        if response.member_id:
            self.member_id, self._is_named = response.member_id, True
        if response.assignment is not None:
            self.target = frozenset(
                (topic.topic_id, number)
                for topic in response.assignment.topic_partitions
                for number in topic.partitions
            )

    def resend_all(self) -> None:
        """Send everything again: it is unknown what the broker received."""
        self._acknowledged = None

    def took_over(self, change: Change) -> None:
        """Record that the listener was notified of a change."""
        for name in change.revoked:
            del self.owned[name]
        self.owned.update(change.added)

    def gave_back_all(self) -> None:
        """Record that nothing is owned and the listener was notified."""
        self.owned = {}
        self.is_lost = False

    def lose(self, reason: str, *, forget: bool) -> None:
        """Record that the group went on without this member; its id is its own and stays."""
        self.generation = -1
        self.target = None
        self.is_lost = True
        self.reason = reason

    def leave(self) -> None:
        """Leave voluntarily."""
        self.generation = -1
        self.target = None
        self.reason = "it has left"

    def apply(self, action: ErrorAction, code: ErrorCode, request: str) -> None:
        """Apply the action that an error response calls for."""
        if action in (ErrorAction.RESET, ErrorAction.FORGET):
            self.lose(f"{request} failed with {code.name} ({code.meaning})", forget=False)


def leave_epoch(settings: GroupSettings) -> int:
    """Return the epoch with which a member leaves: static ones stay members for a while."""
    return LEAVING if settings.instance_id is None else LEAVING_FOR_A_WHILE


def topic_partitions(partitions: Iterable[tuple[Uuid, int]]) -> list[TopicPartitions]:
    """Return partitions in wire format."""
    topics: dict[Uuid, list[int]] = {}
    for topic_id, number in sorted(partitions):
        topics.setdefault(topic_id, []).append(number)
    return [TopicPartitions(topic_id=each, partitions=numbers) for each, numbers in topics.items()]

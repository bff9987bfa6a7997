"""A classic consumer group as data: members, generation, protocol, and its record.

Decisions about requests are in `classic`; this class maintains the invariants:

- the leader is a member, and there is one whenever there are members;
- `supported` counts, for every protocol, the members that support it;
- a static instance id names exactly one member;
- requests wait only for members, and at most one join and one sync for each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple

from barnabas.groups.offsets import ExpiryRule
from barnabas.groups.records import (
    ClassicGroupKey,
    ClassicGroupValue,
    ClassicMemberValue,
    state_record,
)
from barnabas.groups.round import Round
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RemoteProtocolError
from barnabas.model.outcome import StateRecord
from barnabas.wire.messages.consumer_protocol import ConsumerProtocolSubscription
from barnabas.wire.versioned import decode_versioned

CONSUMER: Final = "consumer"
"""The protocol type of consumers; other types (Connect, Schema Registry) are opaque to us."""


class State(Enum):
    """The state of a classic group; the values are the names that clients see."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


NEXT: Final[Mapping[State, frozenset[State]]] = {
    State.EMPTY: frozenset({State.PREPARING, State.DEAD}),
    State.PREPARING: frozenset({State.COMPLETING, State.EMPTY, State.DEAD}),
    State.COMPLETING: frozenset({State.STABLE, State.PREPARING, State.DEAD}),
    State.STABLE: frozenset({State.PREPARING, State.DEAD}),
    State.DEAD: frozenset(),
}
"""The legal successors of each state."""


class Waiting(NamedTuple):
    """A request that is answered later, in its own version."""

    token: Hashable
    version: int


Protocols = list[tuple[str, bytes]]
"""What a member proposes: names of protocols with metadata, the preferred one first."""


@dataclass(slots=True)
class ClassicMember:
    """One member of a classic group."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: Protocols
    assignment: bytes = b""
    is_new: bool = False
    """Has not completed a join yet, so it cannot send heartbeats."""
    seen_ms: int | None = field(default=None, compare=False)
    """When its session was last extended here."""

    def metadata(self, protocol: str | None) -> bytes:
        """Return the member's metadata for a protocol; empty if it does not support it."""
        return next((data for name, data in self.protocols if name == protocol), b"")

    def vote(self, candidates: set[str]) -> str:
        """Return the member's preferred protocol among those that all members support."""
        return next(name for name, _ in self.protocols if name in candidates)


@dataclass(slots=True)
class ClassicGroup:
    """One classic group."""

    group_id: str
    state_ms: int
    """When the group entered its state; -1 if that was not recorded."""
    state: State = State.EMPTY
    generation: int = 0
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str | None = None
    members: dict[str, ClassicMember] = field(default_factory=dict)
    static: dict[str, str] = field(default_factory=dict)
    """Instance id to member id."""
    pending: set[str] = field(default_factory=set)
    """Member ids that were assigned and have not been used in a join yet."""
    joining: dict[str, Waiting] = field(default_factory=dict)
    syncing: dict[str, Waiting] = field(default_factory=dict)
    unsynced: dict[str, None] = field(default_factory=dict)
    """Members of this generation that have not asked for their assignment yet."""
    supported: Counter[str] = field(default_factory=Counter)
    initial_ms_left: int | None = None
    """How much longer the first join may be held open for more members; None if it is not."""
    new_member_added: bool = False
    is_join_timed: bool = False
    """Whether the current join ends at a deadline."""
    round: Round | None = field(default=None, compare=False)
    """The rebalance in progress, for the diary."""
    rebalance_began_ms: int = field(default=-1, compare=False)
    """When the current rebalance began; -1 without one, and in one that another broker began."""

    @property
    def is_consumer_group(self) -> bool:
        return self.protocol_type == CONSUMER

    @property
    def is_empty(self) -> bool:
        return self.state is State.EMPTY

    @property
    def is_idle(self) -> bool:
        """Return whether the group has neither members nor pending ones."""
        return self.state is State.EMPTY and not self.pending

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def type_name(self) -> str:
        return "classic"

    @property
    def rebalance_timeout_ms(self) -> int:
        """Return the largest rebalance timeout of any member."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    @property
    def all_joined(self) -> bool:
        return len(self.joining) == len(self.members) and not self.pending

    def become(self, state: State, now_ms: int) -> None:
        """Enter a legal successor of the current state."""
        assert state in NEXT[self.state], f"{self.state} -> {state}"
        self.state = state
        self.state_ms = now_ms

    def supports(self, protocol_type: str, names: list[str]) -> bool:
        """Return whether a member with these protocols can join the group."""
        if self.state is State.EMPTY:
            return bool(protocol_type and names)
        return protocol_type == self.protocol_type and any(
            self.supported[name] == len(self.members) for name in names
        )

    def add(self, member: ClassicMember, protocol_type: str) -> None:
        """Add a member; the first one leads and sets the protocol type."""
        if not self.members:
            self.protocol_type = protocol_type
        if self.leader is None:
            self.leader = member.member_id
        if member.instance_id is not None:
            self.static[member.instance_id] = member.member_id
        self.members[member.member_id] = member
        self.supported.update(dict(member.protocols).keys())
        self.pending.discard(member.member_id)

    def remove(self, member_id: str) -> None:
        """Remove a member, or an id that never joined; if it led, the next member leads."""
        member = self.members.pop(member_id, None)
        if member is not None:
            self.supported.subtract(dict(member.protocols).keys())
            if member.instance_id is not None:
                self.static.pop(member.instance_id, None)
        self.joining.pop(member_id, None)
        self.syncing.pop(member_id, None)
        self.unsynced.pop(member_id, None)
        self.pending.discard(member_id)
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)

    def update(self, member: ClassicMember, protocols: Protocols) -> None:
        """Update the protocols of a member."""
        self.supported.subtract(dict(member.protocols).keys())
        member.protocols = protocols
        self.supported.update(dict(protocols).keys())

    def rename(self, member: ClassicMember, member_id: str) -> None:
        """Give a returning static member a new id; nothing waits under the old one."""
        assert member.instance_id is not None
        old = member.member_id
        del self.members[old]
        was_unsynced = old in self.unsynced
        self.unsynced.pop(old, None)
        member.member_id = member_id
        self.members[member_id] = member
        self.static[member.instance_id] = member_id
        if was_unsynced:
            self.unsynced[member_id] = None
        if self.leader == old:
            self.leader = member_id

    def member_error(self, member_id: str, instance_id: str | None) -> ErrorCode:
        """Return the error of a request that names a member but cannot be its own."""
        if instance_id is not None:
            current = self.static.get(instance_id)
            if current is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if current != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return ErrorCode.NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    def commit_error(
        self,
        member_id: str,
        instance_id: str | None,
        generation: int,
        version: int,
        *,
        transactional: bool,
    ) -> ErrorCode:
        """Return why offsets may not be committed: members may, and anyone if there are none."""
        if generation < 0 and self.state is State.EMPTY:
            return ErrorCode.NONE
        if generation >= 0 or member_id != "" or instance_id is not None:
            error = self.member_error(member_id, instance_id)
            if error is not ErrorCode.NONE:
                return error
            if generation != self.generation:
                return ErrorCode.ILLEGAL_GENERATION
        elif not transactional and self.state is not State.EMPTY:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if self.state is State.COMPLETING and not transactional:
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def fetch_error(self, member_id: str | None, member_epoch: int) -> ErrorCode:
        """Anyone may read the offsets of a classic group."""
        return ErrorCode.NONE

    def expiry(self) -> ExpiryRule | None:
        """Return how offsets expire; None while they must not."""
        if self.protocol_type is None:
            return ExpiryRule(None, frozenset())
        if self.state is State.EMPTY:
            return ExpiryRule(None if self.state_ms == -1 else self.state_ms, frozenset())
        if self.state is State.STABLE:
            topics = self.subscribed_topics()
            return None if topics is None else ExpiryRule(None, topics)
        return None

    def tombstones(self) -> list[StateRecord]:
        """Return the records that delete the group; none if it was never stored."""
        if self.generation == 0:
            return []
        return [state_record(ClassicGroupKey(group=self.group_id), None)]

    def choose_protocol(self) -> str:
        """Return the protocol with most votes among those that all members support."""
        size = len(self.members)
        candidates = {name for name, count in self.supported.items() if count == size}
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return votes.most_common(1)[0][0]

    def elect_joined_leader(self) -> bool:
        """Ensure that the leader is a member that rejoined; return whether there is one."""
        if self.leader is not None and self.leader not in self.joining:
            self.leader = next((name for name in self.members if name in self.joining), self.leader)
        return self.leader in self.joining

    def subscribed_topics(self) -> set[str] | None:
        """Return the topics that members read; None if that is unknown."""
        if not self.is_consumer_group:
            return None
        topics: set[str] = set()
        for member in self.members.values():
            try:
                subscription, _ = decode_versioned(
                    ConsumerProtocolSubscription, member.metadata(self.protocol)
                )
            except RemoteProtocolError:
                return None  # a custom protocol with the protocol type of consumers
            topics.update(subscription.topics)
        return topics

    def record(self) -> StateRecord:
        """Encode the group with its members and their assignments."""
        members = [
            ClassicMemberValue(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.metadata(self.protocol),
                assignment=member.assignment,
            )
            for member in self.members.values()
        ]
        value = ClassicGroupValue(
            protocol_type=self.protocol_type or "",
            generation=self.generation,
            protocol=self.protocol,
            leader=self.leader,
            current_state_timestamp=self.state_ms,
            members=members,
        )
        return state_record(ClassicGroupKey(group=self.group_id), value)

    @classmethod
    def load(cls, group_id: str, value: ClassicGroupValue) -> ClassicGroup:
        """Rebuild a group from its record: stable if it has members, otherwise empty."""
        group = cls(
            group_id,
            value.current_state_timestamp,
            state=State.STABLE if value.members else State.EMPTY,
            generation=value.generation,
            protocol_type=value.protocol_type or None,
            protocol=value.protocol,
        )
        for stored in value.members:
            member = ClassicMember(
                stored.member_id,
                stored.group_instance_id,
                stored.client_id,
                stored.client_host,
                # The first version has one timeout for both.
                stored.session_timeout
                if stored.rebalance_timeout == -1
                else stored.rebalance_timeout,
                stored.session_timeout,
                [(value.protocol or "", stored.subscription)],
                stored.assignment,
            )
            group.add(member, value.protocol_type)
        group.leader = value.leader
        return group

"""A consumer group (KIP-848) as data: members, epochs, target, and the records of all that.

Three epochs track the group's progress. The group epoch grows with every change of members,
subscriptions or topics; the target epoch is the group epoch for which it was computed; each member
epoch follows the target epoch as the member revokes and takes over partitions.

Invariant: no partition is held (assigned, or not yet revoked) by two members; `holders` is the
index of that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from barnabas.groups.offsets import ExpiryRule
from barnabas.groups.reconciliation import (
    NONE,
    NOTHING,
    Current,
    IdPartition,
    MemberState,
    Partitions,
)
from barnabas.groups.records import (
    ClassicMemberMetadata,
    ClassicProtocolValue,
    CurrentMemberKey,
    CurrentMemberValue,
    GroupEpochKey,
    GroupEpochValue,
    MemberKey,
    MemberValue,
    SubscribedTopic,
    SubscribedTopicsKey,
    SubscribedTopicsValue,
    TargetEpochKey,
    TargetEpochValue,
    TargetMemberKey,
    TargetMemberValue,
    TopicPartitions,
    state_record,
)
from barnabas.groups.round import Round
from barnabas.groups.topics import Topics
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import Uuid
from barnabas.model.outcome import StateRecord
from barnabas.wire.schema import Message

LEFT_FOR_A_WHILE = -2
"""The epoch of a static member that left temporarily."""


class TopicInfo(NamedTuple):
    """What an assignor must know about a topic."""

    topic_id: Uuid
    partition_count: int


class ClassicSide(NamedTuple):
    """The state of a member that uses the classic protocol in a consumer group."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


@dataclass(frozen=True, slots=True)
class ConsumerMember:
    """One member: its subscription, and its current assignment."""

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: tuple[str, ...] = ()
    regex: str | None = None
    rebalance_timeout_ms: int = -1
    assignor: str | None = None
    current: Current = NOTHING
    classic: ClassicSide | None = None
    """Set while the member uses the classic protocol."""

    @property
    def holds(self) -> Partitions:
        return self.current.assigned | self.current.revoking


class Snapshot(NamedTuple):
    """A snapshot of a group's durable state."""

    epoch: int
    target_epoch: int
    members: dict[str, ConsumerMember]
    target: dict[str, Partitions]
    topics: dict[str, TopicInfo]


@dataclass(slots=True)
class ConsumerGroup:
    """One consumer group."""

    group_id: str
    epoch: int = 0
    target_epoch: int = 0
    members: dict[str, ConsumerMember] = field(default_factory=dict)
    target: dict[str, Partitions] = field(default_factory=dict)
    topics: dict[str, TopicInfo] = field(default_factory=dict)
    """The subscribed topics as of the last change of the group epoch."""
    static: dict[str, str] = field(default_factory=dict)
    """Instance id to member id."""
    holders: dict[IdPartition, str] = field(default_factory=dict)
    refresh_ms: int = 0
    """When to compare `topics` with the cluster again."""
    changes: int = 0
    """Counts all changes ever made, including undone ones."""
    undone: range = range(0)
    """The numbers of the changes that were undone last."""
    sees: dict[str, Callable[[str], bool]] = field(default_factory=dict, compare=False, repr=False)
    """Which topics an expression may match: those that its last sender may describe.

    Not durable: after a change of the coordinator, the next heartbeat brings it again.
    """
    called: set[str] = field(default_factory=set)
    """Classic members that were told to rejoin and have not yet."""
    round: Round | None = field(default=None, compare=False)
    """The rebalance in progress, for the diary."""
    seen_ms: dict[str, int] = field(default_factory=dict, compare=False, repr=False)
    """When each member sent its last heartbeat here."""
    watched_epoch: int = field(default=0, compare=False)
    rebalance_began_ms: int = field(default=-1, compare=False)
    """The epoch that was seen last, and since when members are moving to it (`rebalance_watch`)."""

    # -- what every group answers

    @property
    def is_empty(self) -> bool:
        return not self.members

    @property
    def is_idle(self) -> bool:
        return not self.members

    @property
    def protocol_type(self) -> str:
        return "consumer"

    @property
    def type_name(self) -> str:
        return "consumer"

    @property
    def state_name(self) -> str:
        if not self.members:
            return "Empty"
        if self.epoch > self.target_epoch:
            return "Assigning"
        if all(m.current.is_reconciled_to(self.target_epoch) for m in self.members.values()):
            return "Stable"
        return "Reconciling"

    def subscribed_topics(self) -> set[str]:
        """Return the topics that members read."""
        return set(self.topics)

    def expiry(self) -> ExpiryRule:
        """Return how offsets expire: each on its own, unless a member reads the topic."""
        return ExpiryRule(None, self.topics)

    def commit_error(
        self,
        member_id: str,
        instance_id: str | None,
        generation: int,
        version: int,
        *,
        transactional: bool,
    ) -> ErrorCode:
        """Return why offsets may not be committed; the generation is the member epoch here."""
        if generation < 0 and (not self.members or transactional):
            return ErrorCode.NONE
        member = self.members.get(member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        is_classic = transactional or member.classic is not None
        if version < 9 and not is_classic:
            return ErrorCode.UNSUPPORTED_VERSION  # its client would not understand the new errors
        if generation != member.current.epoch:
            return ErrorCode.ILLEGAL_GENERATION if is_classic else ErrorCode.STALE_MEMBER_EPOCH
        return ErrorCode.NONE

    def fetch_error(self, member_id: str | None, member_epoch: int) -> ErrorCode:
        """Return why offsets may not be read: by a member with a stale epoch."""
        if member_id is None and member_epoch < 0:
            return ErrorCode.NONE
        member = self.members.get(member_id or "")
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if member_epoch != member.current.epoch:
            return ErrorCode.STALE_MEMBER_EPOCH
        return ErrorCode.NONE

    # -- members

    def put(self, member: ConsumerMember) -> None:
        """Add a member, or update its state."""
        self._release(member.member_id)
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.static[member.instance_id] = member.member_id
        for partition in member.holds:
            self.holders[partition] = member.member_id

    def drop(self, member_id: str) -> None:
        """Remove a member, with its target."""
        self._release(member_id)
        member = self.members.pop(member_id)
        self.target.pop(member_id, None)
        self.called.discard(member_id)
        self.seen_ms.pop(member_id, None)
        if member.instance_id is not None and self.static.get(member.instance_id) == member_id:
            del self.static[member.instance_id]

    def _release(self, member_id: str) -> None:
        member = self.members.get(member_id)
        for partition in member.holds if member is not None else ():
            if self.holders.get(partition) == member_id:
                del self.holders[partition]

    @property
    def is_all_classic(self) -> bool:
        """Return whether there are members and all of them use the classic protocol."""
        members = self.members.values()
        return bool(members) and all(member.classic is not None for member in members)

    def supports_classic(self, protocol_type: str, names: Iterable[str]) -> bool:
        """Return whether a classic member shares a protocol with all other classic members."""
        known = [
            {name for name, _ in member.classic.protocols}
            for member in self.members.values()
            if member.classic is not None
        ]
        return protocol_type == self.protocol_type and any(
            all(name in each for each in known) for name in names
        )

    def preferred_assignor(self, default: str) -> str:
        """Return the assignor that most members request."""
        votes = Counter(m.assignor for m in self.members.values() if m.assignor is not None)
        return votes.most_common(1)[0][0] if votes else default

    def named(self, partitions: Iterable[IdPartition]) -> list[tuple[str, IdPartition]]:
        """Map topic ids to names; partitions of deleted topics are left out."""
        names = {info.topic_id: name for name, info in self.topics.items()}
        return [(names[p.topic_id], p) for p in partitions if p.topic_id in names]

    # -- undoing changes

    def snapshot(self) -> Snapshot:
        """Take a snapshot of the durable state before a change."""
        self.changes += 1
        return Snapshot(
            self.epoch,
            self.target_epoch,
            dict(self.members),
            dict(self.target),
            dict(self.topics),
        )

    def restore(self, number: int, before: Snapshot) -> None:
        """Undo a change and all later ones, unless that has already happened."""
        if number in self.undone:
            return
        self.undone = range(number, self.changes + 1)
        self.round = None
        self.epoch, self.target_epoch = before.epoch, before.target_epoch
        self.members.clear()
        self.static.clear()
        self.holders.clear()
        for member in before.members.values():
            self.put(member)
        self.target = dict(before.target)
        self.topics = dict(before.topics)

    # -- records

    def epoch_record(self) -> StateRecord:
        return state_record(GroupEpochKey(group=self.group_id), GroupEpochValue(epoch=self.epoch))

    def topics_record(self) -> StateRecord:
        topics = [
            SubscribedTopic(
                topic_id=info.topic_id, topic_name=name, num_partitions=info.partition_count
            )
            for name, info in self.topics.items()
        ]
        return state_record(
            SubscribedTopicsKey(group=self.group_id), SubscribedTopicsValue(topics=topics)
        )

    def member_record(self, member: ConsumerMember) -> StateRecord:
        value = MemberValue(
            instance_id=member.instance_id,
            rack_id=member.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=list(member.topics),
            subscribed_topic_regex=member.regex,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            server_assignor=member.assignor,
        )
        if member.classic is not None:
            value.classic_member_metadata = ClassicMemberMetadata(
                session_timeout_ms=member.classic.session_timeout_ms,
                supported_protocols=[
                    ClassicProtocolValue(name=name, metadata=metadata)
                    for name, metadata in member.classic.protocols
                ],
            )
        return state_record(MemberKey(group=self.group_id, member=member.member_id), value)

    def target_epoch_record(self) -> StateRecord:
        value = TargetEpochValue(assignment_epoch=self.target_epoch)
        return state_record(TargetEpochKey(group=self.group_id), value)

    def target_record(self, member_id: str) -> StateRecord:
        value = TargetMemberValue(topic_partitions=grouped(self.target[member_id]))
        return state_record(TargetMemberKey(group=self.group_id, member=member_id), value)

    def current_record(self, member: ConsumerMember) -> StateRecord:
        current = member.current
        value = CurrentMemberValue(
            member_epoch=current.epoch,
            previous_member_epoch=current.previous_epoch,
            state=current.state,
            assigned_partitions=grouped(current.assigned),
            partitions_pending_revocation=grouped(current.revoking),
        )
        return state_record(CurrentMemberKey(group=self.group_id, member=member.member_id), value)

    def member_tombstones(self, member_id: str) -> list[StateRecord]:
        """Return the tombstones of a member."""
        group = self.group_id
        return [
            state_record(CurrentMemberKey(group=group, member=member_id), None),
            state_record(TargetMemberKey(group=group, member=member_id), None),
            state_record(MemberKey(group=group, member=member_id), None),
        ]

    def tombstones(self) -> list[StateRecord]:
        """Return the tombstones of the group; none if it was never stored."""
        if self.epoch == 0:
            return []
        group = self.group_id
        records = [state_record(TargetEpochKey(group=group), None)]
        for member_id in self.members:
            records += self.member_tombstones(member_id)
        return [
            *records,
            state_record(SubscribedTopicsKey(group=group), None),
            state_record(GroupEpochKey(group=group), None),
        ]

    def replay(self, key: Message, value: Message | None) -> bool:
        """Replay a record of the log; return whether the group still exists after it."""
        match key, value:
            case GroupEpochKey(), GroupEpochValue():
                self.epoch = value.epoch
            case GroupEpochKey(), None:
                return False
            case SubscribedTopicsKey(), SubscribedTopicsValue():
                self.topics = {
                    topic.topic_name: TopicInfo(topic.topic_id, topic.num_partitions)
                    for topic in value.topics
                }
            case SubscribedTopicsKey(), None:
                self.topics = {}
            case TargetEpochKey(), TargetEpochValue():
                self.target_epoch = value.assignment_epoch
            case TargetEpochKey(), None:
                self.target_epoch = 0
            case TargetMemberKey(), TargetMemberValue():
                self.target[key.member] = flat(value.topic_partitions)
            case TargetMemberKey(), None:
                self.target.pop(key.member, None)
            case MemberKey(), MemberValue():
                self._replay_member(key.member, value)
            case MemberKey(), None:
                if key.member in self.members:
                    self.drop(key.member)
            case CurrentMemberKey(), _:
                self._replay_current(key.member, value)
            case _:
                raise AssertionError(f"not a record of a consumer group: {key!r}")
        return True

    def _replay_member(self, member_id: str, value: MemberValue) -> None:
        known = self.members.get(member_id)
        classic = None
        if value.classic_member_metadata is not None:
            stored = value.classic_member_metadata
            classic = ClassicSide(
                stored.session_timeout_ms,
                tuple((each.name, each.metadata) for each in stored.supported_protocols),
            )
        member = ConsumerMember(
            member_id,
            value.instance_id,
            value.rack_id,
            value.client_id,
            value.client_host,
            tuple(value.subscribed_topic_names),
            value.subscribed_topic_regex,
            value.rebalance_timeout_ms,
            value.server_assignor,
            NOTHING if known is None else known.current,
            classic,
        )
        self.put(member)

    def _replay_current(self, member_id: str, value: Message | None) -> None:
        if value is None and member_id not in self.members:
            return
        current = NOTHING
        if isinstance(value, CurrentMemberValue):
            current = Current(
                value.member_epoch,
                value.previous_member_epoch,
                MemberState(value.state),
                flat(value.assigned_partitions),
                flat(value.partitions_pending_revocation),
            )
        # Compaction may have left a member's state before its subscription.
        known = self.members.get(member_id, ConsumerMember(member_id))
        self.put(replace(known, current=current))


def grouped(partitions: Iterable[IdPartition]) -> list[TopicPartitions]:
    """Group partitions by topic, sorted."""
    topics: dict[Uuid, list[int]] = {}
    for topic_id, number in sorted(partitions):
        topics.setdefault(topic_id, []).append(number)
    return [TopicPartitions(topic_id=name, partitions=numbers) for name, numbers in topics.items()]


def flat(topics: Iterable[TopicPartitions]) -> Partitions:
    """Undo `grouped`."""
    found = frozenset(IdPartition(topic.topic_id, n) for topic in topics for n in topic.partitions)
    return found or NONE


def resolve(
    members: Iterable[ConsumerMember],
    world: Topics,
    matches: Mapping[str, frozenset[str]],
) -> dict[str, TopicInfo]:
    """Return the metadata of the subscribed topics, sorted by name."""
    names: set[str] = set()
    for member in members:
        names.update(member.topics)
        if member.regex is not None:
            names.update(matches[member.regex])
    return {name: TopicInfo(*world[name]) for name in sorted(names) if name in world}

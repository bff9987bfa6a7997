"""The committed offsets of one group, and those that wait for the end of a transaction.

Invariant: of two commits to one partition the one later in the log wins, also when the earlier one
becomes visible later, because it waited for its transaction's marker. `order` stands for the
position in the log: it grows with every commit that is made or replayed.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from barnabas.groups.records import OffsetKey, OffsetValue, state_record
from barnabas.model.ids import TopicPartition
from barnabas.model.outcome import StateRecord

_HEAD: Final = struct.Struct(">hqih")
_TIME: Final = struct.Struct(">q")
_METADATA_BYTES_MAX: Final = 0x7FFF


@dataclass(slots=True)
class Commit:
    """One committed offset."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_ms: int
    expire_ms: int = -1
    """When it expires, if the commit has its own retention."""
    order: int = field(default=0, compare=False)
    key: bytes | None = field(default=None, compare=False, repr=False)
    """The key of its record, kept for the next commit of the same group to the same partition."""
    undone: bool = field(default=False, compare=False)
    before: Commit | None = field(default=None, compare=False, repr=False)
    """The offset before this commit; kept only if the commit was undone."""

    def record(self, group_id: str, partition: TopicPartition) -> StateRecord:
        """Encode this commit."""
        metadata = self.metadata.encode()
        if self.key is None or self.expire_ms != -1 or len(metadata) > _METADATA_BYTES_MAX:
            record = state_record(
                _key(group_id, partition),
                OffsetValue(
                    offset=self.offset,
                    leader_epoch=self.leader_epoch,
                    metadata=self.metadata,
                    commit_timestamp=self.commit_ms,
                    expire_timestamp=self.expire_ms,
                ),
            )
            self.key = record.key
            return record
        # The same bytes at a tenth of the cost: commits are the most frequent records.
        head = _HEAD.pack(3, self.offset, self.leader_epoch, len(metadata))
        return StateRecord(self.key, head + metadata + _TIME.pack(self.commit_ms))


def tombstone(group_id: str, partition: TopicPartition) -> StateRecord:
    """Return the tombstone of a committed offset."""
    return state_record(_key(group_id, partition), None)


def _key(group_id: str, partition: TopicPartition) -> OffsetKey:
    return OffsetKey(group=group_id, topic=partition.topic, partition=partition.partition)


class ExpiryRule(NamedTuple):
    """How the offsets of a group expire."""

    since_ms: int | None
    """From when all of them age; None if each ages from its commit."""
    subscribed: Collection[str]
    """Topics in use, whose offsets do not expire."""


class GroupOffsets:
    """The offsets of one group."""

    def __init__(self) -> None:
        self.committed: dict[TopicPartition, Commit] = {}
        self.pending: dict[int, dict[TopicPartition, Commit]] = {}
        """By producer id: commits whose transaction is still open."""

    def __bool__(self) -> bool:
        return bool(self.committed or self.pending)

    def commit(
        self, partition: TopicPartition, commit: Commit, producer_id: int | None = None
    ) -> Commit | None:
        """Store a commit, transactional if a producer is given; return the previous one."""
        table = self.committed
        if producer_id is not None:
            table = self.pending.setdefault(producer_id, {})
        before = table.get(partition)
        table[partition] = commit
        return before

    def take_back(
        self,
        partition: TopicPartition,
        commit: Commit,
        before: Commit | None,
        producer_id: int | None = None,
    ) -> None:
        """Undo a commit; later ones may have failed too, in any order."""
        commit.undone = True
        commit.before = before
        table = self.committed
        if producer_id is not None:
            table = self.pending.get(producer_id, {})
        standing = table.get(partition)
        while standing is not None and standing.undone:
            standing = standing.before
        if standing is not None:
            table[partition] = standing
            return
        table.pop(partition, None)
        if producer_id is not None and not table:
            self.pending.pop(producer_id, None)

    def end_transaction(self, producer_id: int, committed: bool) -> None:
        """Make a producer's pending commits visible, or discard them."""
        pending = self.pending.pop(producer_id, {})
        if not committed:
            return
        for partition, commit in pending.items():
            present = self.committed.get(partition)
            if present is None or present.order < commit.order:
                self.committed[partition] = commit

    def is_unstable(self, partition: TopicPartition) -> bool:
        """Return whether an open transaction has a pending commit for a partition."""
        return any(partition in table for table in self.pending.values())

    def expired(
        self,
        now_ms: int,
        retention_ms: int,
        rule: ExpiryRule,
    ) -> list[TopicPartition]:
        """Return the partitions whose offsets have expired."""
        expired = []
        for partition, commit in self.committed.items():
            if partition.topic in rule.subscribed or self.is_unstable(partition):
                continue
            if commit.expire_ms != -1:
                is_due = now_ms >= commit.expire_ms
            else:
                base_ms = commit.commit_ms if rule.since_ms is None else rule.since_ms
                is_due = now_ms - base_ms >= retention_ms
            if is_due:
                expired.append(partition)
        return expired

    def remove(self, partitions: Collection[TopicPartition]) -> Callable[[], None]:
        """Delete offsets, also pending ones; return how to undo that."""
        removed: list[tuple[dict[TopicPartition, Commit], TopicPartition, Commit]] = []
        for table in (self.committed, *self.pending.values()):
            for partition in partitions:
                commit = table.pop(partition, None)
                if commit is not None:
                    removed.append((table, partition, commit))
        emptied = {producer: table for producer, table in self.pending.items() if not table}
        for producer in emptied:
            del self.pending[producer]

        def undo() -> None:
            for producer, table in emptied.items():
                self.pending.setdefault(producer, table)
            for table, partition, commit in removed:
                table.setdefault(partition, commit)

        return undo

    def partitions(self, topics: Collection[str] | None = None) -> list[TopicPartition]:
        """Return the partitions with an offset, committed or pending, of some topics or all."""
        found = dict.fromkeys(self.committed)
        for table in self.pending.values():
            found.update(dict.fromkeys(table))
        return [partition for partition in found if topics is None or partition.topic in topics]

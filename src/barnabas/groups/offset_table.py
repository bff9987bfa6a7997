"""The offsets of all groups of a coordinator, and the requests that write, read and expire them.

Whether a request may access a group's offsets is the group's decision, made before; this table only
handles the offsets themselves. A group has an entry only while it has offsets.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final

from barnabas.groups.fetching import no_offset
from barnabas.groups.offsets import Commit, ExpiryRule, GroupOffsets, tombstone
from barnabas.groups.options import GroupOptions
from barnabas.groups.records import OffsetValue
from barnabas.groups.topics import Topics
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import ZERO_UUID, TopicPartition
from barnabas.model.outcome import StateRecord
from barnabas.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from barnabas.wire.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from barnabas.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

TOPIC_IDS_SINCE: Final = 10
"""The version from which OffsetCommit and OffsetFetch use topic ids."""

LATEST_MS = 2**63 - 1
"""The largest timestamp of a record."""


def refused_commit(request: OffsetCommitRequest, code: ErrorCode) -> OffsetCommitResponse:
    """Build the response to a commit with one error for all its partitions."""
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetCommitResponsePartition(
                        partition_index=partition.partition_index, error_code=code
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def refused_txn_commit(request: TxnOffsetCommitRequest, code: ErrorCode) -> TxnOffsetCommitResponse:
    """Build the response to a transactional commit with one error for all its partitions."""
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    TxnOffsetCommitResponsePartition(
                        partition_index=partition.partition_index, error_code=code
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


class OffsetTable:
    """The offsets of all groups of one coordinator."""

    def __init__(self, options: GroupOptions, topics: Callable[[], Topics]) -> None:
        self._options = options
        # The option is in bytes; Kafka counts characters.
        self._metadata_size_max = options.offset_metadata_bytes_max
        self._topics = topics
        self._order = 0
        self.by_group: dict[str, GroupOffsets] = {}
        self._open: dict[int, dict[str, None]] = {}
        """By producer id: the groups for which its open transaction has committed, so that a marker
        need not look at all of them."""

    # -- committing

    def commits(
        self, request: OffsetCommitRequest, version: int, now_ms: int
    ) -> tuple[dict[TopicPartition, Commit], OffsetCommitResponse]:
        """Decode a commit, and build its response as if it were stored."""
        expire_ms = -1
        if request.retention_time_ms != -1:
            expire_ms = min(now_ms + request.retention_time_ms, LATEST_MS)
        by_id = version >= TOPIC_IDS_SINCE
        known = self._topics()
        accepted: dict[TopicPartition, Commit] = {}
        topics = []
        for topic in request.topics:
            name = known.name_of(topic.topic_id) if by_id else topic.name
            results = []
            for asked in topic.partitions:
                metadata = asked.committed_metadata or ""
                code = 0
                if name is None:
                    code = ErrorCode.UNKNOWN_TOPIC_ID
                elif len(metadata) > self._metadata_size_max:
                    code = ErrorCode.OFFSET_METADATA_TOO_LARGE
                else:
                    accepted[TopicPartition(name, asked.partition_index)] = Commit(
                        asked.committed_offset,
                        asked.committed_leader_epoch,
                        metadata,
                        now_ms if asked.commit_timestamp == -1 else asked.commit_timestamp,
                        expire_ms,
                    )
                results.append(
                    OffsetCommitResponsePartition(
                        partition_index=asked.partition_index, error_code=code
                    )
                )
            topics.append(
                OffsetCommitResponseTopic(
                    name=topic.name, topic_id=topic.topic_id, partitions=results
                )
            )
        return accepted, OffsetCommitResponse(topics=topics)

    def txn_commits(
        self, request: TxnOffsetCommitRequest, now_ms: int
    ) -> tuple[dict[TopicPartition, Commit], TxnOffsetCommitResponse]:
        """Decode a transactional commit, and build its response as if it were stored."""
        accepted: dict[TopicPartition, Commit] = {}
        response = refused_txn_commit(request, ErrorCode.NONE)
        for topic, answer in zip(request.topics, response.topics, strict=True):
            for asked, result in zip(topic.partitions, answer.partitions, strict=True):
                metadata = asked.committed_metadata or ""
                if len(metadata) > self._metadata_size_max:
                    result.error_code = ErrorCode.OFFSET_METADATA_TOO_LARGE
                else:
                    accepted[TopicPartition(topic.name, asked.partition_index)] = Commit(
                        asked.committed_offset, asked.committed_leader_epoch, metadata, now_ms
                    )
        return accepted, response

    def store(
        self,
        group_id: str,
        commits: Mapping[TopicPartition, Commit],
        producer_id: int | None = None,
    ) -> tuple[list[StateRecord], Callable[[], None]]:
        """Store commits; return their records and how to undo them."""
        offsets = self.by_group.get(group_id)
        if offsets is None:
            offsets = self.by_group[group_id] = GroupOffsets()
        if producer_id is not None:
            self._open.setdefault(producer_id, {})[group_id] = None
        known = offsets.committed
        records = []
        stored = []
        for partition, commit in commits.items():
            present = known.get(partition)
            if present is not None:
                commit.key = present.key
            records.append(commit.record(group_id, partition))
            self._order += 1
            commit.order = self._order
            stored.append((partition, commit, offsets.commit(partition, commit, producer_id)))

        def undo() -> None:
            for partition, commit, before in reversed(stored):
                offsets.take_back(partition, commit, before, producer_id)
            self._forget_if_empty(group_id)

        return records, undo

    def replay(
        self,
        group_id: str,
        partition: TopicPartition,
        value: OffsetValue | None,
        producer_id: int | None,
    ) -> None:
        """Replay a record of the log."""
        if value is None:
            self.remove(group_id, [partition])
            return
        self._order += 1
        commit = Commit(
            value.offset,
            value.leader_epoch,
            value.metadata,
            value.commit_timestamp,
            value.expire_timestamp,
            self._order,
        )
        offsets = self.by_group.get(group_id)
        if offsets is None:
            offsets = self.by_group[group_id] = GroupOffsets()
        if producer_id is not None:
            self._open.setdefault(producer_id, {})[group_id] = None
        offsets.commit(partition, commit, producer_id)

    def end_transaction(self, producer_id: int, committed: bool) -> None:
        """Apply a marker to the offsets that waited for it, in all groups."""
        for group_id in self._open.pop(producer_id, ()):
            offsets = self.by_group.get(group_id)
            if offsets is not None:  # its offsets may have been deleted meanwhile
                offsets.end_transaction(producer_id, committed)
                self._forget_if_empty(group_id)

    # -- reading

    def fetch(
        self, asked: OffsetFetchRequestGroup, version: int, require_stable: bool
    ) -> OffsetFetchResponseGroup:
        """Return the offsets of a group: those requested, or all."""
        offsets = self.by_group.get(asked.group_id, GroupOffsets())
        by_id = version >= TOPIC_IDS_SINCE
        if asked.topics is None:
            topics = self._all_topics(offsets, by_id)
        else:
            topics = asked.topics
        known = self._topics()
        answer = []
        for topic in topics:
            name = known.name_of(topic.topic_id) if by_id else topic.name
            answer.append(
                OffsetFetchResponseTopics(
                    name=topic.name,
                    topic_id=topic.topic_id,
                    partitions=[
                        _fetched(offsets, name, index, require_stable)
                        for index in topic.partition_indexes
                    ],
                )
            )
        return OffsetFetchResponseGroup(group_id=asked.group_id, topics=answer)

    def _all_topics(self, offsets: GroupOffsets, by_id: bool) -> list[OffsetFetchRequestTopics]:
        indexes: dict[str, list[int]] = {}
        for partition in offsets.committed:
            indexes.setdefault(partition.topic, []).append(partition.partition)
        known = self._topics()
        return [
            OffsetFetchRequestTopics(
                name=name,
                topic_id=known[name][0] if by_id else ZERO_UUID,
                partition_indexes=partitions,
            )
            for name, partitions in indexes.items()
            if not by_id or name in known
        ]

    def of(self, group_id: str) -> list[TopicPartition]:
        """Return the partitions for which a group has offsets, committed or pending."""
        offsets = self.by_group.get(group_id)
        return [] if offsets is None else offsets.partitions()

    # -- forgetting

    def remove(
        self, group_id: str, partitions: Collection[TopicPartition]
    ) -> tuple[list[StateRecord], Callable[[], None]]:
        """Delete offsets of a group; return the tombstones and how to undo that."""
        offsets = self.by_group.get(group_id)
        if offsets is None:
            return [], lambda: None
        records = [tombstone(group_id, partition) for partition in partitions]
        undo_remove = offsets.remove(partitions)
        self._forget_if_empty(group_id)

        def undo() -> None:
            if self.by_group.setdefault(group_id, offsets) is offsets:
                undo_remove()

        return records, undo

    def remove_topics(self, names: Collection[str]) -> list[StateRecord]:
        """Delete the offsets of deleted topics."""
        records: list[StateRecord] = []
        for group_id, offsets in list(self.by_group.items()):
            records += self.remove(group_id, offsets.partitions(names))[0]
        return records

    def expire(
        self, group_id: str, rule: ExpiryRule, now_ms: int
    ) -> tuple[list[StateRecord], Callable[[], None]]:
        """Delete the expired offsets of a group."""
        offsets = self.by_group.get(group_id)
        if offsets is None:
            return [], lambda: None
        expired = offsets.expired(now_ms, self._options.offsets_retention_ms, rule)
        return self.remove(group_id, expired)

    def _forget_if_empty(self, group_id: str) -> None:
        if group_id in self.by_group and not self.by_group[group_id]:
            del self.by_group[group_id]


def _fetched(
    offsets: GroupOffsets, name: str | None, index: int, require_stable: bool
) -> OffsetFetchResponsePartitions:
    if name is None:
        return no_offset(index, ErrorCode.UNKNOWN_TOPIC_ID)
    partition = TopicPartition(name, index)
    if require_stable and offsets.is_unstable(partition):
        return no_offset(index, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    commit = offsets.committed.get(partition)
    if commit is None:
        return no_offset(index)
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=commit.offset,
        committed_leader_epoch=commit.leader_epoch,
        metadata=commit.metadata,
    )

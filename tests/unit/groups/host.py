"""A host for coordinators in tests: a clock moved by hand, timers, a log, and answers by token.

Every answer is encoded in the version in which it was asked for, so a response that some version
cannot carry fails whatever test meets it.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable
from operator import attrgetter
from typing import Any

from barnabas.groups.call import Call
from barnabas.groups.coordinator import GroupCoordinator
from barnabas.groups.options import GroupOptions
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import Uuid
from barnabas.model.note import Note
from barnabas.model.outcome import Outcome, Reply, StateRecord
from barnabas.wire.codec import decode, encode
from barnabas.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.wire.messages.delete_groups import DeletableGroupResult, DeleteGroupsResponse
from barnabas.wire.messages.heartbeat import HeartbeatRequest
from barnabas.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from barnabas.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.wire.messages.offset_delete import OffsetDeleteRequest
from barnabas.wire.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from barnabas.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from barnabas.wire.messages.txn_offset_commit import TxnOffsetCommitRequest
from barnabas.wire.schema import Message

START_MS = 1_700_000_000_000

_HANDLERS: dict[type[Message], str] = {
    JoinGroupRequest: "handle_join",
    SyncGroupRequest: "handle_sync",
    HeartbeatRequest: "handle_heartbeat",
    LeaveGroupRequest: "handle_leave",
    OffsetCommitRequest: "offset_requests.handle_commit",
    TxnOffsetCommitRequest: "offset_requests.handle_txn_commit",
    OffsetDeleteRequest: "offset_requests.handle_delete",
    ConsumerGroupHeartbeatRequest: "handle_consumer_heartbeat",
}


class KnownTopics(dict[str, tuple[Uuid, int]]):
    """Topics that are there: id and number of partitions by name."""

    def name_of(self, topic_id: Uuid) -> str | None:
        return next((name for name, (known, _) in self.items() if known == topic_id), None)


class Host:
    """Does what a broker does with a coordinator, in virtual time."""

    def __init__(self, options: GroupOptions | None = None, topics: Any = None) -> None:
        self.options = options or GroupOptions()
        self.topics: dict[str, tuple[bytes, int]] = topics or {}
        self.now_ms = START_MS
        self.timers: dict[Hashable, int] = {}
        self.log: list[tuple[StateRecord, int | None] | tuple[int, bool]] = []
        self.answers: dict[Hashable, Any] = {}
        self.fail_with: ErrorCode | None = None
        self.notes: list[Note] = []
        self._versions: dict[Hashable, int] = {}
        self._tokens = itertools.count(1)
        self._ids = itertools.count(1)
        self.coordinator = self.new_coordinator()
        self.reader = self.new_coordinator()
        """Follows the log: knows at any time what a new coordinator would know."""

    def new_coordinator(self) -> GroupCoordinator:
        return GroupCoordinator(
            self.options,
            lambda: f"id{next(self._ids):04d}",
            lambda: KnownTopics(self.topics),
        )

    # -- requests

    def send(self, request: Message, version: int | None = None, client_id: str = "c") -> int:
        """Send a request; return its token, under which an answer is found now or later."""
        if version is None:
            # Commits by topic id have tests of their own.
            version = 9 if isinstance(request, OffsetCommitRequest) else type(request).VERSIONS.last
        token = next(self._tokens)
        self._versions[token] = version
        sent, _ = decode(type(request), encode(request, version), version)
        call = Call(token, version, self.now_ms, client_id, "/127.0.0.1")
        self.apply(attrgetter(_HANDLERS[type(request)])(self.coordinator)(sent, call))
        return token

    def ask(self, request: Message, version: int | None = None, client_id: str = "c") -> Any:
        """Send a request that is answered at once."""
        return self.answers[self.send(request, version, client_id)]

    def delete(self, group_id: str) -> int:
        token = next(self._tokens)
        self._versions[token] = 2
        self.apply(
            self.coordinator.administration.handle_delete(group_id, Call(token, 2, self.now_ms))
        )
        return int(self.answers[token].error_code)

    # -- what the coordinator wants done

    def apply(self, outcome: Outcome) -> None:
        for key, deadline_ms in outcome.timers:
            if deadline_ms is None:
                self.timers.pop(key, None)
            else:
                self.timers[key] = deadline_ms
        replies = outcome.replies
        if outcome.records and self.fail_with is not None:
            assert outcome.undo is not None, "records without a way back"
            replies = outcome.undo(self.fail_with)
        else:
            self.notes += outcome.notes
            producer_id = outcome.producer[0] if outcome.producer else None
            self.log += [(record, producer_id) for record in outcome.records]
            for record in outcome.records:
                self.reader.replaying.replay(record, producer_id)
        for reply in replies:
            self._receive(reply)

    def _receive(self, reply: Reply) -> None:
        assert reply.token not in self.answers, "answered twice"
        response = reply.response
        self.answers[reply.token] = response
        if isinstance(response, DeletableGroupResult):
            response = DeleteGroupsResponse(results=[response])
        version = self._versions[reply.token]
        encoded = encode(response, version)
        decoded, end = decode(type(response), encoded, version)
        assert end == len(encoded)
        assert encode(decoded, version) == encoded

    def marker(self, producer_id: int, committed: bool) -> None:
        self.log.append((producer_id, committed))
        self.reader.on_marker(producer_id, committed)
        self.coordinator.on_marker(producer_id, committed)

    def advance(self, duration_ms: int) -> None:
        """Move the clock, and call back for every timer that becomes due, in order."""
        end_ms = self.now_ms + duration_ms
        while self.timers:
            key = min(self.timers, key=lambda name: (self.timers[name], str(name)))
            if self.timers[key] > end_ms:
                break
            self.now_ms = max(self.now_ms, self.timers.pop(key))
            self.apply(self.coordinator.on_timer(key, self.now_ms))
        self.now_ms = end_ms

    # -- restarts

    def replayed(self) -> GroupCoordinator:
        """Return a fresh coordinator that has read the log."""
        fresh = self._read()
        fresh.loaded(self.now_ms)
        return fresh

    def compacted(self) -> GroupCoordinator:
        """Return a fresh coordinator that has read what compaction leaves, without tombstones."""
        last: dict[bytes, StateRecord] = {}
        for record, _ in self.log:
            assert isinstance(record, StateRecord), "compaction waits for the end of transactions"
            last.pop(record.key, None)
            last[record.key] = record
        fresh = self.new_coordinator()
        for record in last.values():
            if record.value is not None:
                fresh.replaying.replay(record)
        fresh.loaded(self.now_ms)
        return fresh

    def _read(self) -> GroupCoordinator:
        fresh = self.new_coordinator()
        for first, second in self.log:
            if isinstance(first, StateRecord):
                fresh.replaying.replay(first, second)
            else:
                fresh.on_marker(first, bool(second))
        return fresh

    def restart(self) -> None:
        """Move the coordinator: what waits is refused, the log is read, timers begin anew."""
        for reply in self.coordinator.unload():
            self._receive(reply)
        self.timers.clear()
        self.coordinator = self._read()
        self.apply(self.coordinator.loaded(self.now_ms))


def protocols(*names: str, metadata: bytes = b"m") -> list[JoinGroupRequestProtocol]:
    return [JoinGroupRequestProtocol(name=name, metadata=metadata) for name in names]


def join(member_id: str = "", instance_id: str | None = None, **values: Any) -> JoinGroupRequest:
    """A join of group "g" with usual values."""
    merged = {
        "group_id": "g",
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 60_000,
        "protocol_type": "consumer",
        "protocols": protocols("range"),
        **values,
    }
    return JoinGroupRequest(member_id=member_id, group_instance_id=instance_id, **merged)


def sync(member_id: str, generation: int, assignments: Any = (), **values: Any) -> SyncGroupRequest:
    return SyncGroupRequest(
        group_id="g",
        member_id=member_id,
        generation_id=generation,
        assignments=[
            SyncGroupRequestAssignment(member_id=name, assignment=data)
            for name, data in dict(assignments).items()
        ],
        **values,
    )


def heartbeat(member_id: str, generation: int, instance_id: str | None = None) -> HeartbeatRequest:
    return HeartbeatRequest(
        group_id="g", member_id=member_id, generation_id=generation, group_instance_id=instance_id
    )


def leave(*members: tuple[str, str | None]) -> LeaveGroupRequest:
    return LeaveGroupRequest(
        group_id="g",
        members=[MemberIdentity(member_id=name, group_instance_id=i) for name, i in members],
    )


def commit(
    offsets: dict[tuple[str, int], int],
    member_id: str = "",
    generation: int = -1,
    **values: Any,
) -> OffsetCommitRequest:
    topics: dict[str, list[OffsetCommitRequestPartition]] = {}
    metadata = values.pop("metadata", "")
    for (topic, index), offset in offsets.items():
        topics.setdefault(topic, []).append(
            OffsetCommitRequestPartition(
                partition_index=index, committed_offset=offset, committed_metadata=metadata
            )
        )
    values.setdefault("group_id", "g")
    return OffsetCommitRequest(
        member_id=member_id,
        generation_id_or_member_epoch=generation,
        topics=[
            OffsetCommitRequestTopic(name=topic, partitions=partitions)
            for topic, partitions in topics.items()
        ],
        **values,
    )


def commit_codes(response: Any) -> list[int]:
    return [int(p.error_code) for topic in response.topics for p in topic.partitions]


def fetch(
    coordinator: GroupCoordinator,
    topic: str = "t",
    partition: int = 0,
    *,
    group_id: str = "g",
    require_stable: bool = False,
    **values: Any,
) -> tuple[int, int]:
    """Return the committed offset and the error of one partition."""
    asked = OffsetFetchRequestGroup(
        group_id=group_id,
        topics=[OffsetFetchRequestTopics(name=topic, partition_indexes=[partition])],
        **values,
    )
    answer = coordinator.offset_requests.fetch(asked, 9, require_stable)
    if answer.error_code:
        return -1, int(answer.error_code)
    (told,) = answer.topics[0].partitions
    return told.committed_offset, int(told.error_code)


def stable(host: Host) -> str:
    """Let a static member join a classic group alone, and return its name."""
    token = host.send(join("", "i"), 9)
    host.advance(3_000)
    name: str = host.answers[token].member_id
    host.ask(sync(name, 1, {name: b"mine"}))
    return name

"""Requests to coordinators that several tests make, and a way to hold flushes back."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
from tests.unit.broker.serving import Serving, Wire

from barnabas.log.flush import Flush
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from barnabas.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

COORDINATED = {
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "group.min.session.timeout.ms": "50",
    "group.initial.rebalance.delay.ms": "0",
}
GROUP, TRANSACTION = 0, 1

Place = tuple[str, int]


def find(wire: Wire, key: str, kind: int = GROUP) -> None:
    """Have the internal topic made, and see that this broker coordinates."""
    answer = wire.ask(FindCoordinatorRequest(key=key, key_type=kind), 3)
    assert (answer.error_code, answer.node_id) == (0, 0), answer


def commit_request(group: str, offsets: Mapping[Place, int], **more: Any) -> OffsetCommitRequest:
    """Return a commit, by default of somebody who is no member."""
    return OffsetCommitRequest(
        group_id=group,
        topics=[
            OffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    OffsetCommitRequestPartition(partition_index=partition, committed_offset=offset)
                ],
            )
            for (topic, partition), offset in offsets.items()
        ],
        **more,
    )


def commit(
    wire: Wire, group: str, offsets: Mapping[Place, int], version: int = 7, **more: Any
) -> list[int]:
    """Commit, and return the error codes."""
    answer = wire.ask(commit_request(group, offsets, **more), version)
    return [each.error_code for topic in answer.topics for each in topic.partitions]


def fetch_offsets(wire: Wire, group: str, places: list[Place], version: int = 7) -> list[int]:
    """Return what is committed."""
    asked = [
        OffsetFetchRequestTopic(name=topic, partition_indexes=[partition])
        for topic, partition in places
    ]
    answer = wire.ask(OffsetFetchRequest(group_id=group, topics=asked), version)
    assert answer.error_code == 0, answer
    return [each.committed_offset for topic in answer.topics for each in topic.partitions]


def join_request(group: str, member_id: str = "", **more: Any) -> JoinGroupRequest:
    """Return the request of a consumer that reads topic `t`."""
    subscription = b"\x00\x00\x00\x00\x00\x01\x00\x01t\xff\xff\xff\xff"
    protocol = JoinGroupRequestProtocol(name="range", metadata=subscription)
    return JoinGroupRequest(
        **{
            "group_id": group,
            "session_timeout_ms": 60_000,
            "rebalance_timeout_ms": 60_000,
            "member_id": member_id,
            "protocol_type": "consumer",
            "protocols": [protocol],
            **more,
        }
    )


def join(wire: Wire, group: str, assignment: bytes = b"mine", **more: Any) -> tuple[str, int]:
    """Join a group as its only member; return the member id and the generation."""
    joined = wire.ask(join_request(group, **more), 3)
    assert joined.error_code == 0, joined
    assigned = SyncGroupRequestAssignment(member_id=joined.member_id, assignment=assignment)
    synced = wire.ask(
        SyncGroupRequest(
            group_id=group,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            assignments=[assigned],
        ),
        3,
    )
    assert (synced.error_code, bytes(synced.assignment)) == (0, assignment)
    return joined.member_id, joined.generation_id


@contextmanager
def hold_flushes(serving: Serving) -> Iterator[None]:
    """Let no flush of a log come to its end before this block does."""
    released = threading.Event()
    run = Flush.run

    def held(flush: Flush) -> None:
        assert released.wait(60), "the test never let go"
        run(flush)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Flush, "run", held)
        try:
            yield
        finally:
            released.set()
            serving.wait_inside(
                lambda: not any(each.flush_owed for each in serving.broker.partitions.values()),
                "everything is flushed",
            )

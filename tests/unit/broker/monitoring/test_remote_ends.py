"""Ends of partitions that others lead: asked of the right brokers, trusted for a while."""

from __future__ import annotations

import asyncio
from typing import Any

from barnabas.broker.monitoring.remote_ends import (
    PARTITIONS_PER_REQUEST,
    TRUST_MS,
    Ends,
    RemoteEnds,
)
from barnabas.metadata.cluster_view import ClusterView, PartitionView, TopicView
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.ids import TopicPartition
from barnabas.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

OWN = 0


def cluster(leaders: list[int]) -> ClusterView:
    view = ClusterView()
    partitions = [PartitionView(leader, 0, (1,), (1,)) for leader in leaders]
    view.put_topic(TopicView("t", b"t" * 16, partitions))
    return view


class Leaders:
    """Answers with 100 times the partition, and 10 less to readers of committed records."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, int, int]] = []
        self.down: set[int] = set()
        self.refuses: set[int] = set()

    async def __call__(self, broker_id: int, request: Any, timeout_ms: int) -> Any:
        assert isinstance(request, ListOffsetsRequest)
        assert request.replica_id == -1, "as a consumer, to which the end is the watermark"
        count = sum(len(topic.partitions) for topic in request.topics)
        self.asked.append((broker_id, request.isolation_level, count))
        if broker_id in self.down:
            raise RequestError(ErrorCode.BROKER_NOT_AVAILABLE)
        return ListOffsetsResponse(
            topics=[
                ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=[
                        ListOffsetsPartitionResponse(
                            partition_index=each.partition_index,
                            offset=100 * each.partition_index - 10 * request.isolation_level,
                            error_code=6 if each.partition_index in self.refuses else 0,
                        )
                        for each in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )


def keys(*numbers: int) -> list[TopicPartition]:
    return [TopicPartition("t", number) for number in numbers]


def test_each_leader_is_asked_for_its_own() -> None:
    leaders, now_ms = Leaders(), [0]
    ends = RemoteEnds(OWN, cluster([0, 1, 2, 1, -1]), leaders, lambda: now_ms[0])
    found = asyncio.run(ends.refresh([*keys(0, 1, 2, 3, 4, 9), TopicPartition("gone", 0)]))
    assert sorted(leaders.asked) == [(1, 0, 2), (1, 1, 2), (2, 0, 1), (2, 1, 1)]
    assert dict(found) == {key: Ends(100 * key[1], 100 * key[1] - 10) for key in keys(1, 2, 3)}
    assert [ends.get(key) for key in keys(0, 1, 4)] == [None, Ends(100, 90), None]
    assert [ends.leader_of(key) for key in keys(0, 3, 4, 9)] == [0, 1, -1, -1]


def test_an_answer_counts_until_two_more_have_failed() -> None:
    leaders, now_ms = Leaders(), [0]
    ends = RemoteEnds(OWN, cluster([1, 2]), leaders, lambda: now_ms[0])
    asyncio.run(ends.refresh(keys(0, 1)))
    leaders.down.add(1)
    leaders.refuses.add(1)
    now_ms[0] = TRUST_MS
    assert asyncio.run(ends.refresh(keys(0, 1))) == []
    assert ends.get(keys(0)[0]) == Ends(0, -10)
    now_ms[0] += 1
    assert [ends.get(key) for key in keys(0, 1)] == [None, None]


def test_what_is_no_longer_wanted_is_forgotten() -> None:
    leaders = Leaders()
    ends = RemoteEnds(OWN, cluster([1, 1]), leaders, lambda: 0)
    asyncio.run(ends.refresh(keys(0, 1)))
    asyncio.run(ends.refresh(keys(1)))
    assert ends.get(keys(0)[0]) is None
    assert len(ends._known) == 1


def test_many_partitions_are_asked_for_in_pieces() -> None:
    leaders = Leaders()
    count = PARTITIONS_PER_REQUEST + 5
    ends = RemoteEnds(OWN, cluster([1] * count), leaders, lambda: 0)
    found = asyncio.run(ends.refresh(keys(*range(count))))
    assert len(found) == count
    assert sorted(leaders.asked) == [(1, 0, 5), (1, 0, 1000), (1, 1, 5), (1, 1, 1000)]

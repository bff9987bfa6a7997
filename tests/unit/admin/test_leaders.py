"""Partitions are asked at their leaders, and again only where the answer was a passing one."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.network.scripted_broker import ScriptedBroker

from barnabas.admin.leaders import ask_leaders, by_topic
from barnabas.admin.settling import settled_or_raise
from barnabas.client.cluster_client import ClusterClient
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.ids import TopicPartition
from barnabas.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

PARTITIONS = [TopicPartition("t", index) for index in range(3)]


def converse(outcomes: dict[int, list[Any]], leaders: list[list[int]]) -> tuple[Any, list[Any]]:
    """Ask about PARTITIONS; `outcomes` are taken in turn, `leaders` are those of each metadata."""
    asked: list[tuple[int, list[int]]] = []

    async def conversation() -> Any:
        def metadata(request: MetadataRequest, version: int) -> MetadataResponse:
            now = leaders.pop(0) if len(leaders) > 1 else leaders[0]
            return MetadataResponse(
                brokers=[
                    MetadataResponseBroker(
                        node_id=n, host=broker.address.host, port=broker.address.port
                    )
                    for n in (1, 2)
                ],
                topics=[
                    MetadataResponseTopic(
                        name="t",
                        partitions=[
                            MetadataResponsePartition(partition_index=index, leader_id=leader)
                            for index, leader in enumerate(now)
                        ],
                    )
                ],
            )

        async def ask(leader: int, group: list[TopicPartition]) -> dict[TopicPartition, Any]:
            asked.append((leader, [partition.partition for partition in group]))
            return {partition: outcomes[partition.partition].pop(0) for partition in group}

        async with (
            ScriptedBroker({MetadataRequest: metadata}) as broker,
            ClusterClient([broker.address], retry_backoff_ms=(1, 1)) as client,
        ):
            return await ask_leaders(client, PARTITIONS, ask, timeout_ms=60_000)

    return asyncio.run(conversation()), asked


def test_each_leader_is_asked_once_about_all_its_partitions() -> None:
    answers, asked = converse({0: ["a"], 1: ["b"], 2: ["c"]}, [[1, 2, 1]])
    assert answers == dict(zip(PARTITIONS, "abc", strict=True))
    assert asked == [(1, [0, 2]), (2, [1])]


def test_a_passing_failure_is_asked_again_at_the_new_leader() -> None:
    moved = RequestError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    answers, asked = converse({0: ["a"], 1: [moved, "b"], 2: ["c"]}, [[1, 1, 1], [1, 2, 1]])
    assert answers == dict(zip(PARTITIONS, "abc", strict=True))
    assert asked == [(1, [0, 1, 2]), (2, [1])]


def test_a_final_failure_is_the_answer() -> None:
    refused = RequestError(ErrorCode.OFFSET_OUT_OF_RANGE)
    answers, asked = converse({0: ["a"], 1: [refused], 2: ["c"]}, [[1, 1, 1]])
    assert answers[PARTITIONS[1]] is refused
    assert len(asked) == 1
    with pytest.raises(RequestError):
        settled_or_raise(answers)


def test_a_partition_without_a_leader_is_waited_for() -> None:
    answers, asked = converse({0: ["a"], 1: ["b"], 2: ["c"]}, [[1, -1, 1], [1, 2, 1]])
    assert answers == dict(zip(PARTITIONS, "abc", strict=True))
    assert asked == [(1, [0, 2]), (2, [1])]


def test_partitions_group_under_topics() -> None:
    partitions = [TopicPartition("a", 1), TopicPartition("b", 0), TopicPartition("a", 0)]
    assert by_topic(partitions) == {"a": [1, 0], "b": [0]}

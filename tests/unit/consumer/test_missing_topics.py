"""A subscription to topics that are not there yet, or that the client may not see."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.unit.consumer.scripted import Scripted, simulate

from barnabas.aio import AIOKafkaConsumer
from barnabas.errors import KafkaTimeoutError, TopicAuthorizationFailedError
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition

QUICK: dict[str, Any] = {"auto_offset_reset": "earliest", "retry_backoff_ms": 5}


@pytest.mark.parametrize(
    "missing", [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE]
)
def test_a_topic_is_read_soon_after_it_was_created(missing: ErrorCode) -> None:
    """Metadata is asked for until the topic is there, not only when it is five minutes old."""

    async def story() -> list[bytes | None]:
        async with Scripted() as brokers:
            brokers.topic_error = missing
            brokers.append(2)
            async with AIOKafkaConsumer(
                "t", bootstrap_servers=brokers.bootstrap, **QUICK
            ) as consumer:
                assert await consumer.getmany(timeout_ms=50) == {}
                brokers.topic_error = ErrorCode.NONE
                async with asyncio.timeout(60):
                    return [(await consumer.getone()).value for _ in range(2)]

    assert simulate(story()) == [b"0", b"1"]


def test_a_topic_that_the_client_may_not_see_is_told() -> None:
    async def story() -> None:
        async with Scripted() as brokers:
            brokers.topic_error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            async with AIOKafkaConsumer(
                "t", bootstrap_servers=brokers.bootstrap, **QUICK
            ) as consumer:
                async with asyncio.timeout(60):
                    await consumer.getone()

    with pytest.raises(TopicAuthorizationFailedError, match="topic 't'"):
        simulate(story())


@pytest.mark.parametrize(
    ("place", "why"),
    [
        (TopicPartition("t", 9), "topic 't' has 1 partitions"),
        (TopicPartition("u", 0), "topic 'u' is not known"),
    ],
)
def test_a_position_in_a_partition_that_is_not_there(place: TopicPartition, why: str) -> None:
    async def story() -> None:
        async with Scripted() as brokers:
            consumer = AIOKafkaConsumer(bootstrap_servers=brokers.bootstrap, **QUICK)
            consumer.assign([place])
            async with consumer:
                await consumer._core.position(place, 500)

    with pytest.raises(KafkaTimeoutError, match=f"has no position after 500 ms: {why}"):
        simulate(story())

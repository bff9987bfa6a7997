"""`AIOKafkaAdminClient` gives what aiokafka's client gives, and typed results for the rest."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import ModuleType
from typing import Any

import aiokafka.admin
import aiokafka.admin.config_resource
import aiokafka.errors
import pytest

import barnabas.admin
import barnabas.errors
from barnabas.admin.offsets import FoundOffset, OffsetSpec
from barnabas.admin.reassignments import ElectionType
from barnabas.aio.admin import AIOKafkaAdminClient
from barnabas.client.errors import IllegalStateError, NoBrokersAvailable
from barnabas.model.errors import ConfigError
from barnabas.model.ids import TopicPartition
from barnabas.model.request_errors import ElectionNotNeededError, GroupIdNotFoundError

Program = Callable[[Any, ModuleType, Any, str], Awaitable[Any]]


def both(bootstrap: str, program: Program) -> Any:
    """Run a program with either library on one broker and hold the answers against each other."""

    async def run(admin: Any, words: ModuleType, resource: Any, prefix: str) -> Any:
        await admin.start()
        try:
            return await program(admin, words, resource, prefix)
        finally:
            await admin.close()

    async def conversation() -> Any:
        theirs = await run(
            aiokafka.admin.AIOKafkaAdminClient(bootstrap_servers=bootstrap),
            aiokafka.admin,
            aiokafka.admin.config_resource.ConfigResource,
            "aio-theirs",
        )
        ours = await run(
            AIOKafkaAdminClient(bootstrap_servers=bootstrap),
            barnabas.admin,
            barnabas.admin.ConfigResource,
            "aio-ours",
        )
        assert ours == eval(repr(theirs).replace("aio-theirs", "aio-ours"))
        return ours

    return asyncio.run(conversation())


def test_topics(barnabas_bootstrap: str) -> None:
    async def program(admin: Any, words: ModuleType, resource: Any, prefix: str) -> Any:
        topic = f"{prefix}-topic"
        made = await admin.create_topics([words.NewTopic(topic, 2, 1)])
        again = await admin.create_topics([words.NewTopic(topic, 2, 1)])
        assert [error[1] for error in made.topic_errors + again.topic_errors] == [0, 36]
        await admin.create_partitions({topic: words.NewPartitions(3)})
        described = await admin.describe_topics([topic])
        for partition in described[0]["partitions"]:
            partition.pop("leader_epoch", None)
        described[0].pop("topic_authorized_operations", None)
        described[0]["partitions"].sort(key=lambda each: each["partition"])
        assert topic in await admin.list_topics()
        before = {TopicPartition(topic, 0): words.RecordsToDelete(0)}
        trimmed = await admin.delete_records(before)
        deleted = await admin.delete_topics([topic])
        codes = [tuple(each[:2]) for each in deleted.topic_error_codes]
        return [described, [tuple(each) for each in trimmed.items()], codes]

    described, _, codes = both(barnabas_bootstrap, program)
    assert len(described[0]["partitions"]) == 3
    assert codes == [("aio-ours-topic", 0)]


def test_options_and_groups(barnabas_bootstrap: str) -> None:
    async def program(admin: Any, words: ModuleType, resource: Any, prefix: str) -> Any:
        topic = f"{prefix}-options"
        await admin.create_topics([words.NewTopic(topic, 1, 1)])
        [altered] = await admin.alter_configs([resource("topic", topic, {"retention.ms": "5"})])
        [answer] = await admin.describe_configs([resource("topic", topic, {"retention.ms": None})])
        [row] = answer.resources
        options = [tuple(option)[:5] for option in row[4]]
        [groups] = await admin.describe_consumer_groups([f"{prefix}-nobody"])
        coordinator = await admin.find_coordinator(f"{prefix}-nobody")
        cluster = await admin.describe_cluster()
        offsets = await admin.list_consumer_group_offsets(f"{prefix}-nobody")
        named = [tuple(each)[:4] for each in altered.resources]
        states = [tuple(each)[:6] for each in groups.groups]
        return [named, tuple(row[:4]), options, states, coordinator, cluster["brokers"], offsets]

    answers = both(barnabas_bootstrap, program)
    assert answers[2] == [("retention.ms", "5", False, 1, False)]


def test_the_rest_is_typed(barnabas_bootstrap: str) -> None:
    async def program() -> None:
        async with AIOKafkaAdminClient(bootstrap_servers=barnabas_bootstrap) as admin:
            await admin.create_topics([barnabas.admin.NewTopic("aio-typed", 1, 1)])
            partition = TopicPartition("aio-typed", 0)
            elected = await admin.elect_leaders([partition], ElectionType.PREFERRED)
            assert isinstance(elected[partition], ElectionNotNeededError)
            found = await admin.list_offsets({partition: OffsetSpec.LATEST})
            assert found == {partition: FoundOffset(0, -1, 0)}
            deleted = await admin.delete_consumer_groups(["nobody"])
            assert isinstance(deleted["nobody"], GroupIdNotFoundError)
            assert "admin-client-metrics" in admin.metrics()

    asyncio.run(program())


def test_a_client_is_started_and_closed() -> None:
    async def program() -> None:
        with pytest.raises(ConfigError, match="bootstrap_servers"):
            AIOKafkaAdminClient(bootstrap_server="127.0.0.1:1")
        admin = AIOKafkaAdminClient(bootstrap_servers="127.0.0.1:1", bootstrap_timeout_ms=50)
        with pytest.raises(IllegalStateError, match="not started"):
            await admin.list_topics()
        with pytest.raises(NoBrokersAvailable, match=r"127\.0\.0\.1:1"):
            await admin.start()
        await admin.close()

    asyncio.run(program())

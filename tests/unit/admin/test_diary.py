"""The diary as clients read it: once, or as it is written."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from barnabas.admin.config_entries import AlterConfigOp, Change, ConfigResourceType, Resource
from barnabas.admin.configs import alter_configs
from barnabas.admin.diary import follow_diary, read_diary
from barnabas.admin.topics import NewTopic, create_topics
from barnabas.client.cluster_client import ClusterClient
from barnabas.diary.entry import Entry
from barnabas.testing import Cluster

DEADLINE_S = 60.0


@pytest.fixture
def bootstrap() -> Iterator[str]:
    with Cluster(options={"barnabas.diary.enable": "true"}) as cluster:
        yield cluster.bootstrap


async def change(client: ClusterClient, value: int) -> None:
    """Change an option, which the diary has an entry of."""
    await alter_configs(
        client,
        Resource(ConfigResourceType.TOPIC, "orders"),
        [Change(AlterConfigOp.SET, "retention.ms", str(value))],
    )


def test_a_diary_is_read_once_and_followed(bootstrap: str) -> None:
    async def read() -> None:
        async with ClusterClient(bootstrap) as client, asyncio.timeout(DEADLINE_S):
            assert await read_diary(client) == [], "there is none yet"
            await create_topics(client, [NewTopic("orders", 1, 1)])
            followed = follow_diary(client)
            first: asyncio.Task[Entry] = asyncio.create_task(anext(followed))
            await change(client, 5_000)
            entries = [await first]
            while entries[-1].event != "config.changed":
                entries.append(await anext(followed))
            await followed.aclose()
            assert entries[-1].data["changes"] == "set retention.ms=5000"
            assert entries[-1].subject == "topic:orders"
            whole = await read_diary(client)
            assert [entry.event for entry in whole][: len(entries)] == [
                entry.event for entry in entries
            ]
            at_ms = whole[-1].at_ms
            assert await read_diary(client, at_ms + 3_600_000) == []

    asyncio.run(read())

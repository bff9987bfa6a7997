"""A leader whose disk is full: another leads, and it follows again when there is room."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.unit.broker.neighbours import broker, until
from tests.unit.broker.serving import batch_of, produce_request
from tests.unit.log.conftest import FaultyFiles

from barnabas.broker.broker import Broker
from barnabas.broker.storage import log_failures
from barnabas.client.addresses import Address
from barnabas.client.connection import Connection
from barnabas.coordination.memory import MemoryStore
from barnabas.metadata.cluster_view import PartitionView
from barnabas.metadata.topic_store import NewTopic
from barnabas.model.error_codes import ErrorCode


async def produce(to: Broker, value: str) -> ErrorCode:
    endpoint = to.endpoints[0]
    connection = await Connection.open(Address(endpoint.host, endpoint.port), client_id="test")
    try:
        response = await connection.send(
            produce_request("t", batch_of([value]), acks=-1), version=9
        )
    finally:
        connection.close()
    return ErrorCode.of(response.responses[0].partition_responses[0].error_code)


def test_another_leads_and_the_full_one_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_failures, "RETURN_S", 0.2)

    async def story() -> None:
        store = MemoryStore()
        disk = FaultyFiles()
        full = broker(store, tmp_path, 0, disk)
        other = broker(store, tmp_path, 1, FaultyFiles())
        await full.start()
        await other.start()
        await until(lambda: len(full.cluster.brokers) == 2, "both know each other")
        topic = NewTopic("t", 1, 2, {0: [0, 1]})
        (made,) = await full.topics.create([topic], dry_run=False, timeout_ms=60_000)
        assert not isinstance(made, Exception)

        def view(of: Broker) -> PartitionView:
            found = of.cluster.topic("t")
            return found.partitions[0] if found else PartitionView(-1, -1, (), ())

        await until(lambda: view(other).leader == 0, "the first one leads")
        assert await produce(full, "before") is ErrorCode.NONE
        disk.room = 0
        assert await produce(full, "during") is ErrorCode.KAFKA_STORAGE_ERROR
        await until(lambda: view(other).leader == 1, "another leads")
        [noted] = [each for each in full.journal.ring if each.event == "directory.full"]
        assert (noted.subject, noted.cause) == ("broker:0", "no-room")
        assert noted.data["partition"] == "t-0"
        elections = [each for each in full.journal.ring if each.event == "leader.elected"]
        assert elections[-1].cause == "directory-failed"
        await until(lambda: other.partitions[("t", 0)].is_leader, "and knows it")
        assert await produce(other, "after") is ErrorCode.NONE
        assert 0 not in other.partitions[("t", 0)].isr
        disk.room = None
        await until(lambda: set(view(other).isr) == {0, 1}, "the full one has caught up")
        assert full.partitions[("t", 0)].log.log_end_offset == 2
        assert view(full).offline == view(other).offline == ()
        await full.stop()
        await other.stop()

    asyncio.run(story())


def test_a_leader_without_others_in_sync_leads_on(tmp_path: Path) -> None:
    """Nobody could lead instead, and what it holds can still be read."""

    async def story() -> None:
        disk = FaultyFiles()
        alone = broker(MemoryStore(), tmp_path, 0, disk)
        await alone.start()
        await alone.topics.create([NewTopic("t", 1, 1)], dry_run=False, timeout_ms=60_000)
        disk.room = 0
        assert await produce(alone, "during") is ErrorCode.KAFKA_STORAGE_ERROR
        assert not alone.log_failures._resigned
        disk.room = None
        assert await produce(alone, "after") is ErrorCode.NONE
        await alone.stop()

    asyncio.run(story())

"""Topics with records for tests of consumers, written with single requests."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from barnabas.client.cluster_client import CONTROLLER, ClusterClient
from barnabas.model.ids import TopicPartition
from barnabas.records.builder import build_batch
from barnabas.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from barnabas.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from barnabas.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)

T0 = 1_700_000_000_000


def _run(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine on a thread of its own: the test may be inside a loop."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, work).result()


def create(bootstrap: str, topic: str, partitions: int = 1) -> None:
    """Create a topic."""

    async def work() -> None:
        async with ClusterClient(bootstrap) as client:
            request = CreateTopicsRequest(
                topics=[
                    CreatableTopic(name=topic, num_partitions=partitions, replication_factor=1)
                ],
                timeout_ms=10_000,
            )
            response = await client.send(request, CONTROLLER)
            assert [each.error_code for each in response.topics] == [0], response

    _run(work())


def write(
    bootstrap: str, partition: TopicPartition, rows: Iterable[Sequence[Any]], **options: Any
) -> None:
    """Append one batch of (timestamp, key, value) rows."""

    async def work() -> None:
        async with ClusterClient(bootstrap) as client:
            await append(client, partition, rows, **options)

    _run(work())


async def append(
    client: ClusterClient,
    partition: TopicPartition,
    rows: Iterable[Sequence[Any]],
    **options: Any,
) -> None:
    """Append one batch."""
    request = ProduceRequest(
        acks=-1,
        timeout_ms=10_000,
        topic_data=[
            TopicProduceData(
                name=partition.topic,
                partition_data=[
                    PartitionProduceData(
                        index=partition.partition, records=bytes(build_batch(list(rows), **options))
                    )
                ],
            )
        ],
    )
    connection = await client.connection(partition)
    response = await connection.send(request, version=9)
    assert response.responses[0].partition_responses[0].error_code == 0, response


def numbered(count: int, start: int = 0) -> list[tuple[int, bytes, bytes]]:
    """Return rows whose values are their numbers."""
    return [(T0 + n, b"k%d" % n, b"%d" % n) for n in range(start, start + count)]


def delete_before(bootstrap: str, partition: TopicPartition, offset: int) -> None:
    """Delete the records before an offset."""

    async def work() -> None:
        async with ClusterClient(bootstrap) as client:
            request = DeleteRecordsRequest(
                topics=[
                    DeleteRecordsTopic(
                        name=partition.topic,
                        partitions=[
                            DeleteRecordsPartition(
                                partition_index=partition.partition, offset=offset
                            )
                        ],
                    )
                ],
                timeout_ms=10_000,
            )
            response = await client.send(request, partition)
            assert response.topics[0].partitions[0].error_code == 0, response

    _run(work())

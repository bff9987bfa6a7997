"""The work of `kafka-replica-verification`: the same batches from all replicas, compared."""

from __future__ import annotations

import asyncio
import re
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from barnabas.admin.leaders import by_topic
from barnabas.admin.offsets import EARLIEST, LATEST, list_offsets
from barnabas.admin.topics import describe_topics
from barnabas.cli.kafka.flags import Given
from barnabas.client.cluster_client import ClusterClient
from barnabas.kernels import BatchHeader
from barnabas.model.errors import BarnabasError, InvalidValueError
from barnabas.model.ids import TopicPartition
from barnabas.records.message_set import scan_entries
from barnabas.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)

DEBUGGING_REPLICA = -2
"""Reads from followers, too."""
LAST_NAMED_VERSION = 12
"""Of Fetch: topics by name."""


class Fetched(NamedTuple):
    """What a replica has returned for a partition."""

    high_watermark: int
    batches: Sequence[BatchHeader]


class DifferentOffsets(BarnabasError):
    """Replicas whose batches end at different offsets: nothing more can be compared."""


async def compare(topics: re.Pattern[str], given: Given, client: ClusterClient) -> int:
    """Fetch from all brokers, compare, and report, forever."""
    views = [each for each in await describe_topics(client, None) if topics.fullmatch(each.name)]
    replicas = {
        TopicPartition(view.name, number): partition.replicas
        for view in views
        for number, partition in view.partitions.items()
    }
    if not replicas:
        raise InvalidValueError(
            "No topics found. [topics-include] if specified, is either filtering out all topics "
            "or there is no topic."
        )
    positions = await _positions(client, list(replicas), given["time"])
    print(f"{_now()}: verification process is started", flush=True)
    interval_s = given["report-interval-ms"] / 1000
    reported = time.monotonic()
    while True:
        fetched = await _fetch_all(client, replicas, positions, given)
        worst: tuple[int, TopicPartition, int] | None = None
        for key, answers in fetched.items():
            for complaint in matched(key, answers, positions):
                print(f"{_now()}: {complaint}", flush=True)
            watermark = max((each.high_watermark for each in answers.values()), default=-1)
            lag = watermark - positions[key]
            if worst is None or lag > worst[0]:
                worst = (lag, key, positions[key])
        if worst is not None and time.monotonic() - reported >= interval_s:
            lag, key, offset = worst
            print(
                f"{_now()}: max lag is {lag} for partition {key} at offset {offset} among "
                f"{len(fetched)} partitions",
                flush=True,
            )
            reported = time.monotonic()


def _now() -> str:
    return datetime.now().isoformat(" ", "milliseconds").replace(".", ",")


async def _positions(
    client: ClusterClient, partitions: list[TopicPartition], timestamp: int
) -> dict[TopicPartition, int]:
    """Return where to begin; the end if no record is as young."""
    found = await list_offsets(client, dict.fromkeys(partitions, timestamp))
    positions = {key: found[key].offset for key in partitions}
    young = [key for key, offset in positions.items() if offset < 0]
    if young and timestamp not in (EARLIEST, LATEST):
        ends = await list_offsets(client, dict.fromkeys(young, LATEST))
        positions |= {key: ends[key].offset for key in young}
    return positions


async def _fetch_all(
    client: ClusterClient,
    replicas: Mapping[TopicPartition, Sequence[int]],
    positions: Mapping[TopicPartition, int],
    given: Given,
) -> dict[TopicPartition, dict[int, Fetched]]:
    brokers = sorted({broker for each in replicas.values() for broker in each})

    async def one(broker: int) -> Mapping[TopicPartition, Fetched]:
        wanted = [key for key, each in replicas.items() if broker in each]
        try:
            return await _fetch(client, broker, wanted, positions, given)
        except BarnabasError as failure:
            print(f"broker {broker}: {failure}", file=sys.stderr)
            await asyncio.sleep(given["max-wait-ms"] / 1000)
            return {}

    answers = await asyncio.gather(*map(one, brokers))
    fetched: dict[TopicPartition, dict[int, Fetched]] = {key: {} for key in replicas}
    for broker, found in zip(brokers, answers, strict=True):
        for key, each in found.items():
            fetched[key][broker] = each
    return {key: found for key, found in fetched.items() if len(found) == len(set(replicas[key]))}


async def _fetch(
    client: ClusterClient,
    broker: int,
    partitions: Sequence[TopicPartition],
    positions: Mapping[TopicPartition, int],
    given: Given,
) -> dict[TopicPartition, Fetched]:
    request = FetchRequest(
        replica_id=DEBUGGING_REPLICA,
        max_wait_ms=given["max-wait-ms"],
        min_bytes=1,
        topics=[
            FetchTopic(
                topic=topic,
                partitions=[
                    FetchPartition(
                        partition=number,
                        fetch_offset=positions[TopicPartition(topic, number)],
                        partition_max_bytes=given["fetch-size"],
                    )
                    for number in numbers
                ],
            )
            for topic, numbers in by_topic(partitions).items()
        ],
    )
    connection = await client.connection(broker)
    version = min(connection.version_of(FetchRequest), LAST_NAMED_VERSION)
    response: FetchResponse = await connection.send(request, version=version)
    return {
        TopicPartition(topic.topic, data.partition_index): Fetched(
            data.high_watermark, scan_entries(bytes(data.records or b""))
        )
        for topic in response.responses
        for data in topic.partitions
        if not data.error_code
    }


def matched(
    key: TopicPartition, answers: Mapping[int, Fetched], positions: dict[TopicPartition, int]
) -> list[str]:
    """Advance a partition's position over the batches that all replicas have.

    Return the batches that differ; raise DifferentOffsets if they do not even end alike.
    """
    complaints: list[str] = []
    for row in zip(*(each.batches for each in answers.values()), strict=False):
        held = dict(zip(answers, row, strict=True))
        if any(batch.last_offset >= answers[node].high_watermark for node, batch in held.items()):
            break
        (first, batch), *others = held.items()
        for node, other in others:
            if other.last_offset != batch.last_offset:
                raise DifferentOffsets(
                    f"partition {key}: replica {first}'s offset {batch.last_offset} doesn't match "
                    f"replica {node}'s offset {other.last_offset}"
                )
            if other.crc != batch.crc:
                complaints.append(
                    f"partition {key} has unmatched checksum at offset {batch.last_offset}; "
                    f"replica {first}'s checksum {batch.crc}; replica {node}'s checksum {other.crc}"
                )
        positions[key] = batch.next_offset
    return complaints

"""Reads the diary of a cluster: the entries in the topic `__barnabas_diary`.

    entries = await read_diary(client, since_ms=now_ms - 3_600_000)
    async for entry in follow_diary(client, since_ms=now_ms):  # and what comes, until closed

It is read like any topic, with the rights that reading it takes. An entry that was repeated is
written again under its key, so a key's last record counts.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from barnabas.admin.leaders import ask_leaders
from barnabas.admin.offsets import list_offsets
from barnabas.admin.topics import describe_topics
from barnabas.client.cluster_client import ClusterClient
from barnabas.diary.entry import Entry, merged
from barnabas.metadata.topic_names import DIARY_TOPIC
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import InvalidValueError, RequestError
from barnabas.model.ids import EARLIEST, LATEST, TopicPartition
from barnabas.records.batch import iterate
from barnabas.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic

PARTITION = TopicPartition(DIARY_TOPIC, 0)
FETCH_BYTES = 1024 * 1024
WAIT_MS = 500
"""How long a broker waits for further entries before it responds without any."""
LAST_NAMED_VERSION = 12
"""Of Fetch: later versions name topics by id."""


async def read_diary(client: ClusterClient, since_ms: int | None = None) -> list[Entry]:
    """Return the entries since a time, or all, the oldest first; none if there is no diary.

    Raises the protocol's error if the topic may not be read.
    """
    if not await _exists(client):
        return []
    ends = await list_offsets(client, {PARTITION: LATEST})
    found: dict[bytes, Entry] = {}
    offset = await _start(client, since_ms)
    while offset < ends[PARTITION].offset:
        entries, after = await _fetch(client, offset, 0)
        if after == offset:
            break
        offset = after
        found.update(entries)
    return merged(found)


async def follow_diary(
    client: ClusterClient, since_ms: int | None = None
) -> AsyncGenerator[Entry, None]:
    """Yield the entries since a time, then each as it is written, also those that are repeated."""
    while not await _exists(client):  # noqa: ASYNC110 - another process creates it
        await asyncio.sleep(WAIT_MS / 1000)
    offset = await _start(client, since_ms)
    while True:
        entries, offset = await _fetch(client, offset, WAIT_MS)
        for _, entry in entries:
            yield entry


async def _exists(client: ClusterClient) -> bool:
    [topic] = await describe_topics(client, [DIARY_TOPIC])
    if topic.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return False
    if topic.error is not ErrorCode.NONE:
        failure = RequestError(topic.error, f"the diary cannot be read: {topic.error.meaning}")
        if topic.error is ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            failure.add_note(f"allow READ on topic {DIARY_TOPIC}")
        raise failure
    return True


async def _start(client: ClusterClient, since_ms: int | None) -> int:
    if since_ms is not None:
        first = (await list_offsets(client, {PARTITION: since_ms}))[PARTITION].offset
        if first < 0:  # all entries are older
            return (await list_offsets(client, {PARTITION: LATEST}))[PARTITION].offset
        return first
    return (await list_offsets(client, {PARTITION: EARLIEST}))[PARTITION].offset


async def _fetch(
    client: ClusterClient, offset: int, wait_ms: int
) -> tuple[list[tuple[bytes, Entry]], int]:
    """Return the entries from an offset on with their keys, and the offset after them."""

    async def ask(
        leader: int, partitions: list[TopicPartition]
    ) -> dict[TopicPartition, bytes | RequestError]:
        connection = await client.connection(leader)
        version = min(connection.version_of(FetchRequest), LAST_NAMED_VERSION)
        wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=FETCH_BYTES)
        request = FetchRequest(
            max_wait_ms=wait_ms,
            min_bytes=1 if wait_ms else 0,
            max_bytes=FETCH_BYTES,
            topics=[FetchTopic(topic=DIARY_TOPIC, partitions=[wanted])],
        )
        response = await connection.send(request, version=version)
        code = ErrorCode.of(response.error_code)
        if code is ErrorCode.NONE:
            answered = response.responses[0].partitions[0]
            code = ErrorCode.of(answered.error_code)
        if code is not ErrorCode.NONE:
            return {PARTITION: RequestError(code, f"{DIARY_TOPIC}: {code.meaning}")}
        return {PARTITION: bytes(answered.records or b"")}

    data = (await ask_leaders(client, [PARTITION], ask))[PARTITION]
    if isinstance(data, RequestError):
        raise data
    entries: list[tuple[bytes, Entry]] = []
    for record in iterate(data):
        if record.offset < offset:
            continue
        offset = record.offset + 1
        try:
            entry = Entry.decode(bytes(record.value or b""), record.offset)
        except InvalidValueError:
            continue  # not written by a broker
        entries.append((bytes(record.key or b""), entry))
    return entries, offset

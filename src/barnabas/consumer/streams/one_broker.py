"""A simple consumer's connection to the one broker that it was given.

It asks that broker and no other, and returns its response: finding a partition's leader is up to
the caller. A lost connection is reopened once, as such consumers always did.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Mapping
from typing import Any

from barnabas.client.addresses import Address
from barnabas.client.connection import Connection
from barnabas.client.errors import ConnectionLostError
from barnabas.consumer.streams.message_sets import (
    FetchAnswer,
    FetchRequest,
    FetchResponse,
    MessageSet,
    OffsetAnswer,
    OffsetResponse,
    PartitionOffsetRequestInfo,
)
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.records.bounds import READING, Bounds
from barnabas.wire.messages import fetch as fetch_messages
from barnabas.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from barnabas.wire.schema import Message

_RESPONSE_BYTES_MAX = 50 * 1024 * 1024


class OneBroker:
    """Fetches and looks up offsets at one broker; connects on first use."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        so_timeout_ms: int,
        buffer_size: int,
        client_id: str,
        bounds: Bounds = READING,
    ) -> None:
        self.address = Address(host, port)
        self._so_timeout_ms = so_timeout_ms
        self._buffer_size = buffer_size
        self._client_id = client_id
        self._bounds = bounds
        self._connections: dict[str, Connection] = {}

    async def fetch(self, request: FetchRequest) -> FetchResponse:
        """Fetch partitions; the error of a partition is in its part of the response."""
        message = fetch_messages.FetchRequest(
            replica_id=request.replica_id,
            max_wait_ms=request.max_wait_ms,
            min_bytes=request.min_bytes,
            max_bytes=_RESPONSE_BYTES_MAX,
            topics=[
                fetch_messages.FetchTopic(
                    topic=topic,
                    partitions=[
                        fetch_messages.FetchPartition(
                            partition=each.partition,
                            fetch_offset=request.partitions[each].offset,
                            partition_max_bytes=request.partitions[each].fetch_size,
                        )
                        for each in group
                    ],
                )
                for topic, group in by_topic(request.partitions).items()
            ],
        )
        response: fetch_messages.FetchResponse = await self._send(
            message,
            at_most=12,  # from 13 on topics are named by id, which is unknown here
            client_id=request.client_id,
            wait_ms=request.max_wait_ms,
        )
        answers = {}
        for topic in response.responses:
            for each in topic.partitions:
                partition = TopicPartition(topic.topic, each.partition_index)
                wanted = request.partitions[partition]
                messages = MessageSet(bytes(each.records or b""), wanted.offset, self._bounds)
                code = ErrorCode.of(each.error_code or response.error_code)
                answers[partition] = FetchAnswer(code, each.high_watermark, messages)
        return FetchResponse(answers)

    async def offsets_before(
        self, wanted: Mapping[TopicPartition, PartitionOffsetRequestInfo]
    ) -> OffsetResponse:
        """Return the base offsets of segments that are older than a timestamp, the newest first.

        Only the oldest version of the request has such a response, which Kafka supports up to 3.9.
        """
        request = ListOffsetsRequest(
            replica_id=-1,
            topics=[
                ListOffsetsTopic(
                    name=topic,
                    partitions=[
                        ListOffsetsPartition(
                            partition_index=each.partition,
                            timestamp=wanted[each].time,
                            max_num_offsets=wanted[each].max_num_offsets,
                        )
                        for each in group
                    ],
                )
                for topic, group in by_topic(wanted).items()
            ],
        )
        response: ListOffsetsResponse = await self._send(request, at_most=0)
        return OffsetResponse(
            {
                TopicPartition(topic.name, each.partition_index): OffsetAnswer(
                    ErrorCode.of(each.error_code), tuple(each.old_style_offsets)
                )
                for topic in response.topics
                for each in topic.partitions
            }
        )

    async def close(self) -> None:
        """Close the connection."""
        connections, self._connections = list(self._connections.values()), {}
        for connection in connections:
            connection.close()
        for connection in connections:
            await connection.wait_closed()

    async def _send(
        self,
        request: Message,
        *,
        at_most: int,
        client_id: str | None = None,
        wait_ms: int = 0,
    ) -> Any:
        name = self._client_id if client_id is None else client_id
        known = self._connections.get(name)
        if known is not None and not known.closed:
            try:
                return await self._ask(known, request, at_most, wait_ms)
            except ConnectionLostError:
                pass  # the broker may have closed it while idle
        connection = self._connections[name] = await Connection.open(
            self.address,
            client_id=name,
            connect_timeout_ms=self._so_timeout_ms,
            request_timeout_ms=self._so_timeout_ms,
            socket_options=[(socket.SOL_SOCKET, socket.SO_RCVBUF, self._buffer_size)],
        )
        return await self._ask(connection, request, at_most, wait_ms)

    async def _ask(
        self, connection: Connection, request: Message, at_most: int, wait_ms: int
    ) -> Any:
        version = connection.version_of(type(request), at_most=at_most)
        timeout_ms = self._so_timeout_ms + wait_ms
        return await connection.send(request, version=version, timeout_ms=timeout_ms)


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[TopicPartition]]:
    """Group partitions by topic, in their order."""
    grouped: dict[str, list[TopicPartition]] = {}
    for partition in partitions:
        grouped.setdefault(partition.topic, []).append(partition)
    return grouped

"""The blocking stream consumer: iterators that block, over parts on a loop of their own.

    connector = create_consumer_connector(
        {"zookeeper.connect": "zk:2181", "group.id": "g", "auto.offset.reset": "smallest"}
    )
    streams = connector.create_message_streams({"orders": 2})
    for message in streams["orders"][0]:
        print(message.partition, message.offset, message.message)

Each stream is meant for one thread; the connector's own methods may be called from any. A stream
ends when the connector is shut down, and raises ConsumerTimeout after consumer.timeout.ms without
a message; it can then be asked again. `has_next` waits for a message without consuming it:

    while stream.has_next():
        print(next(stream).message)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import CancelledError
from types import TracebackType
from typing import Any, NamedTuple, overload

from barnabas.blocking.loop_thread import LoopThread
from barnabas.client.addresses import Address, parse_addresses
from barnabas.client.cluster_client import ClusterClient
from barnabas.client.errors import IllegalStateError
from barnabas.config.clients.options import parse_client_options
from barnabas.consumer import streams as machines
from barnabas.consumer.streams.chunks import Chunk, ChunkQueue, PartitionFeed
from barnabas.consumer.streams.iteration import Iteration, IteratorState
from barnabas.consumer.streams.message_sets import (
    FetchRequest,
    FetchRequestBuilder,
    FetchResponse,
    Message,
    MessageAndOffset,
    MessageSet,
    OffsetResponse,
    PartitionOffsetRequestInfo,
)
from barnabas.consumer.streams.simple import Fetched
from barnabas.coordination.contract import Coordination
from barnabas.model.errors import ConfigError
from barnabas.model.ids import EARLIEST, LATEST, TopicPartition
from barnabas.records.batch import Record
from barnabas.records.bounds import RECORD_MAX, Bounds

__all__ = [
    "EARLIEST",
    "LATEST",
    "ConsumerConnector",
    "FetchRequest",
    "FetchRequestBuilder",
    "FetchResponse",
    "IteratorState",
    "KafkaStream",
    "Message",
    "MessageAndMetadata",
    "MessageAndOffset",
    "MessageSet",
    "OffsetResponse",
    "PartitionOffsetRequestInfo",
    "SimpleConsumer",
    "create_consumer_connector",
    "create_java_consumer_connector",
]

Decoder = Callable[[bytes], Any]


class MessageAndMetadata(NamedTuple):
    """One message of a stream, with key and message decoded."""

    topic: str
    partition: int
    offset: int
    key: Any
    message: Any
    timestamp: int
    headers: Any


class KafkaStream:
    """Messages of the partitions that one stream of a consumer owns; blocks for the next."""

    def __init__(
        self,
        thread: LoopThread,
        queue: ChunkQueue,
        timeout_ms: int,
        decode_key: Decoder | None,
        decode_message: Decoder | None,
    ) -> None:
        self._thread = thread
        self._queue = queue
        self._timeout_ms = timeout_ms
        self._decode_key = decode_key
        self._decode_message = decode_message
        self._chunk: Chunk | None = None
        self._records: Iterator[Record] = iter(())
        self._iteration = Iteration(self._find_next)

    @property
    def state(self) -> IteratorState:
        """NOT_READY, READY (a message waits), DONE (the connector was shut down), or FAILED."""
        return self._iteration.state

    def __iter__(self) -> KafkaStream:
        return self

    iterator = __iter__
    """The name that Java programs know."""

    def has_next(self) -> bool:
        """Return whether there is a message, waiting for it; taking it consumes it.

        After a failure this and `next` raise IllegalStateError: create new streams.

            while stream.has_next():
                print(next(stream).message)
        """
        return self._iteration.has_next()

    def __next__(self) -> MessageAndMetadata:
        while self.has_next():
            feed, record = self._iteration.take()
            # Since it was found, the partition may have been assigned to another consumer.
            if feed.consume(record):
                return MessageAndMetadata(
                    *feed.partition,
                    record.offset,
                    _decoded(record.key, self._decode_key),
                    _decoded(record.value, self._decode_message),
                    record.timestamp,
                    record.headers,
                )
        raise StopIteration

    def next(self) -> MessageAndMetadata:
        """Return the next message, waiting for it; raise StopIteration after the end.

        print(stream.next().message)
        """
        return self.__next__()

    def _find_next(self) -> tuple[PartitionFeed, Record] | None:
        """Wait for a message; None means that the stream has ended."""
        while True:
            for record in self._records:
                assert self._chunk is not None
                return self._chunk.feed, record
            self._chunk = self._next_chunk()
            if self._chunk is None:
                return None
            self._records = self._chunk.ahead()

    def _next_chunk(self) -> Chunk | None:
        if self._queue.closed:
            return None
        try:
            return self._thread.call(self._queue.take(self._timeout_ms))
        except (CancelledError, IllegalStateError):
            # The connector's loop may end before it could end the stream.
            if self._queue.closed:
                return None
            raise

    def clear(self) -> None:
        """Drop what was taken from the queue and not yielded yet."""
        self._records = iter(())
        self._iteration.reset()


class ConsumerConnector:
    """A consumer of a group, and its streams."""

    def __init__(
        self,
        config: Mapping[str, object],
        make_tree: Callable[[machines.StreamOptions], Coordination] | None = None,
    ) -> None:
        """Connect to ZooKeeper; `make_tree` creates another coordination service, on the loop."""
        self.options = parse_client_options(machines.StreamOptions, config)
        self._thread = LoopThread("barnabas-streams")
        try:
            self._machine = self._thread.call(self._open(make_tree or _zookeeper))
        except BaseException:
            self._thread.stop()
            raise

    @property
    def consumer_id(self) -> str:
        """The name under which this consumer is registered."""
        return self._machine.consumer_id

    def assignment(self) -> dict[TopicPartition, str]:
        """Return the partitions of this consumer, and the stream that reads each.

        connector.assignment()     # {TopicPartition("orders", 0): "g_host-1-0", …}
        """
        return self._machine.assignment

    def create_message_streams(
        self,
        topics: Mapping[str, int],
        key_decoder: Decoder | None = None,
        value_decoder: Decoder | None = None,
    ) -> dict[str, list[KafkaStream]]:
        """Subscribe to topics with a number of streams each; return the streams by topic.

        streams = connector.create_message_streams({"orders": 2}, value_decoder=bytes.decode)
        for message in streams["orders"][0]:
            print(message.message)
        """
        queues = self._thread.call(self._machine.create_message_streams(topics))
        return {
            topic: [self._stream(queue, key_decoder, value_decoder) for queue in each]
            for topic, each in queues.items()
        }

    def create_message_streams_by_filter(
        self,
        expression: str,
        num_streams: int = 1,
        key_decoder: Decoder | None = None,
        value_decoder: Decoder | None = None,
        *,
        blacklist: bool = False,
    ) -> list[KafkaStream]:
        """Subscribe to all topics that match a pattern (or do not); return the streams.

        [stream] = connector.create_message_streams_by_filter("orders-.*")
        """
        queues = self._thread.call(
            self._machine.create_message_streams_by_filter(
                expression, num_streams, blacklist=blacklist
            )
        )
        return [self._stream(queue, key_decoder, value_decoder) for queue in queues]

    def commit_offsets(self) -> None:
        """Commit what the streams have yielded.

        connector.commit_offsets()
        """
        self._thread.call(self._machine.commit_offsets())

    def shutdown(self) -> None:
        """Commit (with auto-commit), leave the group and end the streams.

        connector.shutdown()
        """
        if self._thread.running:
            self._thread.call(self._machine.shutdown())
            self._thread.stop()

    def __enter__(self) -> ConsumerConnector:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.shutdown()

    async def _open(
        self, make_tree: Callable[[machines.StreamOptions], Coordination]
    ) -> machines.ConsumerConnector:
        machine = machines.ConsumerConnector(make_tree(self.options), self.options)
        try:
            await machine.start()
        except BaseException:
            await machine.shutdown()
            raise
        return machine

    def _stream(
        self, queue: ChunkQueue, decode_key: Decoder | None, decode_message: Decoder | None
    ) -> KafkaStream:
        timeout_ms = self.options.consumer_timeout_ms
        return KafkaStream(self._thread, queue, timeout_ms, decode_key, decode_message)


def create_consumer_connector(config: Mapping[str, object]) -> ConsumerConnector:
    """Return a consumer that is connected to ZooKeeper, with no subscription yet."""
    return ConsumerConnector(config)


create_java_consumer_connector = create_consumer_connector
"""The name that Java programs know."""


class SimpleConsumer:
    """Fetches, looks up and commits offsets of partitions; keeps no state.

        consumer = SimpleConsumer("broker1", 9092, 100_000, 64 * 1024, "audit")
        request = FetchRequestBuilder().add_fetch("orders", 0, 17, 100_000).build()
        for each in consumer.fetch(request).message_set("orders", 0):
            print(each.offset, each.message.payload)

    Requests made by a builder, and `get_offsets_before`, are sent to this broker alone (the first
    of several), regardless of the leader; the other methods find the broker that they need.
    """

    def __init__(
        self,
        host: str,
        port: int | None = None,
        so_timeout: int = 30_000,
        buffer_size: int = 64 * 1024,
        client_id: str = "barnabas",
        *,
        fetch_wait_max_ms: int = 100,
        fetch_min_bytes: int = 1,
        fetch_message_max_bytes: int = 1024 * 1024,
        unpacked_record_max_bytes: int = RECORD_MAX,
    ) -> None:
        """Without `port`, `host` lists brokers as `host:port`; `so_timeout` is in milliseconds."""
        addresses = parse_addresses(host) if port is None else [Address(host, port)]
        self._thread = LoopThread("barnabas-simple-consumer")
        self._broker = machines.OneBroker(
            *addresses[0],
            so_timeout_ms=so_timeout,
            buffer_size=buffer_size,
            client_id=client_id,
            bounds=Bounds(unpacked_record_max_bytes),
        )
        self._client = ClusterClient(
            ",".join(map(str, addresses)),
            client_id=client_id,
            request_timeout_ms=so_timeout + fetch_wait_max_ms,
        )
        self._machine = machines.SimpleConsumer(
            self._client,
            wait_max_ms=fetch_wait_max_ms,
            min_bytes=fetch_min_bytes,
            partition_max_bytes=fetch_message_max_bytes,
        )

    @overload
    def fetch(self, request: FetchRequest) -> FetchResponse: ...
    @overload
    def fetch(self, request: Mapping[TopicPartition, int]) -> dict[TopicPartition, Fetched]: ...
    def fetch(
        self, request: FetchRequest | Mapping[TopicPartition, int]
    ) -> FetchResponse | dict[TopicPartition, Fetched]:
        """Execute a fetch request at this broker; or fetch partitions of one leader, by offsets.

        response = consumer.fetch(FetchRequestBuilder().add_fetch("orders", 0, 17, 100_000).build())
        fetched = consumer.fetch({TopicPartition("orders", 0): 17})
        """
        if isinstance(request, FetchRequest):
            return self._thread.call(self._broker.fetch(request))
        return self._thread.call(self._machine.fetch(request))

    def get_offsets_before(
        self, wanted: Mapping[TopicPartition, PartitionOffsetRequestInfo]
    ) -> OffsetResponse:
        """Return the base offsets of segments that were written before a time, newest first.

        wanted = {TopicPartition("orders", 0): PartitionOffsetRequestInfo(LATEST, 10)}
        consumer.get_offsets_before(wanted).offsets("orders", 0)     # (4711, 3000, 0)
        """
        return self._thread.call(self._broker.offsets_before(wanted))

    def offset_before(self, partition: TopicPartition, time_ms: int) -> int:
        """Return the first offset at or after a time, or LATEST or EARLIEST; -1 without any.

        consumer.offset_before(TopicPartition("orders", 0), LATEST)
        """
        return self._thread.call(self._machine.offset_before(partition, time_ms))

    def commit_offsets(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit offsets of a group.

        consumer.commit_offsets("shipping", {TopicPartition("orders", 0): 17})
        """
        self._thread.call(self._machine.commit(group, offsets))

    def fetch_offsets(
        self, group: str, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, int]:
        """Return committed offsets of a group; partitions without one are left out.

        consumer.fetch_offsets("shipping", [TopicPartition("orders", 0)])
        """
        return self._thread.call(self._machine.committed(group, partitions))

    def close(self) -> None:
        """Close the connections.

        consumer.close()
        """
        if self._thread.running:
            self._thread.call(self._broker.close())
            self._thread.call(self._client.close())
            self._thread.stop()


def _decoded(data: bytes | memoryview | None, decode: Decoder | None) -> Any:
    if data is None:
        return None
    return bytes(data) if decode is None else decode(bytes(data))


def _zookeeper(options: machines.StreamOptions) -> Coordination:
    from barnabas.coordination.zookeeper.coordination import ZooKeeperCoordination
    from barnabas.coordination.zookeeper.settings import ZooKeeperSettings, parse_connect

    if options.zookeeper_connect is None:
        raise ConfigError("zookeeper.connect must be set to the address of ZooKeeper")
    servers, chroot = parse_connect(options.zookeeper_connect)
    return ZooKeeperCoordination(
        ZooKeeperSettings(
            servers,
            chroot,
            options.zookeeper_session_timeout_ms,
            options.zookeeper_connection_timeout_ms,
        )
    )

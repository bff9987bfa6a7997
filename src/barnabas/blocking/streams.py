"""The stream consumer for plain programs: iterators that block, over parts on a loop of their own.

    connector = create_consumer_connector(
        {"zookeeper.connect": "zk:2181", "group.id": "g", "auto.offset.reset": "smallest"}
    )
    streams = connector.create_message_streams({"orders": 2})
    for message in streams["orders"][0]:
        print(message.partition, message.offset, message.message)

Each stream is meant for one thread; the connector's own methods may be called from any. A stream
ends when the connector is shut down, and raises ConsumerTimeout after consumer.timeout.ms without
a message; it can then be asked again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import CancelledError
from types import TracebackType
from typing import Any, NamedTuple

from barnabas.blocking.loop_thread import LoopThread
from barnabas.client.errors import IllegalStateError
from barnabas.client.switchboard import Switchboard
from barnabas.config.clients.options import parse_client_options
from barnabas.consumer import streams as machines
from barnabas.consumer.streams.chunks import Chunk, ChunkQueue
from barnabas.consumer.streams.simple import EARLIEST, LATEST, Fetched
from barnabas.coordination.contract import Coordination
from barnabas.model.errors import ConfigError
from barnabas.model.ids import TopicPartition
from barnabas.records.batch import Record

__all__ = [
    "EARLIEST",
    "LATEST",
    "ConsumerConnector",
    "KafkaStream",
    "MessageAndMetadata",
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
    """Messages of the partitions that one stream of a consumer has now; blocks for the next."""

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
        self._partition = TopicPartition("", -1)
        self._records: Iterator[Record] = iter(())

    def __iter__(self) -> KafkaStream:
        return self

    def __next__(self) -> MessageAndMetadata:
        while True:
            for record in self._records:
                return MessageAndMetadata(
                    *self._partition,
                    record.offset,
                    _decoded(record.key, self._decode_key),
                    _decoded(record.value, self._decode_message),
                    record.timestamp,
                    record.headers,
                )
            chunk = self._next_chunk()
            if chunk is None:
                raise StopIteration
            self._partition, self._records = chunk.feed.partition, chunk.unread()

    def _next_chunk(self) -> Chunk | None:
        if self._queue.closed:
            return None
        try:
            return self._thread.call(self._queue.take(self._timeout_ms))
        except (CancelledError, IllegalStateError):
            # The connector's loop may end before it could say that the stream has.
            if self._queue.closed:
                return None
            raise

    def clear(self) -> None:
        """Drop what was taken from the queue and not given out yet."""
        self._records = iter(())


class ConsumerConnector:
    """A consumer of a group, and its streams."""

    def __init__(
        self,
        config: Mapping[str, object],
        make_tree: Callable[[machines.StreamOptions], Coordination] | None = None,
    ) -> None:
        """Join ZooKeeper; `make_tree` may give another coordination service, made on the loop."""
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
        """Commit what the streams have given out.

        connector.commit_offsets()
        """
        self._thread.call(self._machine.commit_offsets())

    def shutdown(self) -> None:
        """Commit if that is automatic, leave the group and end the streams.

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
    """Return a consumer that is connected to ZooKeeper, and subscribes to nothing yet."""
    return ConsumerConnector(config)


create_java_consumer_connector = create_consumer_connector
"""The name that Java programs know."""


class SimpleConsumer:
    """Fetches, looks up and commits offsets of partitions at a cluster; remembers nothing."""

    def __init__(
        self,
        bootstrap_servers: str,
        *,
        client_id: str = "barnabas",
        socket_timeout_ms: int = 30_000,
        fetch_wait_max_ms: int = 100,
        fetch_min_bytes: int = 1,
        fetch_message_max_bytes: int = 1024 * 1024,
    ) -> None:
        self._thread = LoopThread("barnabas-simple-consumer")
        self._board = Switchboard(
            bootstrap_servers,
            client_id=client_id,
            request_timeout_ms=socket_timeout_ms + fetch_wait_max_ms,
        )
        self._machine = machines.SimpleConsumer(
            self._board,
            wait_max_ms=fetch_wait_max_ms,
            min_bytes=fetch_min_bytes,
            partition_max_bytes=fetch_message_max_bytes,
        )

    def fetch(self, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, Fetched]:
        """Fetch partitions that the same broker leads, from these offsets on.

        fetched = consumer.fetch({TopicPartition("orders", 0): 17})
        """
        return self._thread.call(self._machine.fetch(offsets))

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
            self._thread.call(self._board.close())
            self._thread.stop()


def _decoded(data: bytes | memoryview | None, decode: Decoder | None) -> Any:
    if data is None:
        return None
    return bytes(data) if decode is None else decode(bytes(data))


def _zookeeper(options: machines.StreamOptions) -> Coordination:
    from barnabas.coordination.zookeeper import ZooKeeperCoordination
    from barnabas.coordination.zookeeper_settings import ZooKeeperSettings, parse_connect

    if options.zookeeper_connect is None:
        raise ConfigError("zookeeper.connect: the address of ZooKeeper is needed")
    servers, chroot = parse_connect(options.zookeeper_connect)
    return ZooKeeperCoordination(
        ZooKeeperSettings(
            servers,
            chroot,
            options.zookeeper_session_timeout_ms,
            options.zookeeper_connection_timeout_ms,
        )
    )

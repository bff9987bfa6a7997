"""`Producer`: confluent-kafka's, over our own."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Mapping
from operator import index
from types import TracebackType
from typing import Any, TypeVar

from barnabas.client.errors import TransactionAbortedError
from barnabas.compat.confluent_kafka.cluster_view import ClusterMetadata, cluster_id, cluster_view
from barnabas.compat.confluent_kafka.config import merged, parse
from barnabas.compat.confluent_kafka.credentials import use_password
from barnabas.compat.confluent_kafka.delivery import (
    FOREVER_MS,
    Delivery,
    Outgoing,
    not_produced,
)
from barnabas.compat.confluent_kafka.error import KafkaError, KafkaException
from barnabas.compat.confluent_kafka.events import seconds
from barnabas.compat.confluent_kafka.failures import transaction_error_of
from barnabas.compat.confluent_kafka.message import header_pairs
from barnabas.compat.confluent_kafka.partitions import TopicPartition, listed, to_commit
from barnabas.config.clients.producer import ProducerOptions
from barnabas.model.errors import BarnabasError
from barnabas.model.group_metadata import ConsumerGroupMetadata
from barnabas.producer.transaction import State
from barnabas.producer.transaction_manager import TransactionManager

Self = TypeVar("Self", bound="Producer")

_OPEN = (State.IN_TRANSACTION, State.COMMITTING, State.ABORTABLE_ERROR)


class Producer:
    """Queues messages, delivers them in the background, and reports in `poll` and `flush`."""

    def __init__(self, *config: Mapping[str, Any], **keywords: Any) -> None:
        options, settings = parse(ProducerOptions, merged(config, keywords))
        self._settings = settings
        self._closed = False
        self._delivery = Delivery(options, settings)
        self._end = weakref.finalize(self, self._delivery.close)

    # Messages.

    def produce(
        self,
        topic: str,
        value: str | bytes | None = None,
        key: str | bytes | None = None,
        partition: int = -1,
        callback: Callable[..., object] | None = None,
        on_delivery: Callable[..., object] | None = None,
        timestamp: int = 0,
        headers: Any = None,
    ) -> None:
        """Queue a message; BufferError when the queue is full."""
        self._check_open()
        if not isinstance(topic, str):
            raise TypeError(f"topic must be a str, not {type(topic).__name__}")
        if partition < -1:
            raise KafkaException(not_produced(KafkaError._UNKNOWN_PARTITION))
        self._delivery.produce(
            Outgoing(
                topic,
                _bytes(value),
                _bytes(key),
                header_pairs(headers),
                index(partition),
                index(timestamp),
                callback or on_delivery or self._settings.on_delivery,
                time.monotonic(),
            )
        )

    def produce_batch(
        self,
        topic: str,
        messages: list[dict[str, Any]],
        partition: int = -1,
        callback: Callable[..., object] | None = None,
        on_delivery: Callable[..., object] | None = None,
    ) -> int:
        """Queue messages, given as dicts; return how many were queued.

        One that could not be gets its error as `_error`.
        """
        self._check_open()
        if not isinstance(messages, list):
            raise TypeError("messages must be a list")
        queued = 0
        for message in messages:
            if not isinstance(message, dict):
                raise TypeError("each message must be a dict")
            try:
                self.produce(
                    topic,
                    message.get("value"),
                    message.get("key"),
                    message.get("partition", partition),
                    message.get("callback", callback),
                    message.get("on_delivery", on_delivery),
                    message.get("timestamp", 0),
                    message.get("headers"),
                )
            except BufferError as failure:
                message["_error"] = KafkaError(KafkaError._QUEUE_FULL, str(failure))
            except KafkaException as failure:
                message["_error"] = failure.args[0]
            else:
                queued += 1
        return queued

    def poll(self, timeout: float = -1) -> int:
        """Call the functions that wait, after waiting for one; return how many there were."""
        self._check_open()
        events = self._delivery.events
        events.wait(seconds(timeout))
        return events.serve()

    def flush(self, timeout: float = -1) -> int:
        """Wait until everything is delivered; return how many messages are left."""
        self._check_open()
        return self._flush(seconds(timeout))

    def _flush(self, timeout_s: float | None) -> int:
        delivery = self._delivery
        deadline_s = None if timeout_s is None else time.monotonic() + timeout_s
        delivery.hurry(1)
        try:
            while True:
                delivery.events.serve()
                left = len(delivery)
                if not left:
                    return 0
                left_s = None if deadline_s is None else max(0.0, deadline_s - time.monotonic())
                if not delivery.events.wait(left_s, until=lambda: not len(delivery)):
                    return left
        finally:
            delivery.hurry(-1)

    def purge(self, in_queue: bool = True, in_flight: bool = True, blocking: bool = True) -> None:
        """Fail messages that were not delivered, queued ones and those that were sent."""
        self._check_open()
        self._delivery.call(self._delivery.purge(in_queue=in_queue, in_flight=in_flight), None)

    def __len__(self) -> int:
        return len(self._delivery)

    def __bool__(self) -> bool:
        return True

    # Transactions.

    def init_transactions(self, timeout: float = -1) -> None:
        """Prepare for transactions; aborts what an earlier producer of this id left open."""
        manager = self._transactions()
        self._transact(manager, manager.initialize(_milliseconds(timeout)))

    def begin_transaction(self) -> None:
        """Begin a transaction."""
        manager = self._transactions()

        async def begin() -> None:
            manager.begin()

        self._transact(manager, begin())

    def send_offsets_to_transaction(
        self,
        positions: list[TopicPartition],
        group_metadata: ConsumerGroupMetadata,
        timeout: float = -1,
    ) -> None:
        """Commit a group's offsets with the transaction."""
        manager = self._transactions()
        if not isinstance(group_metadata, ConsumerGroupMetadata):
            raise TypeError("group_metadata must be from Consumer.consumer_group_metadata()")
        offsets = {each.key: to_commit(each) for each in listed(positions) if each.offset >= 0}
        self._transact(
            manager, manager.commit_offsets(offsets, group_metadata, _milliseconds(timeout))
        )

    def commit_transaction(self, timeout: float = -1) -> None:
        """Deliver what was produced, then commit."""
        manager = self._transactions()
        delivery = self._delivery

        async def commit() -> None:
            await delivery.appended()
            await manager.commit(_milliseconds(timeout))

        self._transact(manager, commit())

    def abort_transaction(self, timeout: float = -1) -> None:
        """Drop what was not delivered, then abort."""
        manager = self._transactions()
        self._delivery.drop_waiting(TransactionAbortedError("the transaction was aborted"))
        self._transact(manager, manager.abort(_milliseconds(timeout)))

    def _transactions(self) -> TransactionManager:
        self._check_open()
        manager = self._delivery.core.transaction_manager
        if manager is None:
            reason = "The Transactional API requires transactional.id to be configured"
            raise KafkaException(KafkaError(KafkaError._NOT_CONFIGURED, reason))
        return manager

    def _transact(self, manager: TransactionManager, work: Any) -> None:
        try:
            self._delivery.run(work)
        except BarnabasError as failure:
            error = transaction_error_of(failure, open_=manager.transaction.state in _OPEN)
            raise KafkaException(error) from failure

    # The cluster, and this producer itself.

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> ClusterMetadata:
        """Return the cluster's metadata: of one topic, or all."""
        self._check_open()
        return cluster_view(self._delivery, self._delivery.core.cluster_client, topic, timeout)

    def cluster_id(self, timeout: float = -1) -> str:
        """Return the id of the cluster."""
        self._check_open()
        return cluster_id(self._delivery, self._delivery.core.cluster_client, timeout)

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Log in with these from the next connection on."""
        self._check_open()
        delivery = self._delivery
        use_password(delivery.core.cluster_client, delivery.options, username, password)

    def close(self) -> bool:
        """Deliver what was produced, and disconnect; return whether everything was delivered."""
        if self._closed:
            return True
        try:
            return self._flush(None) == 0
        finally:
            self._closed = True
            self._end()

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        exc_traceback: TracebackType | None,
    ) -> bool | None:
        self.close()
        return None

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("Producer has been closed")


def _bytes(field: Any) -> bytes | None:
    if field is None or isinstance(field, bytes):
        return field
    if isinstance(field, str):
        return field.encode()
    if isinstance(field, (bytearray, memoryview)):
        return bytes(field)
    raise TypeError(f"a bytes-like object is required, not {type(field).__name__!r}")


def _milliseconds(timeout: float) -> float:
    return FOREVER_MS if timeout < 0 else timeout * 1000

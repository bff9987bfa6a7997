"""`AIOProducer`: a producer whose messages are futures of the program's loop."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Generator, Mapping
from concurrent.futures import Executor
from typing import Any, TypeVar

from barnabas.compat.confluent_kafka.aio.crossing import CALLBACKS, call
from barnabas.compat.confluent_kafka.error import (
    KafkaError,
    KafkaException,
    KeySerializationError,
    ValueSerializationError,
)
from barnabas.compat.confluent_kafka.message import Message
from barnabas.compat.confluent_kafka.producer import Producer
from barnabas.compat.confluent_kafka.serialization import MessageField, SerializationContext

Self = TypeVar("Self", bound="AIOProducer")

_FULL_S = 0.005
"""How long a message waits, again and again, while the queue is full."""


class AIOProducer:
    """A producer for asyncio programs: `await (await producer.produce(topic, value))`.

    Messages go straight to the producer, which batches them itself: `batch_size` and
    `buffer_timeout` do nothing.
    """

    def __init__(
        self,
        producer_conf: Mapping[str, Any],
        max_workers: int = 4,
        executor: Executor | None = None,
        batch_size: int = 1000,
        buffer_timeout: float = 1.0,
    ) -> None:
        self.executor = executor
        self._loop = asyncio.get_running_loop()
        self._is_closed = False
        self._tasks: set[asyncio.Task[Any]] = set()
        properties = dict(producer_conf)
        for name in CALLBACKS:
            if name in properties:
                properties[name] = self._on_loop(properties[name])
        self._producer = Producer(properties)
        self._events = self._producer._delivery.events
        self._events.notify = self._notified

    def _on_loop(self, callback: Any) -> Any:
        def start(*arguments: Any) -> None:
            task = self._loop.create_task(callback(*arguments))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        return lambda *arguments: self._loop.call_soon_threadsafe(start, *arguments)

    def _notified(self) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._events.serve)

    async def __aenter__(self: Self) -> Self:
        return self

    async def __aexit__(self, *about: object) -> None:
        await self.close()

    def __len__(self) -> int:
        return 0 if self._is_closed else len(self._producer)

    def __bool__(self) -> bool:
        return True

    async def produce(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        partition: int = -1,
        timestamp: int = 0,
        headers: Any = None,
    ) -> asyncio.Future[Any]:
        """Queue a message, waiting while the queue is full; return a future of its delivery."""
        loop = self._loop
        delivered: asyncio.Future[Any] = loop.create_future()

        def report(error: KafkaError | None, message: Message[Any, Any]) -> None:
            loop.call_soon_threadsafe(_settle, delivered, error, message)

        while True:
            try:
                self._producer.produce(
                    topic,
                    value,
                    key,
                    partition,
                    on_delivery=report,
                    timestamp=timestamp,
                    headers=headers,
                )
            except BufferError:
                await asyncio.sleep(_FULL_S)
                continue
            except KafkaException as failure:
                delivered.set_exception(failure)
            return delivered

    async def poll(self, timeout: float = 0, *args: Any, **kwargs: Any) -> int:
        """Do nothing but wait: reports come by themselves. Return how many came meanwhile."""
        return int(await self._call("poll", timeout))

    async def flush(self, *args: Any, **kwargs: Any) -> Any:
        """See `Producer.flush`."""
        return await self._call("flush", *args, **kwargs)

    async def purge(self, *args: Any, **kwargs: Any) -> Any:
        """See `Producer.purge`."""
        return await self._call("purge", *args, **kwargs)

    async def list_topics(self, *args: Any, **kwargs: Any) -> Any:
        """See `Producer.list_topics`."""
        return await self._call("list_topics", *args, **kwargs)

    async def cluster_id(self, *args: Any, **kwargs: Any) -> str:
        """See `Producer.cluster_id`."""
        return str(await self._call("cluster_id", *args, **kwargs))

    async def init_transactions(self, *args: Any, **kwargs: Any) -> Any:
        """See `Producer.init_transactions`."""
        return await self._call("init_transactions", *args, **kwargs)

    async def begin_transaction(self, *args: Any, **kwargs: Any) -> Any:
        """See `Producer.begin_transaction`."""
        return await self._call("begin_transaction", *args, **kwargs)

    async def send_offsets_to_transaction(self, *args: Any, **kwargs: Any) -> Any:
        """See `Producer.send_offsets_to_transaction`."""
        return await self._call("send_offsets_to_transaction", *args, **kwargs)

    async def commit_transaction(self, *args: Any, **kwargs: Any) -> Any:
        """See `Producer.commit_transaction`."""
        return await self._call("commit_transaction", *args, **kwargs)

    async def abort_transaction(self, *args: Any, **kwargs: Any) -> Any:
        """See `Producer.abort_transaction`."""
        return await self._call("abort_transaction", *args, **kwargs)

    async def set_sasl_credentials(self, *args: Any, **kwargs: Any) -> Any:
        """See `Producer.set_sasl_credentials`."""
        return await self._call("set_sasl_credentials", *args, **kwargs)

    async def close(self) -> None:
        """Deliver what was produced, and disconnect."""
        if not self._is_closed:
            await self._call("close")
            self._is_closed = True

    async def _call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        return await call(self.executor, getattr(self._producer, name), *args, **kwargs)


class AsyncSerializingProducer(AIOProducer):
    """Takes `key.serializer` and `value.serializer`, which may be coroutine functions.

    May be awaited, which does nothing more: `producer = await AsyncSerializingProducer(conf)`.
    """

    def __init__(self, conf: Mapping[str, Any], **kwargs: Any) -> None:
        properties = dict(conf)
        self._key_serializer = properties.pop("key.serializer", None)
        self._value_serializer = properties.pop("value.serializer", None)
        super().__init__(properties, **kwargs)

    def __await__(self) -> Generator[Any, None, AsyncSerializingProducer]:
        return self
        yield

    async def produce(  # type: ignore[override]  # the order of key and value is another one
        self,
        topic: str,
        key: Any = None,
        value: Any = None,
        partition: int = -1,
        timestamp: int = 0,
        headers: Any = None,
    ) -> asyncio.Future[Any]:
        """Serialize key and value, and queue the message."""
        if self._is_closed:
            raise RuntimeError("Producer has been closed")
        context = SerializationContext(topic, MessageField.KEY, headers)
        try:
            key = await _applied(self._key_serializer, key, context)
        except Exception as failure:
            raise KeySerializationError(failure) from failure
        context.field = MessageField.VALUE
        try:
            value = await _applied(self._value_serializer, value, context)
        except Exception as failure:
            raise ValueSerializationError(failure) from failure
        return await super().produce(topic, value, key, partition, timestamp, headers)


async def _applied(function: Any, given: Any, context: SerializationContext) -> Any:
    if function is None:
        return given
    made = function(given, context)
    return await made if inspect.isawaitable(made) else made


def _settle(
    delivered: asyncio.Future[Any], error: KafkaError | None, message: Message[Any, Any]
) -> None:
    if delivered.done():
        return
    if error is not None:
        delivered.set_exception(KafkaException(error))
    else:
        delivered.set_result(message)

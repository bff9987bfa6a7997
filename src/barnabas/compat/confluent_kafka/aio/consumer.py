"""`AIOConsumer`: a consumer whose methods are coroutines, and whose callbacks may be."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Generator, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any, TypeVar

from barnabas.compat.confluent_kafka.aio.crossing import CALLBACKS, call, wrapped
from barnabas.compat.confluent_kafka.consumer import Consumer
from barnabas.compat.confluent_kafka.error import (
    ConsumeError,
    KeyDeserializationError,
    ValueDeserializationError,
)
from barnabas.compat.confluent_kafka.message import Message
from barnabas.compat.confluent_kafka.serialization import MessageField, SerializationContext

Self = TypeVar("Self", bound="AIOConsumer")


class AIOConsumer:
    """A consumer for asyncio programs; one call after the other is done, in a thread."""

    def __init__(
        self,
        consumer_conf: Mapping[str, Any],
        max_workers: int = 100,
        executor: Executor | None = None,
    ) -> None:
        if max_workers < 1:
            raise ValueError("max_workers must be at least 1")
        self._own_executor = executor is None
        # A consumer is for one thread at a time: more workers would only wait for each other.
        self.executor = executor or ThreadPoolExecutor(max_workers=1)
        loop = asyncio.get_running_loop()
        properties = dict(consumer_conf)
        for name in CALLBACKS:
            if name in properties:
                properties[name] = wrapped(loop, properties[name])
        self._closed = False
        self._consumer = Consumer(properties)

    async def __aenter__(self: Self) -> Self:
        return self

    async def __aexit__(self, *about: object) -> None:
        await self.close()

    async def _call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        if self._closed:
            raise RuntimeError("Consumer closed")
        return await call(self.executor, getattr(self._consumer, name), *args, **kwargs)

    async def poll(self, *args: Any, **kwargs: Any) -> Any:
        """See `Consumer.poll`."""
        return await self._call("poll", *args, **kwargs)

    async def consume(self, *args: Any, **kwargs: Any) -> Any:
        """See `Consumer.consume`."""
        return await self._call("consume", *args, **kwargs)

    async def subscribe(self, *args: Any, **kwargs: Any) -> Any:
        """See `Consumer.subscribe`; callbacks are coroutine functions, and get this consumer."""
        loop = asyncio.get_running_loop()
        for name in ("on_assign", "on_revoke", "on_lost"):
            function = kwargs.get(name)
            if function is not None:

                async def told(_: object, partitions: Any, function: Any = function) -> Any:
                    return await function(self, partitions)

                kwargs[name] = wrapped(loop, told)
        return await self._call("subscribe", *args, **kwargs)

    async def unsubscribe(self, *args: Any, **kwargs: Any) -> Any:
        """See `Consumer.unsubscribe`."""
        return await self._call("unsubscribe", *args, **kwargs)

    async def commit(self, *args: Any, **kwargs: Any) -> Any:
        """See `Consumer.commit`."""
        return await self._call("commit", *args, **kwargs)

    async def close(self, *args: Any, **kwargs: Any) -> Any:
        """See `Consumer.close`."""
        if self._closed:
            return
        try:
            await self._call("close", *args, **kwargs)
        finally:
            self._closed = True
            if self._own_executor:
                self.executor.shutdown(wait=False)

    async def seek(self, *args: Any, **kwargs: Any) -> Any:
        """See `Consumer.seek`."""
        return await self._call("seek", *args, **kwargs)

    async def pause(self, *args: Any, **kwargs: Any) -> Any:
        """See `Consumer.pause`."""
        return await self._call("pause", *args, **kwargs)

    async def resume(self, *args: Any, **kwargs: Any) -> Any:
        """See `Consumer.resume`."""
        return await self._call("resume", *args, **kwargs)

    async def store_offsets(self, *args: Any, **kwargs: Any) -> Any:
        """See `Consumer.store_offsets`."""
        return await self._call("store_offsets", *args, **kwargs)

    async def committed(self, *args: Any, **kwargs: Any) -> Any:
        """See `Consumer.committed`."""
        return await self._call("committed", *args, **kwargs)

    async def assign(self, *args: Any, **kwargs: Any) -> Any:
        """See `Consumer.assign`."""
        return await self._call("assign", *args, **kwargs)

    async def unassign(self, *args: Any, **kwargs: Any) -> Any:
        """See `Consumer.unassign`."""
        return await self._call("unassign", *args, **kwargs)

    async def incremental_assign(self, *args: Any, **kwargs: Any) -> Any:
        """See `Consumer.incremental_assign`."""
        return await self._call("incremental_assign", *args, **kwargs)

    async def incremental_unassign(self, *args: Any, **kwargs: Any) -> Any:
        """See `Consumer.incremental_unassign`."""
        return await self._call("incremental_unassign", *args, **kwargs)

    async def assignment(self, *args: Any, **kwargs: Any) -> Any:
        """See `Consumer.assignment`."""
        return await self._call("assignment", *args, **kwargs)

    async def position(self, *args: Any, **kwargs: Any) -> Any:
        """See `Consumer.position`."""
        return await self._call("position", *args, **kwargs)

    async def consumer_group_metadata(self, *args: Any, **kwargs: Any) -> Any:
        """See `Consumer.consumer_group_metadata`."""
        return await self._call("consumer_group_metadata", *args, **kwargs)

    async def set_sasl_credentials(self, *args: Any, **kwargs: Any) -> Any:
        """See `Consumer.set_sasl_credentials`."""
        return await self._call("set_sasl_credentials", *args, **kwargs)

    async def list_topics(self, *args: Any, **kwargs: Any) -> Any:
        """See `Consumer.list_topics`."""
        return await self._call("list_topics", *args, **kwargs)

    async def cluster_id(self, *args: Any, **kwargs: Any) -> str:
        """See `Consumer.cluster_id`."""
        return str(await self._call("cluster_id", *args, **kwargs))

    async def get_watermark_offsets(self, *args: Any, **kwargs: Any) -> Any:
        """See `Consumer.get_watermark_offsets`."""
        return await self._call("get_watermark_offsets", *args, **kwargs)

    async def offsets_for_times(self, *args: Any, **kwargs: Any) -> Any:
        """See `Consumer.offsets_for_times`."""
        return await self._call("offsets_for_times", *args, **kwargs)


class AsyncDeserializingConsumer(AIOConsumer):
    """Takes `key.deserializer` and `value.deserializer`, which may be coroutine functions.

    May be awaited, which does nothing more: `consumer = await AsyncDeserializingConsumer(conf)`.
    """

    def __init__(self, conf: Mapping[str, Any], **kwargs: Any) -> None:
        properties = dict(conf)
        self._key_deserializer = properties.pop("key.deserializer", None)
        self._value_deserializer = properties.pop("value.deserializer", None)
        super().__init__(properties, **kwargs)

    def __await__(self) -> Generator[Any, None, AsyncDeserializingConsumer]:
        return self
        yield

    async def poll(self, timeout: float = -1) -> Any:
        """Return the next message with its objects; raise ConsumeError for an error."""
        message: Message[Any, Any] | None = await super().poll(timeout)
        if message is None:
            return None
        error = message.error()
        if error is not None:
            raise ConsumeError(error, kafka_message=message)
        return await self._deserialized(message)

    async def consume(self, num_messages: int = 1, timeout: float = -1) -> Any:
        """Return messages with their objects; errors stay in their places."""
        messages = await super().consume(num_messages, timeout)
        return [each if each.error() else await self._deserialized(each) for each in messages]

    async def _deserialized(self, message: Message[Any, Any]) -> Message[Any, Any]:
        context = SerializationContext(message.topic(), MessageField.KEY, message.headers())
        try:
            key = await _applied(self._key_deserializer, message.key(), context)
        except Exception as failure:
            raise KeyDeserializationError(failure, kafka_message=message) from failure
        context.field = MessageField.VALUE
        try:
            value = await _applied(self._value_deserializer, message.value(), context)
        except Exception as failure:
            raise ValueDeserializationError(failure, kafka_message=message) from failure
        message.set_key(key)
        message.set_value(value)
        return message


async def _applied(function: Any, given: Any, context: SerializationContext) -> Any:
    if function is None:
        return given
    made = function(given, context)
    return await made if inspect.isawaitable(made) else made

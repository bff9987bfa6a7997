"""`DeserializingConsumer`: a consumer whose deserializers are part of its configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from barnabas.compat.confluent_kafka.consumer import Consumer
from barnabas.compat.confluent_kafka.error import (
    ConsumeError,
    KeyDeserializationError,
    ValueDeserializationError,
)
from barnabas.compat.confluent_kafka.message import Message
from barnabas.compat.confluent_kafka.serialization import MessageField, SerializationContext


class DeserializingConsumer(Consumer):
    """Takes `key.deserializer` and `value.deserializer`: functions of bytes and their context."""

    def __init__(self, conf: Mapping[str, Any]) -> None:
        properties = dict(conf)
        self._key_deserializer = properties.pop("key.deserializer", None)
        self._value_deserializer = properties.pop("value.deserializer", None)
        super().__init__(properties)

    def poll(self, timeout: float = -1) -> Message[Any, Any] | None:
        """Return the next message with its objects; raise ConsumeError for an error."""
        message = super().poll(timeout)
        return None if message is None else self._deserialized(message)

    def consume(self, num_messages: int = 1, timeout: float = -1) -> list[Message[Any, Any]]:
        """Not offered: one message at a time is deserialized."""
        raise NotImplementedError

    def _deserialized(self, message: Message[Any, Any]) -> Message[Any, Any]:
        error = message.error()
        if error is not None:
            raise ConsumeError(error, kafka_message=message)
        context = SerializationContext(message.topic(), MessageField.KEY, message.headers())
        key, value = message.key(), message.value()
        if self._key_deserializer is not None:
            try:
                key = self._key_deserializer(key, context)
            except Exception as failure:
                raise KeyDeserializationError(failure, kafka_message=message) from failure
        context.field = MessageField.VALUE
        if self._value_deserializer is not None:
            try:
                value = self._value_deserializer(value, context)
            except Exception as failure:
                raise ValueDeserializationError(failure, kafka_message=message) from failure
        message.set_key(key)
        message.set_value(value)
        return message

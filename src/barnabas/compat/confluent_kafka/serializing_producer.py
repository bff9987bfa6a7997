"""`SerializingProducer`: a producer whose serializers are part of its configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from barnabas.compat.confluent_kafka.error import KeySerializationError, ValueSerializationError
from barnabas.compat.confluent_kafka.producer import Producer
from barnabas.compat.confluent_kafka.serialization import MessageField, SerializationContext


class SerializingProducer(Producer):
    """Takes `key.serializer` and `value.serializer`: functions of an object and its context."""

    def __init__(self, conf: Mapping[str, Any]) -> None:
        properties = dict(conf)
        self._key_serializer = properties.pop("key.serializer", None)
        self._value_serializer = properties.pop("value.serializer", None)
        super().__init__(properties)

    def produce(  # type: ignore[override]  # the order of key and value is another one
        self,
        topic: str,
        key: Any = None,
        value: Any = None,
        partition: int = -1,
        on_delivery: Callable[..., object] | None = None,
        timestamp: int = 0,
        headers: Any = None,
    ) -> None:
        """Serialize key and value, and queue the message."""
        self._check_open()
        if not isinstance(topic, str):
            raise TypeError(f"topic must be a str, not {type(topic).__name__}")
        context = SerializationContext(topic, MessageField.KEY, headers)
        if self._key_serializer is not None:
            try:
                key = self._key_serializer(key, context)
            except Exception as failure:
                raise KeySerializationError(failure) from failure
        context.field = MessageField.VALUE
        if self._value_serializer is not None:
            try:
                value = self._value_serializer(value, context)
            except Exception as failure:
                raise ValueSerializationError(failure) from failure
        super().produce(
            topic,
            value,
            key,
            partition=partition,
            on_delivery=on_delivery,
            timestamp=timestamp,
            headers=headers,
        )

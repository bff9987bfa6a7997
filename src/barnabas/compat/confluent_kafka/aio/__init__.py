"""`AIOProducer` and `AIOConsumer`: the same clients for asyncio programs."""

from barnabas.compat.confluent_kafka.aio.consumer import AIOConsumer, AsyncDeserializingConsumer
from barnabas.compat.confluent_kafka.aio.producer import AIOProducer, AsyncSerializingProducer

__all__ = [
    "AIOConsumer",
    "AIOProducer",
    "AsyncDeserializingConsumer",
    "AsyncSerializingProducer",
]

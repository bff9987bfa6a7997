"""confluent-kafka's interface over our clients: a program moves by its imports.

    from barnabas.compat.confluent_kafka import Consumer, Producer
    from barnabas.compat.confluent_kafka.admin import AdminClient, NewTopic

Dicts with librdkafka's properties, callbacks in the thread that polls, errors as `KafkaError`:
programs keep all of it. docs/how-to/move-to-barnabas.md has what differs.
"""

from barnabas.compat.confluent_kafka.consumer import Consumer
from barnabas.compat.confluent_kafka.deserializing_consumer import DeserializingConsumer
from barnabas.compat.confluent_kafka.error import (
    ConcurrentModificationException,
    IllegalStateException,
    KafkaError,
    KafkaException,
)
from barnabas.compat.confluent_kafka.message import (
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME,
    TIMESTAMP_NOT_AVAILABLE,
    Message,
)
from barnabas.compat.confluent_kafka.model import (
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    ConsumerGroupType,
    ElectionType,
    IsolationLevel,
    Node,
    TopicCollection,
    TopicPartitionInfo,
    Uuid,
)
from barnabas.compat.confluent_kafka.notices import ThrottleEvent
from barnabas.compat.confluent_kafka.partitioners import consistent, fnv1a, murmur2
from barnabas.compat.confluent_kafka.partitions import (
    OFFSET_BEGINNING,
    OFFSET_END,
    OFFSET_INVALID,
    OFFSET_STORED,
    TopicPartition,
)
from barnabas.compat.confluent_kafka.producer import Producer
from barnabas.compat.confluent_kafka.serializing_producer import SerializingProducer
from barnabas.compat.confluent_kafka.versions import libversion, version

__version__ = version()

__all__ = [
    "OFFSET_BEGINNING",
    "OFFSET_END",
    "OFFSET_INVALID",
    "OFFSET_STORED",
    "TIMESTAMP_CREATE_TIME",
    "TIMESTAMP_LOG_APPEND_TIME",
    "TIMESTAMP_NOT_AVAILABLE",
    "ConcurrentModificationException",
    "Consumer",
    "ConsumerGroupState",
    "ConsumerGroupTopicPartitions",
    "ConsumerGroupType",
    "DeserializingConsumer",
    "ElectionType",
    "IllegalStateException",
    "IsolationLevel",
    "KafkaError",
    "KafkaException",
    "Message",
    "Node",
    "Producer",
    "SerializingProducer",
    "ThrottleEvent",
    "TopicCollection",
    "TopicPartition",
    "TopicPartitionInfo",
    "Uuid",
    "consistent",
    "fnv1a",
    "libversion",
    "murmur2",
    "version",
]

"""The names that programs import from confluent-kafka's extension module."""

from barnabas.compat.confluent_kafka.admin import NewPartitions, NewTopic
from barnabas.compat.confluent_kafka.consumer import Consumer
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
from barnabas.compat.confluent_kafka.model import Uuid
from barnabas.compat.confluent_kafka.partitioners import consistent, fnv1a, murmur2
from barnabas.compat.confluent_kafka.partitions import (
    OFFSET_BEGINNING,
    OFFSET_END,
    OFFSET_INVALID,
    OFFSET_STORED,
    TopicPartition,
)
from barnabas.compat.confluent_kafka.producer import Producer
from barnabas.compat.confluent_kafka.versions import libversion, version

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
    "IllegalStateException",
    "KafkaError",
    "KafkaException",
    "Message",
    "NewPartitions",
    "NewTopic",
    "Producer",
    "TopicPartition",
    "Uuid",
    "consistent",
    "fnv1a",
    "libversion",
    "murmur2",
    "version",
]

# Types of the names that __init__.py imports when they are asked for.

from barnabas.admin.offsets import OffsetSpec as OffsetSpec
from barnabas.blocking.admin import KafkaAdminClient as KafkaAdminClient
from barnabas.blocking.consumer import KafkaConsumer as KafkaConsumer
from barnabas.blocking.producer import KafkaProducer as KafkaProducer
from barnabas.consumer.group.callbacks import (
    AsyncConsumerRebalanceListener as AsyncConsumerRebalanceListener,
)
from barnabas.consumer.group.callbacks import ConsumerRebalanceListener as ConsumerRebalanceListener
from barnabas.kernels import ConsumerRecord as ConsumerRecord
from barnabas.model.group_metadata import ConsumerGroupMetadata as ConsumerGroupMetadata
from barnabas.model.ids import TopicPartition as TopicPartition
from barnabas.model.isolation import IsolationLevel as IsolationLevel
from barnabas.model.serializer import DefaultSerializer as DefaultSerializer
from barnabas.model.serializer import Deserializer as Deserializer
from barnabas.model.serializer import JsonSerializer as JsonSerializer
from barnabas.model.serializer import Serializer as Serializer
from barnabas.producer.handle import TransactionHandle as TransactionHandle
from barnabas.structs import OffsetAndMetadata as OffsetAndMetadata
from barnabas.structs import OffsetAndTimestamp as OffsetAndTimestamp
from barnabas.structs import TopicPartitionReplica as TopicPartitionReplica

__version__: str

__all__ = [
    "AsyncConsumerRebalanceListener",
    "ConsumerGroupMetadata",
    "ConsumerRebalanceListener",
    "ConsumerRecord",
    "DefaultSerializer",
    "Deserializer",
    "IsolationLevel",
    "JsonSerializer",
    "KafkaAdminClient",
    "KafkaConsumer",
    "KafkaProducer",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "OffsetSpec",
    "Serializer",
    "TopicPartition",
    "TopicPartitionReplica",
    "TransactionHandle",
    "__version__",
]

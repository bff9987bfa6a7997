# Types of the names that __init__.py imports on first use.

from barnabas.aio.admin import AIOKafkaAdminClient as AIOKafkaAdminClient
from barnabas.aio.consumer import AIOKafkaConsumer as AIOKafkaConsumer
from barnabas.aio.producer import AIOKafkaProducer as AIOKafkaProducer
from barnabas.client.errors import ConsumerStoppedError as ConsumerStoppedError
from barnabas.client.errors import IllegalOperation as IllegalOperation
from barnabas.consumer.group.callbacks import (
    AsyncConsumerRebalanceListener as AsyncConsumerRebalanceListener,
)
from barnabas.consumer.group.callbacks import ConsumerRebalanceListener as ConsumerRebalanceListener
from barnabas.kernels import ConsumerRecord as ConsumerRecord
from barnabas.model.ids import TopicPartition as TopicPartition
from barnabas.structs import OffsetAndMetadata as OffsetAndMetadata
from barnabas.structs import OffsetAndTimestamp as OffsetAndTimestamp

__all__ = [
    "AIOKafkaAdminClient",
    "AIOKafkaConsumer",
    "AIOKafkaProducer",
    "AsyncConsumerRebalanceListener",
    "ConsumerRebalanceListener",
    "ConsumerRecord",
    "ConsumerStoppedError",
    "IllegalOperation",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "TopicPartition",
]

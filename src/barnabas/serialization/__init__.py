"""Serializers and deserializers for the options of producers and consumers.

Those that Kafka has are here under Kafka's names and produce the same bytes, so a record that is
written in Python can be read in Java and vice versa. Options take an object, a class, or the name
of one, also Kafka's own:

    KafkaProducer(key_serializer=StringSerializer, value_serializer=LongSerializer)
    properties = {"value.deserializer": "org.apache.kafka.common.serialization.LongDeserializer"}
    KafkaConsumer("orders", **properties)

None stays None both ways. What cannot be converted raises a `SerializationError`.
"""

from barnabas.model.errors import SerializationError
from barnabas.model.serializer import Deserializer, JsonSerializer, Serializer
from barnabas.serialization.avro import AvroDeserializer, AvroSerializer
from barnabas.serialization.binary import (
    ByteArrayDeserializer,
    ByteArraySerializer,
    ByteBufferDeserializer,
    ByteBufferSerializer,
    BytesDeserializer,
    BytesSerializer,
    VoidDeserializer,
    VoidSerializer,
)
from barnabas.serialization.json import JsonDeserializer
from barnabas.serialization.lists import ListDeserializer, ListSerializer
from barnabas.serialization.numbers import (
    BooleanDeserializer,
    BooleanSerializer,
    DoubleDeserializer,
    DoubleSerializer,
    FloatDeserializer,
    FloatSerializer,
    IntegerDeserializer,
    IntegerSerializer,
    LongDeserializer,
    LongSerializer,
    ShortDeserializer,
    ShortSerializer,
)
from barnabas.serialization.protobuf import ProtobufDeserializer, ProtobufSerializer
from barnabas.serialization.strings import (
    StringDeserializer,
    StringSerializer,
    UUIDDeserializer,
    UUIDSerializer,
)

__all__ = [
    "AvroDeserializer",
    "AvroSerializer",
    "BooleanDeserializer",
    "BooleanSerializer",
    "ByteArrayDeserializer",
    "ByteArraySerializer",
    "ByteBufferDeserializer",
    "ByteBufferSerializer",
    "BytesDeserializer",
    "BytesSerializer",
    "Deserializer",
    "DoubleDeserializer",
    "DoubleSerializer",
    "FloatDeserializer",
    "FloatSerializer",
    "IntegerDeserializer",
    "IntegerSerializer",
    "JsonDeserializer",
    "JsonSerializer",
    "ListDeserializer",
    "ListSerializer",
    "LongDeserializer",
    "LongSerializer",
    "ProtobufDeserializer",
    "ProtobufSerializer",
    "SerializationError",
    "Serializer",
    "ShortDeserializer",
    "ShortSerializer",
    "StringDeserializer",
    "StringSerializer",
    "UUIDDeserializer",
    "UUIDSerializer",
    "VoidDeserializer",
    "VoidSerializer",
]

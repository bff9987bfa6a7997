"""Avro and Protocol Buffers, bare and in the frame that clients of schema registries write."""

from __future__ import annotations

import json
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from barnabas.errors import ConfigError, SerializationError
from barnabas.serialization import (
    AvroDeserializer,
    AvroSerializer,
    ProtobufDeserializer,
    ProtobufSerializer,
)
from barnabas.serialization.framing import message_indexes, read_indexes

ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "what", "type": "string"}],
}
WIDER = {
    **ORDER,
    "fields": [*ORDER["fields"], {"name": "paid", "type": "boolean", "default": False}],
}
TEA = {"id": 3, "what": "tea"}
BARE = b"\x06\x06tea"  # zigzag of 3, and a text of 3 bytes


def test_bare_avro() -> None:
    for schema in (ORDER, json.dumps(ORDER)):
        assert AvroSerializer(schema).serialize("t", None, TEA) == BARE
        assert AvroDeserializer(schema).deserialize("t", None, BARE) == TEA
    assert AvroSerializer("string").serialize("t", None, "a") == b"\x02a"
    assert AvroSerializer(ORDER).serialize("t", None, None) is None
    assert AvroDeserializer(ORDER).deserialize("t", None, None) is None


def test_avro_with_a_schema_id() -> None:
    """A 0, four bytes of the id, the Avro."""
    framed = AvroSerializer(ORDER, schema_id=258).serialize("t", None, TEA)
    assert framed == b"\x00\x00\x00\x01\x02" + BARE
    asked: list[int] = []

    def registry(schema_id: int) -> str:
        asked.append(schema_id)
        return json.dumps(ORDER)

    reader = AvroDeserializer(schemas=registry)
    assert [reader.deserialize("t", None, framed) for _ in range(3)] == [TEA] * 3
    assert asked == [258], "a schema is asked for once"
    later = AvroDeserializer(WIDER, schemas={258: ORDER})
    assert later.deserialize("t", None, framed) == {**TEA, "paid": False}


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "0 bytes: a value with a schema id has at least 5"),
        (b"\x01\0\0\0\x07" + BARE, "first byte 1"),
        (b"\0\0\0\0\x08" + BARE, "no schema with id 8"),
        (b"\0\0\0\0\x07" + BARE + b"more", "4 of 9 bytes of Avro are left over"),
        (b"\0\0\0\0\x07" + BARE[:-1], "not a value of the Avro schema"),
    ],
)
def test_framed_avro_that_cannot_be_read(data: bytes, reason: str) -> None:
    with pytest.raises(SerializationError, match=reason):
        AvroDeserializer(schemas={7: ORDER}).deserialize("t", None, data)


def test_avro_that_cannot_be_written() -> None:
    with pytest.raises(SerializationError, match="not a value of the Avro schema"):
        AvroSerializer(ORDER).serialize("t", None, {"id": "three"})
    for schema in ("{", '{"type": "nonsense"}', {"type": "record"}):
        with pytest.raises(ConfigError, match="not an Avro schema"):
            AvroSerializer(schema)
    with pytest.raises(ValueError, match="schema_id=-1"):
        AvroSerializer(ORDER, schema_id=-1)
    with pytest.raises(ValueError, match="needs schema or schemas"):
        AvroDeserializer()


def messages() -> dict[str, Any]:
    """Two messages of one file, the second with one inside."""

    def message(name: str, *nested: DescriptorProto) -> DescriptorProto:
        field = FieldDescriptorProto(
            name="id",
            number=1,
            type=FieldDescriptorProto.TYPE_INT64,
            label=FieldDescriptorProto.LABEL_OPTIONAL,
        )
        return DescriptorProto(name=name, field=[field], nested_type=nested)

    file = FileDescriptorProto(
        name="orders.proto",
        package="shop",
        syntax="proto3",
        message_type=[message("Order"), message("Parcel", message("Stamp"))],
    )
    pool = DescriptorPool()
    pool.Add(file)
    return {
        name: GetMessageClass(pool.FindMessageTypeByName(f"shop.{name}"))
        for name in ("Order", "Parcel", "Parcel.Stamp")
    }


@pytest.mark.parametrize(
    ("name", "indexes"), [("Order", "00"), ("Parcel", "0202"), ("Parcel.Stamp", "040200")]
)
def test_protobuf(name: str, indexes: str) -> None:
    """Bare, or after a 0, the id and the message's path in its file."""
    kind = messages()[name]
    value = kind(id=300)
    payload = b"\x08\xac\x02"
    assert ProtobufSerializer(kind).serialize("t", None, value) == payload
    assert ProtobufDeserializer(kind).deserialize("t", None, payload) == value
    framed = ProtobufSerializer(kind, schema_id=7).serialize("t", None, value)
    assert framed == b"\0\0\0\0\x07" + bytes.fromhex(indexes) + payload
    assert ProtobufDeserializer(kind, framed=True).deserialize("t", None, framed) == value
    assert ProtobufSerializer(kind).serialize("t", None, None) is None
    assert ProtobufDeserializer(kind, framed=True).deserialize("t", None, None) is None


def test_protobuf_that_cannot_be_turned() -> None:
    kinds = messages()
    with pytest.raises(SerializationError, match=r"got Parcel: must be shop\.Order"):
        ProtobufSerializer(kinds["Order"]).serialize("t", None, kinds["Parcel"]())
    parcel = ProtobufSerializer(kinds["Parcel"], schema_id=7).serialize(
        "t", None, kinds["Parcel"]()
    )
    reader = ProtobufDeserializer(kinds["Order"], framed=True)
    with pytest.raises(
        SerializationError, match=r"message \[1\] of its schema: must be shop\.Order"
    ):
        reader.deserialize("t", None, parcel)
    for broken in (b"\0\0\0\0\x07", b"\0\0\0\0\x07\x02", b"\0\0\0\0\x07\xfe\xff\xff\xff\x0f"):
        with pytest.raises(SerializationError, match="path"):
            reader.deserialize("t", None, broken)
    with pytest.raises(SerializationError, match=r"not a shop\.Order"):
        ProtobufDeserializer(kinds["Order"]).deserialize("t", None, b"\x08")
    with pytest.raises(TypeError, match="protoc"):
        ProtobufSerializer(dict)


@pytest.mark.parametrize(
    ("path", "written"),
    [([0], "00"), ([1], "0202"), ([0, 1], "040002"), ([0, 0], "040000"), ([100], "02c801")],
)
def test_paths_of_messages(path: list[int], written: str) -> None:
    assert message_indexes(path).hex() == written
    assert read_indexes(bytes.fromhex(written) + b"rest") == (path, b"rest")

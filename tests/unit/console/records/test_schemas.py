"""Schemas that users give the console."""

from __future__ import annotations

import base64

import pytest

from barnabas.console.records.decoding import Decoder
from barnabas.console.records.schemas import (
    SCHEMAS_MAX,
    SchemaError,
    TopicSchemas,
    schema_of,
)


def test_protobuf_with_its_descriptors() -> None:
    pb2 = pytest.importorskip("google.protobuf.descriptor_pb2")
    file = pb2.FileDescriptorProto(name="o.proto", package="shop", syntax="proto3")
    message = file.message_type.add(name="Order")
    message.field.add(name="id", number=1, type=3, label=1)
    message.field.add(name="name", number=2, type=9, label=1)
    text = base64.b64encode(pb2.FileDescriptorSet(file=[file]).SerializeToString()).decode()
    schemas = TopicSchemas()
    schemas.add(schema_of(text), 3, "value")
    data = b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f\x12\x02hi"
    found = Decoder("t", "value", "auto", schemas)(b"\0\0\0\0\x03\0" + data)
    # A 64-bit number is a string there, as the JSON of Protobuf has it.
    assert found.document == {"id": str(2**63 - 1), "name": "hi"}
    assert "shop.Order" in found.reason


@pytest.mark.parametrize("text", ["", "<script>", "{", "AAAA", "____"])
def test_wrong_schemas_are_rejected(text: str) -> None:
    with pytest.raises(SchemaError):
        schema_of(text)


def test_the_oldest_schema_makes_room() -> None:
    schemas = TopicSchemas()
    for number in range(SCHEMAS_MAX + 1):
        schemas.add(schema_of("string"), number, "value")
    assert schemas.by_id(0) is None
    assert schemas.by_id(SCHEMAS_MAX) is not None
    with pytest.raises(SchemaError):
        schemas.add(schema_of("string"), 2**32, "value")


def test_schemas_without_an_id_are_for_one_side() -> None:
    schemas = TopicSchemas()
    assert not schemas
    schemas.add(schema_of('"string"'), None, "key")
    assert schemas.bare("value") is None
    assert [number for number, _ in schemas] == ["key without a frame"]
    assert Decoder("t", "key", "auto", schemas)(b"\x06abc").document == "abc"

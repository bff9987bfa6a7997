"""Keys and values decoded: the right choice, and no bytes that raise, hang or grow."""

from __future__ import annotations

import json
import struct
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.console.records.avro_document import AvroError, AvroSchema
from barnabas.console.records.binary_json import (
    NotBinaryJsonError,
    read_cbor,
    read_message_pack,
)
from barnabas.console.records.decoding import DECODERS, Decoder
from barnabas.console.records.internal_topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from barnabas.console.records.json_text import NotJsonError, indent_json, parse_json
from barnabas.console.records.raw_protobuf import NotProtobufError, read_message
from barnabas.console.records.schemas import TopicSchemas, schema_of
from barnabas.groups import records as groups

ORDER = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}'


def auto(data: bytes | None) -> tuple[str, str | None]:
    found = Decoder("orders", "value")(data)
    assert found.reason
    return found.kind, found.text


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (None, "null"),
        (b"", "empty"),
        (b'{"a": 1}', "json"),
        (b"17", "json"),
        (b"NaN", "text"),
        (b"hello\nworld", "text"),
        ("grüße".encode(), "text"),
        ((5).to_bytes(8, "big"), "int"),
        ((-5).to_bytes(4, "big", signed=True), "int"),
        (b"\x81\xa1a\x01", "msgpack"),
        (b"\x08\x96\x01\x12\x02hi", "protobuf"),
        (b"\0\0\0\0\x07\x00\x08\x96\x01", "protobuf"),
        (b"\xff\xfe\xfd", "hex"),
        (b"a\0" * 100, "hex"),
    ],
)
def test_chooses(data: bytes | None, kind: str) -> None:
    assert auto(data)[0] == kind


@pytest.mark.parametrize(
    ("how", "data", "text"),
    [
        ("int", b"\xff\xff", "-1"),
        ("uint", b"\xff\xff", "65535"),
        ("int", (2**127 - 1).to_bytes(16, "big"), str(2**127 - 1)),
        ("float", struct.pack(">d", 0.1), "0.1"),
        ("uuid", uuid.UUID(int=7).bytes, str(uuid.UUID(int=7))),
        ("hex", b"\xca\xfe", "cafe"),
        ("base64", b"\xca\xfe", "yv4="),
        ("cbor", b"\xbf\x61a\x9f\x01\x20\xff\xff", '{\n  "a": [\n    1,\n    -1\n  ]\n}'),
        ("text", b"\xff", "\ufffd"),
    ],
)
def test_decodes_as_chosen(how: str, data: bytes, text: str) -> None:
    found = Decoder("orders", "value", how)(data)
    assert (found.kind, found.text) == (how, text)


@pytest.mark.parametrize("how", ["json", "uuid", "float", "msgpack", "cbor", "avro", "internal"])
def test_what_does_not_fit_is_shown_as_bytes_with_the_reason(how: str) -> None:
    found = Decoder("orders", "value", how)(b"\x01\x02\x03")
    assert (found.kind, found.text) == ("hex", "010203")
    assert found.reason.startswith("not ")


SCHEMAS = TopicSchemas()
SCHEMAS.add(schema_of(ORDER), 7, "value")
SCHEMAS.add(schema_of('{"type": "map", "values": {"type": "array", "items": "null"}}'), 8, "value")


@given(
    st.sampled_from(sorted(DECODERS)),
    st.sampled_from(["orders", OFFSETS_TOPIC, TRANSACTIONS_TOPIC]),
    st.sampled_from(["key", "value"]),
    st.one_of(
        st.binary(max_size=200),
        st.binary(max_size=60).map(lambda data: b"\0\0\0\0\x07" + data),
        st.binary(max_size=60).map(lambda data: b"\0\0\0\0\x08" + data),
        st.binary(max_size=60).map(lambda data: b"\0\1" + data),
    ),
    st.one_of(st.none(), st.binary(max_size=40)),
)
def test_no_bytes_raise(how: str, topic: str, side: str, data: bytes, key: bytes | None) -> None:
    found = Decoder(topic, side, how, SCHEMAS)(data, key)
    assert found.text is not None
    assert len(found.shown(64).encode(errors="surrogatepass")) <= 64


@pytest.mark.parametrize(
    "data",
    [
        b"[" * 1_000_000,
        b'{"a":' * 200_000,
        b"1" * 1_000_000,
        b"1e" + b"9" * 1_000_000,
        b"\x91" * 1_000_000,
        b"\xdd\xff\xff\xff\xff",
        b"\x12\x80\x80\x80\x80\x80\x80\x80\x80\x7f",
        b"\x0a\x02" * 400_000,
        b"\x9f" * 1_000_000,
        b"x" * 5_000_000,
        b"\xff" * 5_000_000,
    ],
    ids=range(11),
)
@pytest.mark.parametrize("how", ["auto", "json", "msgpack", "cbor", "protobuf"])
def test_bombs_are_bounded(how: str, data: bytes) -> None:
    found = Decoder("orders", "value", how)(data)
    assert len(found.shown(65_536)) <= 65_536


def test_framed_avro_shows_its_schema_id() -> None:
    found = Decoder("orders", "value", "auto", SCHEMAS)(b"\0\0\0\0\x07\x06")
    assert (found.kind, found.document, found.schema_id) == ("avro", {"id": 3}, 7)
    found = Decoder("orders", "value", "auto", SCHEMAS)(b"\0\0\0\0\x07")
    assert (found.kind, found.schema_id) == ("hex", 7)
    assert "does not fit" in found.reason
    found = Decoder("orders", "value")(b"\0\0\0\0\x07\x06\xff\xff\xff\xff\xff")
    assert (found.kind, found.schema_id) == ("hex", 7)


def test_avro_types() -> None:
    schema = AvroSchema(
        json.dumps(
            {
                "type": "record",
                "name": "All",
                "namespace": "n",
                "fields": [
                    {"name": "big", "type": "long"},
                    {"name": "maybe", "type": ["null", "string"]},
                    {"name": "price", "type": {
                        "type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
                    {"name": "day", "type": {"type": "int", "logicalType": "date"}},
                    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
                    {"name": "kind", "type": {"type": "enum", "name": "K", "symbols": ["a", "b"]}},
                    {"name": "next", "type": ["null", "All"]},
                ],
            }
        )
    )  # fmt: skip
    fastavro = pytest.importorskip("fastavro")
    import io
    from datetime import UTC, date, datetime
    from decimal import Decimal

    target = io.BytesIO()
    value = {
        "big": 2**63 - 1, "maybe": "ü", "price": Decimal("-12.50"), "day": date(2026, 11, 18),
        "at": datetime(2026, 11, 18, 12, tzinfo=UTC), "kind": "b", "next": None,
    }  # fmt: skip
    fastavro.schemaless_writer(target, fastavro.parse_schema(json.loads(schema.text)), value)
    assert schema.read(target.getvalue()) == {
        "big": 2**63 - 1, "maybe": "ü", "price": Decimal("-12.50"), "day": "2026-11-18",
        "at": "2026-11-18T12:00:00.000+00:00", "kind": "b", "next": None,
    }  # fmt: skip


def test_avro_bombs_are_rejected() -> None:
    for schema, data in [
        ('{"type": "array", "items": "null"}', b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f"),
        ('{"type": "record", "name": "A", "fields": [{"name": "a", "type": "A"}]}', b""),
        ('{"type": "record", "name": "A", "fields": [{"name": "a", "type": ["null", "A"]}]}',
         b"\x02" * 100_000),
    ]:  # fmt: skip
        with pytest.raises(AvroError):
            AvroSchema(schema).read(data)
    with pytest.raises(AvroError):
        AvroSchema('{"type":' * 100_000)


@given(st.binary(max_size=100))
def test_readers_raise_only_their_own_errors(data: bytes) -> None:
    for read, error in [
        (read_message, NotProtobufError),
        (read_message_pack, NotBinaryJsonError),
        (read_cbor, NotBinaryJsonError),
        (AvroSchema(ORDER).read, AvroError),
        (parse_json, NotJsonError),
    ]:
        try:
            read(data)
        except error:
            continue


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text()),
    lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.text(), inner)),
    max_leaves=20,
)


@given(JSON, st.booleans())
def test_indented_json_is_the_same_document(document: object, ascii_only: bool) -> None:
    text = json.dumps(document, ensure_ascii=ascii_only, allow_nan=False)
    indented = indent_json(text)
    assert json.loads(indented) == json.loads(text)
    assert json.loads(json.dumps(json.loads(indented))) == json.loads(text)


def test_indented_json_keeps_every_token() -> None:
    text = '{"a":1.50,"a":[],"b":{},"c":[1e5,"x,\\u00e9:{}"]}'
    expected = (
        '{\n  "a": 1.50,\n  "a": [],\n  "b": {},\n  "c": [\n    1e5,\n    "x,\\u00e9:{}"\n  ]\n}'
    )
    assert indent_json(text) == expected


def test_protobuf_with_its_descriptors() -> None:
    pb2 = pytest.importorskip("google.protobuf.descriptor_pb2")
    import base64

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


def test_internal_records() -> None:
    key = groups.OffsetKey(group="billing", topic="orders", partition=3)
    record = groups.state_record(
        key, groups.OffsetValue(offset=2**53 + 1, metadata="m", commit_timestamp=5)
    )
    value = Decoder(OFFSETS_TOPIC, "value")(record.value, record.key)
    assert value.document["offset"] == 2**53 + 1
    assert Decoder(OFFSETS_TOPIC, "key")(record.key).document["group"] == "billing"
    topics = groups.SubscribedTopic(topic_id=b"\1" * 16, topic_name="t", num_partitions=1)
    record = groups.state_record(
        groups.SubscribedTopicsKey(group="g"), groups.SubscribedTopicsValue(topics=[topics])
    )
    value = Decoder(OFFSETS_TOPIC, "value")(record.value, record.key)
    assert value.document["topics"][0]["topic_id"] == "AQEBAQEBAQEBAQEBAQEBAQ"

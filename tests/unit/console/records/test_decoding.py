"""Keys and values decoded: the right choice, and no bytes that raise, hang or grow."""

from __future__ import annotations

import struct
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.console.records.decoding import DECODERS, Decoder
from barnabas.console.records.internal_topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from barnabas.console.records.schemas import TopicSchemas, schema_of

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

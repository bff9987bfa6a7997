"""Strings, numbers, bytes, UUIDs and lists in Kafka's bytes, and what is refused.

`tests/interop/test_serialization.py` compares the same with Kafka's own classes.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas import serialization
from barnabas.errors import ConfigError, KafkaError, SerializationError
from barnabas.serialization import (
    BooleanDeserializer,
    BooleanSerializer,
    ByteArraySerializer,
    ByteBufferDeserializer,
    ByteBufferSerializer,
    BytesDeserializer,
    Deserializer,
    DoubleDeserializer,
    DoubleSerializer,
    FloatDeserializer,
    FloatSerializer,
    IntegerDeserializer,
    IntegerSerializer,
    JsonDeserializer,
    JsonSerializer,
    ListDeserializer,
    ListSerializer,
    LongDeserializer,
    LongSerializer,
    Serializer,
    ShortDeserializer,
    ShortSerializer,
    StringDeserializer,
    StringSerializer,
    UUIDDeserializer,
    UUIDSerializer,
    VoidDeserializer,
    VoidSerializer,
)

ID = UUID("7ba7b810-9dad-11d1-80b4-00c04fd430c8")

WRITTEN: list[tuple[Serializer, Any, str]] = [
    (StringSerializer(), "aé€", "61c3a9e282ac"),
    (StringSerializer("UTF-16"), "a€", "feff006120ac"),
    (StringSerializer("UTF-16"), "", ""),
    (StringSerializer("UTF-32"), "a", "00000061"),
    (StringSerializer("ISO-8859-1"), "é€", "e93f"),
    (ShortSerializer(), -2, "fffe"),
    (IntegerSerializer(), 258, "00000102"),
    (LongSerializer(), -1, "ffffffffffffffff"),
    (FloatSerializer(), 1.5, "3fc00000"),
    (FloatSerializer(), 2, "40000000"),
    (DoubleSerializer(), 0.1, "3fb999999999999a"),
    (BooleanSerializer(), True, "01"),
    (UUIDSerializer(), ID, str(ID).encode().hex()),
    (ByteArraySerializer(), bytearray(b"\x01"), "01"),
    (ByteBufferSerializer(), memoryview(b"abc")[1:], "6263"),
    (JsonSerializer(), {"a": [1, None]}, b'{"a": [1, null]}'.hex()),
    (ListSerializer(ShortSerializer()), [1, None], "000000000100000001000000020001"),
    (ListSerializer(StringSerializer()), ["a", None], "01000000020000000161ffffffff"),
]


@pytest.mark.parametrize(("serializer", "value", "expected"), WRITTEN)
def test_values_have_kafkas_bytes(serializer: Serializer, value: Any, expected: str) -> None:
    assert bytes(serializer.serialize("t", None, value)).hex() == expected


PAIRS: list[tuple[Serializer, Deserializer, st.SearchStrategy[Any]]] = [
    (StringSerializer(), StringDeserializer(), st.text()),
    (StringSerializer("UTF-16"), StringDeserializer("UTF-16"), st.text()),
    (StringSerializer("UTF-32"), StringDeserializer("UTF-32"), st.text()),
    (ShortSerializer(), ShortDeserializer(), st.integers(-(1 << 15), (1 << 15) - 1)),
    (IntegerSerializer(), IntegerDeserializer(), st.integers(-(1 << 31), (1 << 31) - 1)),
    (LongSerializer(), LongDeserializer(), st.integers(-(1 << 63), (1 << 63) - 1)),
    (FloatSerializer(), FloatDeserializer(), st.floats(width=32, allow_nan=False)),
    (DoubleSerializer(), DoubleDeserializer(), st.floats(allow_nan=False)),
    (BooleanSerializer(), BooleanDeserializer(), st.booleans()),
    (UUIDSerializer(), UUIDDeserializer(), st.uuids()),
    (ByteArraySerializer(), BytesDeserializer(), st.binary()),
    (JsonSerializer(), JsonDeserializer(), st.dictionaries(st.text(), st.integers())),
    (
        ListSerializer(LongSerializer()),
        ListDeserializer(LongDeserializer()),
        st.lists(st.none() | st.integers(-5, 5)),
    ),
    (
        ListSerializer(StringSerializer()),
        ListDeserializer(StringDeserializer()),
        st.lists(st.none() | st.text()),
    ),
]


@pytest.mark.parametrize(("serializer", "deserializer", "values"), PAIRS)
def test_what_is_written_is_read(
    serializer: Serializer, deserializer: Deserializer, values: st.SearchStrategy[Any]
) -> None:
    @given(values | st.none())
    def there_and_back(value: Any) -> None:
        # The replacement of a lone surrogate is not what it replaces.
        if isinstance(value, str):
            value = value.encode("utf-8", "replace").decode()
        assert deserializer.deserialize("t", None, serializer.serialize("t", None, value)) == value

    there_and_back()


@pytest.mark.parametrize(
    ("serializer", "value", "reason"),
    [
        (StringSerializer(), 5, "StringSerializer got int: must be a str"),
        (StringSerializer(), b"bytes", "must be a str"),
        (ShortSerializer(), 40_000, "ShortSerializer got 40000: must be -32768 to 32767"),
        (IntegerSerializer(), 1 << 31, "must be -2147483648 to 2147483647"),
        (IntegerSerializer(), 1.0, "IntegerSerializer got float: must be a whole number"),
        (LongSerializer(), True, "LongSerializer got bool"),
        (FloatSerializer(), 1e300, "too large for 32 bits"),
        (DoubleSerializer(), "1", "DoubleSerializer got str: must be a number"),
        (BooleanSerializer(), 1, "must be True or False"),
        (UUIDSerializer(), str(ID), "must be a UUID"),
        (ByteArraySerializer(), "text", "must be bytes, bytearray or memoryview"),
        (VoidSerializer(), b"", "must be None"),
        (ListSerializer(IntegerSerializer()), 5, "must be a list"),
        (ListSerializer(IntegerSerializer()), ["a"], "IntegerSerializer got str"),
        (ListSerializer(), [1], "no serializer for its entries"),
    ],
)
def test_values_of_the_wrong_kind_are_refused(
    serializer: Serializer, value: Any, reason: str
) -> None:
    with pytest.raises(SerializationError, match=reason) as refused:
        serializer.serialize("t", None, value)
    assert isinstance(refused.value, KafkaError)


@pytest.mark.parametrize(
    ("deserializer", "data", "reason"),
    [
        (ShortDeserializer(), b"\0", "Size of data received by ShortDeserializer is not 2"),
        (IntegerDeserializer(), b"", "Size of data received by IntegerDeserializer is not 4"),
        (LongDeserializer(), b"\0" * 9, "Size of data received by LongDeserializer is not 8"),
        (FloatDeserializer(), b"\0", "Size of data received by Deserializer is not 4"),
        (DoubleDeserializer(), b"\0", "Size of data received by Deserializer is not 8"),
        (BooleanDeserializer(), b"\2", "Unexpected byte received by BooleanDeserializer: 2"),
        (UUIDDeserializer(), b"7ba7b810", "Error parsing data into UUID"),
        (UUIDDeserializer(), b"7ba7b8109dad11d180b400c04fd430c8", "Error parsing data into UUID"),
        (VoidDeserializer(), b"", "Data should be null for a VoidDeserializer"),
        (ListDeserializer(LongDeserializer()), b"", "prematurely"),
        (ListDeserializer(LongDeserializer()), b"\2", "Invalid serialization strategy flag"),
        (ListDeserializer(LongDeserializer()), b"\1\x7f\xff\xff\xff", "2147483647 entries in 5"),
        (ListDeserializer(LongDeserializer()), b"\1\0\0\0\1\0\0\0\x09abc", "prematurely"),
        (ListDeserializer(LongDeserializer()), b"\1\0\0\0\1\xff\xff\xff\xfe", "prematurely"),
        (ListDeserializer(StringDeserializer()), b"\0\0\0\0\0", "StringDeserializer"),
    ],
)
def test_bytes_of_the_wrong_shape_are_refused(
    deserializer: Deserializer, data: bytes, reason: str
) -> None:
    with pytest.raises(SerializationError, match=reason):
        deserializer.deserialize("t", None, data)


def test_texts_are_read_as_java_reads_them() -> None:
    """A byte order mark decides; without one, the first byte is the high one."""
    assert StringDeserializer("UTF-16").deserialize("t", None, b"\xff\xfea\0") == "a"
    assert StringDeserializer("UTF-16").deserialize("t", None, b"\0a") == "a"
    assert StringDeserializer().deserialize("t", None, b"a\xffb") == "a\ufffdb"
    assert UUIDDeserializer().deserialize("t", None, b"1-2-3-4-5") == UUID(
        "00000001-0002-0003-0004-000000000005"
    )
    assert isinstance(ByteBufferDeserializer().deserialize("t", None, b"a"), memoryview)


@pytest.mark.parametrize(
    ("configs", "is_key", "encoding"),
    [
        ({}, True, "UTF-8"),
        ({"serializer.encoding": "UTF-16"}, True, "UTF-16"),
        ({"serializer.encoding": "UTF-16", "key.serializer.encoding": "ASCII"}, True, "ASCII"),
        ({"serializer.encoding": "UTF-16", "key.serializer.encoding": "ASCII"}, False, "UTF-16"),
    ],
)
def test_the_encoding_is_an_option(configs: dict[str, str], is_key: bool, encoding: str) -> None:
    for kind in (StringSerializer, UUIDSerializer):
        made = kind()
        made.configure(configs, is_key)
        assert made.encoding == encoding
    for kind in (StringDeserializer, UUIDDeserializer):
        made = kind()
        renamed = {name.replace("serializer", "deserializer"): e for name, e in configs.items()}
        made.configure(renamed, is_key)
        assert made.encoding == encoding


@pytest.mark.parametrize("encoding", ["utf-77", "hex", "rot13"])
def test_an_unknown_encoding_is_refused(encoding: str) -> None:
    with pytest.raises(ConfigError, match=encoding):
        StringSerializer(encoding)


def test_all_of_kafkas_are_there() -> None:
    """Each of Kafka's classes for keys and values, under its name."""
    kinds = "Boolean ByteArray ByteBuffer Bytes Double Float Integer List Long Short String UUID"
    for kind in [*kinds.split(), "Void", "Json", "Avro", "Protobuf"]:
        for name in (f"{kind}Serializer", f"{kind}Deserializer"):
            assert name in serialization.__all__
    for name in serialization.__all__:
        assert getattr(serialization, name) is not None

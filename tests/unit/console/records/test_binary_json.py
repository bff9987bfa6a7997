"""MessagePack and CBOR."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.console.records.binary_json import (
    NotBinaryJsonError,
    read_cbor,
    read_message_pack,
)


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"\x07", 7),
        (b"\xff", -1),
        (b"\xcf" + b"\xff" * 8, 2**64 - 1),
        (b"\xd1\xff\xfe", -2),
        (b"\xa2hi", "hi"),
        (b"\xd9\x02hi", "hi"),
        (b"\xc4\x01\xff", b"\xff"),
        (b"\x93\xc0\xc2\xc3", [None, False, True]),
        (b"\x82\xa1a\x01\x02\x03", {"a": 1, "2": 3}),
        (b"\xcb\x3f\xe0" + b"\0" * 6, 0.5),
        (b"\xd4\x05\x01", {"extension": 5, "data": b"\x01"}),
        (b"\xdc\0\x01\x05", [5]),
        (b"\xde\0\x01\xa1a\x05", {"a": 5}),
    ],
)
def test_message_pack(data: bytes, found: object) -> None:
    assert read_message_pack(data) == found


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"\x18\x64", 100),
        (b"\x38\x63", -100),
        (b"\x1b" + b"\xff" * 8, 2**64 - 1),
        (b"\x62hi", "hi"),
        (b"\x42\xff\0", b"\xff\0"),
        (b"\xa3\x01\x02\x61a\xf6\x61b\xf5", {"1": 2, "a": None, "b": True}),
        (b"\x7f\x61a\x61b\xff", "ab"),
        (b"\xf9\x38\0", 0.5),
        (b"\xc1\x01", {"tag": 1, "data": 1}),
    ],
)
def test_cbor(data: bytes, found: object) -> None:
    assert read_cbor(data) == found


@pytest.mark.parametrize("read", [read_message_pack, read_cbor])
@given(data=st.binary(max_size=100))
def test_other_bytes_raise_only_their_own_error(read, data: bytes) -> None:
    try:
        found = read(data)
    except NotBinaryJsonError:
        return
    assert isinstance(found, object)


@pytest.mark.parametrize(
    ("read", "data"),
    [
        (read_message_pack, b"\xc1"),
        (read_message_pack, b"\xdd\xff\xff\xff\xff"),
        (read_message_pack, b"\x91" * 1000),
        (read_message_pack, b"\x01\x01"),
        (read_cbor, b"\x9b" + b"\xff" * 8),
        (read_cbor, b"\x81" * 1000),
        (read_cbor, b"\x1c"),
        (read_cbor, b"\x7f\x01\xff"),
        (read_cbor, b"\x1f"),
    ],
)
def test_bombs_and_damage_are_rejected(read, data: bytes) -> None:
    with pytest.raises(NotBinaryJsonError):
        read(data)

"""Protocol Buffers without their schema."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.console.records.raw_protobuf import NotProtobufError, read_message


def test_fields_by_their_numbers() -> None:
    data = (
        b"\x08\x96\x01"  # 1: 150
        b"\x12\x02hi"  # 2: a string
        b"\x12\x05there"  # 2 again
        b"\x1a\x04\x08\x01\x10\x02"  # 3: a message
        b"\x22\x02\xff\xff"  # 4: bytes
        b"\x2d\1\0\0\0"  # 5: four bytes
        b"\x31\1\0\0\0\0\0\0\x80"  # 6: eight bytes
    )
    assert read_message(data) == {
        "1": 150,
        "2": ["hi", "there"],
        "3": {"1": 1, "2": 2},
        "4": b"\xff\xff",
        "5": 1,
        "6": 2**63 + 1,
    }


@pytest.mark.parametrize(
    "data", [b"\x00", b"\x08", b"\x12\x05ab", b"\x0b", b"\x2d\0", b"\x08" + b"\xff" * 11]
)
def test_what_does_not_fit_is_no_message(data: bytes) -> None:
    with pytest.raises(NotProtobufError):
        read_message(data)


@given(st.binary(max_size=200))
def test_other_bytes_raise_only_its_own_error(data: bytes) -> None:
    try:
        found = read_message(data)
    except NotProtobufError:
        return
    assert isinstance(found, dict)

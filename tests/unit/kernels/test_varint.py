"""Variable-length numbers: known bytes, limits of the types, and damaged input."""

from __future__ import annotations

from types import ModuleType as Kernels

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.model.errors import CorruptRecordError

INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)


@pytest.mark.parametrize(
    ("number", "encoded"),
    [
        (0, "00"),
        (-1, "01"),
        (1, "02"),
        (63, "7e"),
        (64, "8001"),
        (-65, "8101"),
        (2**31 - 1, "feffffff0f"),
        (-(2**31), "ffffffff0f"),
    ],
)
def test_known_bytes(kernels: Kernels, number: int, encoded: str) -> None:
    data = bytes.fromhex(encoded)
    assert kernels.encode_varint(number) == data
    assert kernels.decode_varint(b"\xaa" + data, 1) == (number, 1 + len(data))
    assert kernels.encode_varlong(number) == data
    assert kernels.decode_varlong(data) == (number, len(data))


def test_unsigned_known_bytes(kernels: Kernels) -> None:
    assert kernels.encode_unsigned_varint(300) == b"\xac\x02"
    assert kernels.decode_unsigned_varint(b"\xac\x02\x00") == (300, 2)
    assert kernels.encode_unsigned_varint(2**32 - 1) == b"\xff\xff\xff\xff\x0f"
    assert kernels.decode_unsigned_varint(b"\xff\xff\xff\xff\x0f") == (2**32 - 1, 5)


@given(st.sampled_from(["varint", "varlong", "unsigned_varint"]), st.data())
def test_twins_write_and_read_the_same(
    twins: tuple[Kernels, Kernels], kind: str, data: st.DataObject
) -> None:
    numbers = {"varint": INT32, "varlong": INT64, "unsigned_varint": st.integers(0, 2**32 - 1)}
    number = data.draw(numbers[kind])
    encoded = {getattr(kernels, f"encode_{kind}")(number) for kernels in twins}
    assert len(encoded) == 1
    for kernels in twins:
        buffer = encoded.copy().pop()
        assert getattr(kernels, f"decode_{kind}")(buffer) == (number, len(buffer))


@pytest.mark.parametrize("name", ["varint", "varlong", "unsigned_varint"])
def test_numbers_too_wide_are_refused(kernels: Kernels, name: str) -> None:
    for number in (2**64, -(2**64)):
        with pytest.raises(OverflowError):
            getattr(kernels, f"encode_{name}")(number)


@pytest.mark.parametrize("name", ["varint", "varlong", "unsigned_varint"])
@pytest.mark.parametrize("data", [b"", b"\x80", b"\xff" * 4, b"\xff" * 11])
def test_cut_or_endless_numbers_are_corrupt(kernels: Kernels, name: str, data: bytes) -> None:
    with pytest.raises(CorruptRecordError, match="truncated or too long"):
        getattr(kernels, f"decode_{name}")(data)


@pytest.mark.parametrize("position", [-1, 3, 1000])
def test_a_position_outside_is_corrupt(kernels: Kernels, position: int) -> None:
    with pytest.raises(CorruptRecordError):
        kernels.decode_varint(b"\0\0\0", position)


@given(st.binary(max_size=12))
def test_twins_agree_on_any_bytes(twins: tuple[Kernels, Kernels], data: bytes) -> None:
    for name in ("decode_varint", "decode_varlong", "decode_unsigned_varint"):
        outcomes = []
        for kernels in twins:
            try:
                outcomes.append(getattr(kernels, name)(data))
            except CorruptRecordError as failure:
                outcomes.append(str(failure))
        assert outcomes[0] == outcomes[1]

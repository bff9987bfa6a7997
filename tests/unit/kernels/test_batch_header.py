"""The numbers of batch headers: one module has them, the compiled kernels the same."""

from __future__ import annotations

import re
import struct
from dataclasses import astuple, fields, replace
from pathlib import Path
from types import ModuleType as Kernels

import pytest

from barnabas.kernels import batch_header
from barnabas.kernels.batch_header import BatchHeader, Codec, offset_at, size_at

PXD = Path(batch_header.__file__).with_name("cython") / "batch_header.pxd"
POSITIONS = [
    "BASE_OFFSET_AT",
    "LENGTH_AT",
    "LEADER_EPOCH_AT",
    "MAGIC_AT",
    "CRC_AT",
    "ATTRIBUTES_AT",
    "LAST_OFFSET_DELTA_AT",
    "BASE_TIMESTAMP_AT",
    "MAX_TIMESTAMP_AT",
    "PRODUCER_ID_AT",
    "PRODUCER_EPOCH_AT",
    "BASE_SEQUENCE_AT",
    "COUNT_AT",
]
HEADER = BatchHeader(
    base_offset=2**40 + 1,
    size=92,
    leader_epoch=3,
    magic=2,
    crc=2**32 - 5,
    attributes=0x10,
    last_offset_delta=7,
    base_timestamp=2**41,
    max_timestamp=2**41 + 9,
    producer_id=2**50,
    producer_epoch=11,
    base_sequence=2**31 - 4,
    count=8,
)
ENCODED = struct.pack(batch_header.HEADER_FORMAT, HEADER.base_offset, 80, *astuple(HEADER)[2:])


def test_the_compiled_kernels_have_the_same_numbers() -> None:
    declared = dict(re.findall(r"^    (\w+) = (\w+)$", PXD.read_text(), re.MULTILINE))
    assert set(POSITIONS) < set(declared)
    for name, number in declared.items():
        assert int(number, 0) == getattr(batch_header, name), name


def test_positions_are_those_of_the_fields_in_their_order() -> None:
    found = [getattr(batch_header, name) for name in POSITIONS]
    codes = batch_header.HEADER_FORMAT[1:]
    assert found == [struct.calcsize(">" + codes[:index]) for index in range(len(codes))]
    assert struct.calcsize(batch_header.HEADER_FORMAT) == batch_header.HEADER_SIZE
    halves = batch_header.UNSEALED_FORMAT[1:] + batch_header.SEALED_FORMAT[1:]
    assert halves == codes
    assert struct.calcsize(batch_header.MESSAGE_FORMAT) == batch_header.MESSAGE_TIMESTAMP_AT


def test_every_field_is_read_from_its_position(kernels: Kernels) -> None:
    header = kernels.scan_batch(ENCODED)
    assert header == HEADER
    assert type(header) is BatchHeader
    assert [field.name for field in fields(header)] == [field.name for field in fields(HEADER)]
    assert (offset_at(b"x" + ENCODED, 1), size_at(b"x" + ENCODED, 1)) == (2**40 + 1, 92)


def test_what_follows_from_the_fields() -> None:
    assert (HEADER.last_offset, HEADER.next_offset) == (2**40 + 8, 2**40 + 9)
    assert HEADER.last_sequence == 3
    assert (HEADER.is_transactional, HEADER.is_control, HEADER.is_message) == (True, False, False)
    assert HEADER.codec is Codec.NONE
    assert HEADER.starting_at(5).last_offset == HEADER.last_offset
    assert HEADER.starting_at(2**60).base_offset == HEADER.last_offset


def test_a_header_is_read_by_name_and_compared_by_value(kernels: Kernels) -> None:
    header = kernels.scan_batch(ENCODED)
    assert hash(header) == hash(HEADER)
    assert replace(header, size=5) != header
    with pytest.raises(AttributeError):
        header.sise = 5
    with pytest.raises(TypeError):
        header[1]

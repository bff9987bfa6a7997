"""Records as Arrow's buffers: offsets, validity bits and headers, seen through struct."""

from __future__ import annotations

import struct
from types import ModuleType as Kernels

import pytest

from barnabas.kernels.batch_header import HEADER_SIZE
from barnabas.kernels.contract import Columns
from barnabas.model.errors import CorruptRecordError

T0 = 1_700_000_000_000


def numbers(code: str, data: bytes) -> list[int]:
    return [value for (value,) in struct.iter_unpack("=" + code, data)]


def columns(kernels: Kernels, rows: list[tuple[object, ...]], **options: int) -> Columns:
    builder = kernels.BatchBuilder()
    builder.append_many(rows)
    batch = builder.finish()
    return kernels.records_to_columns(batch, HEADER_SIZE, len(batch), len(rows), 100, T0, **options)


def test_columns_have_arrows_layout(kernels: Kernels) -> None:
    found = columns(
        kernels,
        [
            (T0, b"a", b"1"),
            (T0 + 1, None, b"22", (("h", b"x"), ("n", None))),
            (T0 + 2, b"ccc", b""),
            (T0, b"", b"4", (("é", b""),)),
        ],
    )
    assert found.count == 4
    assert numbers("q", found.offsets) == [100, 101, 102, 103]
    assert numbers("q", found.timestamps) == [T0, T0 + 1, T0 + 2, T0]
    validity, positions, data = found.keys
    assert validity == b"\x0d"
    assert numbers("i", positions) == [0, 1, 1, 4, 4]
    assert data == b"accc"
    assert found.values[0] is None
    assert numbers("i", found.values[1]) == [0, 1, 3, 3, 4]
    assert numbers("i", found.header_offsets) == [0, 0, 2, 2, 3]
    assert found.header_keys[0] is None
    assert found.header_keys[2] == "hné".encode()
    assert found.header_values[0] == b"\x05"
    assert numbers("i", found.header_values[1]) == [0, 1, 1, 1]


def test_append_time_replaces_all_timestamps(kernels: Kernels) -> None:
    found = columns(kernels, [(T0, None, b"a"), (T0 + 5, None, b"b")], append_time=7)
    assert numbers("q", found.timestamps) == [7, 7]


def test_damage_is_the_readers_damage(kernels: Kernels) -> None:
    builder = kernels.BatchBuilder()
    builder.append_many([(T0, None, b"a")] * 3)
    batch = builder.finish()
    with pytest.raises(CorruptRecordError, match="record 2 of the batch: the record runs"):
        kernels.records_to_columns(batch, HEADER_SIZE, len(batch) - 1, 3, 0, T0)
    with pytest.raises(CorruptRecordError, match="left over"):
        kernels.records_to_columns(batch, HEADER_SIZE, len(batch), 2, 0, T0)
    with pytest.raises(CorruptRecordError, match="negative"):
        kernels.records_to_columns(batch, HEADER_SIZE, len(batch), -2, 0, T0)
    with pytest.raises(ValueError, match="of a buffer of"):
        kernels.records_to_columns(batch, HEADER_SIZE, len(batch) + 1, 2, 0, T0)

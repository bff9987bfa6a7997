"""Records as Arrow tables and back."""

from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
import pytest

from barnabas.kernels import Record, assign_offsets
from barnabas.model.errors import CorruptRecordError
from barnabas.records.arrow import from_table, schema, to_table
from barnabas.records.batch import iterate
from barnabas.records.builder import build_batch
from barnabas.records.compression import Codec
from barnabas.records.control import ControlType, build_control_batch

T0 = 1_700_000_000_000
ROWS = [
    (T0 + i, None if i % 3 == 0 else b"k%d" % i, None if i % 5 == 0 else b"v" * i)
    for i in range(40)
]
HEADED = [(T0, b"k", b"v", (("h", b"x"), ("n", None))), (T0 + 1, None, b"w"), (T0, b"", b"")]


def columns(data: bytes) -> list[tuple[object, ...]]:
    table = to_table(data)
    table.validate(full=True)
    times = table["timestamp"].cast(pa.int64()).to_pylist()
    return list(zip(times, table["key"].to_pylist(), table["value"].to_pylist(), strict=True))


@pytest.mark.parametrize("codec", list(Codec))
def test_a_table_has_what_iteration_gives(codec: Codec) -> None:
    second = bytearray(build_batch(ROWS[20:], codec))
    assign_offsets(second, 0, 20, 0)
    data = build_batch(ROWS[:20], codec) + bytes(second) + second[:70]
    assert columns(data) == ROWS
    table = to_table(data)
    assert table.schema == schema()
    assert table["offset"].to_pylist() == list(range(40))
    assert table["headers"].to_pylist() == [[]] * 40
    assert to_table(data, from_offset=33)["offset"].to_pylist() == list(range(33, 40))


def test_headers_are_a_list_of_pairs() -> None:
    table = to_table(build_batch(HEADED))
    table.validate(full=True)
    assert table["headers"].to_pylist() == [
        [{"key": "h", "value": b"x"}, {"key": "n", "value": None}],
        [],
        [],
    ]


def test_markers_are_left_out_and_append_time_counts() -> None:
    marker = build_control_batch(
        ControlType.COMMIT, producer_id=1, producer_epoch=0, coordinator_epoch=0, now_ms=T0
    )
    table = to_table(marker + build_batch(HEADED, append_time=T0 + 7))
    assert table["timestamp"].cast(pa.int64()).to_pylist() == [T0 + 7] * 3
    assert to_table(b"").num_rows == to_table(marker).num_rows == 0


def test_damage_is_found() -> None:
    batch = bytearray(build_batch(ROWS))
    batch[-1] ^= 1
    with pytest.raises(CorruptRecordError, match="CRC"):
        to_table(batch)
    with pytest.raises(CorruptRecordError):
        to_table(batch, check_crc=False)


@pytest.mark.parametrize("codec", list(Codec))
def test_a_table_comes_back_as_batches_of_bounded_size(codec: Codec) -> None:
    table = to_table(build_batch(ROWS)).drop_columns(["headers"])
    batches = list(from_table(table, codec=codec, size_max=300))
    assert len(batches) > 3
    found = [record for batch in batches for record in iterate(batch)]
    assert [(r.timestamp, r.key, r.value) for r in found] == ROWS
    if codec is Codec.NONE:
        assert max(map(len, batches)) <= 300


@pytest.mark.parametrize("size_max", [100, 1_000_000])
def test_headers_come_back(size_max: int) -> None:
    table = to_table(build_batch(HEADED * 4))
    found = [r for batch in from_table(table, size_max=size_max) for r in iterate(batch)]
    assert [(r.timestamp, r.key, r.value, r.headers) for r in found] == [
        (*row[:3], row[3] if len(row) > 3 else ()) for row in HEADED * 4
    ]


@pytest.mark.parametrize("start", [0, 1, 8, 11])
def test_slices_of_tables_are_taken_where_they_start(start: int) -> None:
    """Arrow slices share buffers and count validity in bits."""
    table = to_table(build_batch(ROWS)).drop_columns(["headers"]).slice(start, 17)
    (batch,) = from_table(table)
    assert [(r.timestamp, r.key, r.value) for r in iterate(batch)] == ROWS[start : start + 17]


def test_other_types_and_missing_columns() -> None:
    table = pa.table({"value": pa.array(["é", None], pa.large_string())})
    (batch,) = from_table(table, timestamp=5)
    assert list(iterate(batch)) == [Record(0, 5, None, "é".encode()), Record(1, 5, None, None)]
    micros = pa.array([T0 * 1000 + 999, None], pa.timestamp("us"))
    part = pa.record_batch({"value": pa.array([b"a", b"b"]), "timestamp": micros})
    (batch,) = from_table(part, timestamp=6)
    assert [r.timestamp for r in iterate(batch)] == [T0, 6]
    assert list(from_table(table.slice(0, 0))) == []


def test_pyarrow_is_imported_only_when_it_is_used() -> None:
    code = "import sys, barnabas.records.arrow; print('pyarrow' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"

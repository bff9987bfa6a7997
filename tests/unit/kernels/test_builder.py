"""The builder: limits, gaps, failures that change nothing, and what finish writes."""

from __future__ import annotations

from array import array
from types import ModuleType as Kernels

import pytest

from barnabas.kernels.batch_header import HEADER_SIZE, BatchHeader
from barnabas.model.errors import InvalidValueError

T0 = 1_700_000_000_000


def read(kernels: Kernels, batch: bytearray) -> list[tuple[object, ...]]:
    header = kernels.check_batch(batch)
    records = kernels.read_records(
        batch, HEADER_SIZE, len(batch), header.count, header.base_offset, header.base_timestamp
    )
    return [(r.offset, r.timestamp, r.key, r.value, r.headers) for r in records]


def test_records_count_up_and_the_size_is_exact(kernels: Kernels) -> None:
    builder = kernels.BatchBuilder()
    assert (builder.count, builder.size) == (0, HEADER_SIZE)
    assert builder.append(T0, b"k", b"v") == 0
    assert builder.append(T0 - 3, bytearray(b"kk"), memoryview(b"vv")) == 1
    assert builder.append(T0 + 9, None, None, [("h", b""), ("é", None)]) == 2
    assert (builder.count, builder.base_timestamp, builder.max_timestamp) == (3, T0, T0 + 9)
    size = builder.size
    batch = builder.finish(base_offset=10)
    assert len(batch) == size
    assert read(kernels, batch) == [
        (10, T0, b"k", b"v", ()),
        (11, T0 - 3, b"kk", b"vv", ()),
        (12, T0 + 9, None, None, (("h", b""), ("é", None))),
    ]


def test_the_limit_counts_every_byte_but_the_first_record_always_fits(kernels: Kernels) -> None:
    builder = kernels.BatchBuilder(1)
    assert builder.append(T0, None, b"x" * 5000) == 0
    size = builder.size
    assert builder.append(T0, None, b"") == -1
    assert (builder.count, builder.size) == (1, size)

    exact = kernels.BatchBuilder(size + 8)
    exact.append(T0, None, b"x" * 5000)
    assert exact.append(T0, None, b"ab") == -1  # 9 bytes
    assert exact.append(T0, None, b"a") == 1  # 8 bytes
    assert exact.size == size + 8


def test_append_many_says_how_many_fit(kernels: Kernels) -> None:
    builder = kernels.BatchBuilder(HEADER_SIZE + 3 * 8)
    rows = [(T0, None, b"a")] * 5
    assert builder.append_many(rows) == 3
    assert builder.append_many(rows, 3) == 0
    assert kernels.BatchBuilder().append_many(rows, 3) == 2
    assert kernels.BatchBuilder().append_many(rows, 9) == 0
    assert kernels.BatchBuilder().append_many([]) == 0
    with pytest.raises(TypeError):
        builder.append_many([(T0, None)])


def test_a_gap_is_kept_and_deltas_never_go_back(kernels: Kernels) -> None:
    builder = kernels.BatchBuilder()
    assert builder.append(T0, b"a", b"", (), 3) == 3
    with pytest.raises(InvalidValueError, match="offset delta 3 cannot come after 3"):
        builder.append(T0, b"b", b"", offset_delta=3)
    with pytest.raises(InvalidValueError):
        builder.append(T0, b"b", b"", offset_delta=2**31)
    assert builder.append(T0, b"b", b"") == 4
    batch = builder.finish(base_offset=100, last_offset_delta=9)
    assert [record[0] for record in read(kernels, batch)] == [103, 104]
    assert kernels.scan_batch(batch).last_offset_delta == 9


@pytest.mark.parametrize(
    "arguments",
    [
        (T0, "text", b""),
        (T0, b"", 5),
        (T0, b"", b"", [("h", "text")]),
        (T0, b"", b"", [("h", b"", b"")]),
        (T0, b"", b"", [("\ud800", b"")]),
        (T0, b"", b"", None),
        (2**63, b"", b""),
    ],
)
def test_an_append_that_fails_changes_nothing(
    kernels: Kernels, arguments: tuple[object, ...]
) -> None:
    builder = kernels.BatchBuilder()
    builder.append(T0, None, b"first")
    size = builder.size
    with pytest.raises((TypeError, ValueError, OverflowError)):
        builder.append(*arguments)  # type: ignore[arg-type]
    assert (builder.count, builder.size) == (1, size)
    assert builder.append(T0, None, b"second") == 1
    assert [record[3] for record in read(kernels, builder.finish())] == [b"first", b"second"]


def test_what_finish_stamps(kernels: Kernels) -> None:
    builder = kernels.BatchBuilder()
    builder.append(T0, None, b"v")
    batch = builder.finish(
        base_offset=7,
        leader_epoch=2,
        producer_id=4000,
        producer_epoch=1,
        base_sequence=12,
        attributes=0x30,
    )
    header = kernels.check_batch(batch)
    assert header == BatchHeader(
        base_offset=7,
        size=len(batch),
        leader_epoch=2,
        magic=2,
        crc=header.crc,
        attributes=0x30,
        last_offset_delta=0,
        base_timestamp=header.base_timestamp,
        max_timestamp=header.max_timestamp,
        producer_id=4000,
        producer_epoch=1,
        base_sequence=12,
        count=1,
    )


def test_compress_gets_the_records_and_gives_their_place_to_its_answer(kernels: Kernels) -> None:
    builder = kernels.BatchBuilder()
    builder.append(T0, None, b"v" * 100)
    seen: list[bytes] = []

    def compress(data: memoryview) -> bytes:
        seen.append(bytes(data))
        return b"packed"

    batch = builder.finish(codec=3, compress=compress, attributes=0x10)
    assert kernels.check_batch(batch).attributes == 0x13
    assert batch[HEADER_SIZE:] == b"packed"
    assert len(seen) == 1
    assert kernels.validate_records(seen[0], 0, len(seen[0]), 1, T0) == (T0, 0, ())


@pytest.mark.parametrize("size", [0, 1, 30, 500, 100_000])
@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_the_compressors_answer_may_be_the_only_reference_to_it(
    kernels: Kernels, size: int, kind: type
) -> None:
    builder = kernels.BatchBuilder()
    builder.append(T0, None, b"v" * 100)
    batch = builder.finish(codec=3, compress=lambda data: kind(bytearray([7]) * size))
    assert batch[HEADER_SIZE:] == b"\7" * size


def test_a_failing_compressor_leaves_the_builder_usable(kernels: Kernels) -> None:
    builder = kernels.BatchBuilder()
    builder.append(T0, None, b"v")

    def fail(data: memoryview) -> bytes:
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        builder.finish(codec=1, compress=fail)
    with pytest.raises(TypeError):
        builder.finish(codec=1, compress=lambda data: None)  # type: ignore[arg-type,return-value]
    builder.append(T0, None, b"w")
    assert len(read(kernels, builder.finish())) == 2


def test_a_builder_finishes_once_and_never_empty(kernels: Kernels) -> None:
    builder = kernels.BatchBuilder()
    with pytest.raises(InvalidValueError, match="without a record"):
        builder.finish()
    builder.append(T0, None, b"v")
    builder.finish()
    assert builder.size == 0
    with pytest.raises(InvalidValueError, match="finished"):
        builder.append(T0, None, b"v")
    with pytest.raises(InvalidValueError, match="finished"):
        builder.finish()


def test_compaction_may_keep_an_empty_batch(kernels: Kernels) -> None:
    batch = kernels.BatchBuilder().finish(base_offset=5, last_offset_delta=2)
    header = kernels.check_batch(batch)
    assert header.last_offset_delta == 2
    assert (header.base_timestamp, header.max_timestamp) == (-1, -1)
    assert read(kernels, batch) == []


def column(cells: list[bytes | None]) -> tuple[bytes, bytes, bytes]:
    validity = bytearray(8)
    offsets = array("i", [0])
    for index, cell in enumerate(cells):
        validity[index >> 3] |= (cell is not None) << (index & 7)
        offsets.append(offsets[-1] + len(cell or b""))
    return bytes(validity), bytes(offsets), b"".join(cell or b"" for cell in cells)


def test_columns_are_taken_as_rows(kernels: Kernels) -> None:
    keys = column([b"a", None, b"ccc", b""])
    values = column([None, b"2", b"33", b"444"])
    builder = kernels.BatchBuilder()
    times = bytes(array("q", [T0, T0 + 1, T0 + 2, T0 + 3]))
    assert builder.append_columns(times, keys, (None, *values[1:]), 1, 4) == 3
    assert builder.append_columns(None, None, values, 0, 1, T0) == 1
    assert read(kernels, builder.finish()) == [
        (0, T0 + 1, None, b"2", ()),
        (1, T0 + 2, b"ccc", b"33", ()),
        (2, T0 + 3, b"", b"444", ()),
        (3, T0, None, None, ()),
    ]
    bounded = kernels.BatchBuilder(HEADER_SIZE + 20)
    assert bounded.append_columns(times, None, None, 0, 4) == 2


@pytest.mark.parametrize(
    ("times", "offsets", "start", "stop"),
    [
        (b"\0" * 8, [0, 1, 2], 0, 2),  # too few timestamps
        (None, [0, 1, 2], 0, 3),
        (None, [0, 1, 2], -1, 1),
        (None, [0, 3], 0, 1),  # past the data
        (None, [2, 1], 0, 1),  # going back
        (None, [-1, 1], 0, 1),
    ],
)
def test_columns_that_point_outside_are_refused(
    kernels: Kernels, times: bytes | None, offsets: list[int], start: int, stop: int
) -> None:
    values = (None, bytes(array("i", offsets)), b"ab")
    with pytest.raises(InvalidValueError, match="points outside"):
        kernels.BatchBuilder().append_columns(times, None, values, start, stop)

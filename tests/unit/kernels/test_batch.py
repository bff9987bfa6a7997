"""Batches as a broker handles them: scanned, checked, validated and patched in place."""

from __future__ import annotations

from dataclasses import astuple
from types import ModuleType as Kernels

import pytest

from barnabas.kernels.batch_header import HEADER_SIZE, BatchHeader
from barnabas.kernels.contract import Fault
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import CorruptRecordError

T0 = 1_700_000_000_000


def build(kernels: Kernels, rows: list[tuple[object, ...]], **header: int) -> bytearray:
    builder = kernels.BatchBuilder()
    builder.append_many(rows)
    return builder.finish(**header)


@pytest.fixture
def batch(kernels: Kernels) -> bytearray:
    return build(
        kernels, [(T0, b"k1", b"hello"), (T0 + 5, None, b"v2", (("h", b"x"), ("n", None)))]
    )


def test_scan_needs_the_header_only(kernels: Kernels, batch: bytearray) -> None:
    header = kernels.scan_batch(batch[:HEADER_SIZE])
    assert header == BatchHeader(0, 91, -1, 2, 0x9D163EF9, 0, 1, T0, T0 + 5, -1, -1, -1, 2)
    assert astuple(header)[:2] == (header.base_offset, header.size)
    with pytest.raises(CorruptRecordError, match="header of 60 bytes, must have 61"):
        kernels.scan_batch(batch[:60])


def test_scan_of_several_leaves_a_cut_tail_out(kernels: Kernels, batch: bytearray) -> None:
    assert len(kernels.scan_batches(batch + batch + batch[:-1])) == 2
    assert len(kernels.scan_batches(batch + batch[:20])) == 1
    assert kernels.scan_batches(b"") == []
    assert len(kernels.scan_batches(b"pad" + batch + b"pad", 3, 3 + len(batch))) == 1


def test_scan_refuses_other_magic_and_impossible_sizes(kernels: Kernels, batch: bytearray) -> None:
    other = bytearray(batch)
    other[16] = 1
    with pytest.raises(CorruptRecordError, match="magic 1") as caught:
        kernels.scan_batch(other)
    assert caught.value.code is ErrorCode.INVALID_RECORD
    small = bytearray(batch)
    small[8:12] = (48).to_bytes(4, "big")
    with pytest.raises(CorruptRecordError, match="60 bytes is smaller"):
        kernels.scan_batches(small)
    small[8:12] = (-5).to_bytes(4, "big", signed=True)
    with pytest.raises(CorruptRecordError, match="7 bytes is smaller"):
        kernels.check_batch(small)


def test_check_wants_the_whole_batch_and_its_crc(kernels: Kernels, batch: bytearray) -> None:
    assert kernels.check_batch(batch) == kernels.scan_batch(batch)
    with pytest.raises(CorruptRecordError, match="batch of 91 bytes is truncated at 90"):
        kernels.check_batch(batch[:-1])
    batch[70] ^= 1
    with pytest.raises(CorruptRecordError, match="batch has CRC 0x9d163ef9") as caught:
        kernels.check_batch(batch)
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


def test_check_refuses_more_records_than_offsets(kernels: Kernels, batch: bytearray) -> None:
    batch[57:61] = (3).to_bytes(4, "big")
    kernels.stamp_timestamp(batch, 0, False, T0 + 5)
    with pytest.raises(CorruptRecordError, match="3 records and last offset delta 1"):
        kernels.check_batch(batch)


def test_a_range_outside_the_buffer_is_a_bug_of_the_caller(
    kernels: Kernels, batch: bytearray
) -> None:
    for position, end in ((-1, -1), (0, 92), (92, -1), (5, 4)):
        with pytest.raises(ValueError, match="of a buffer of 91 bytes"):
            kernels.scan_batch(batch, position, end)


def test_inspect_is_check_and_walk_in_one(kernels: Kernels, batch: bytearray) -> None:
    inspected = kernels.inspect_batch(b"xx" + batch, 2)
    assert inspected == (kernels.scan_batch(batch), T0 + 5, 1, ())


def test_inspect_leaves_compressed_records_alone(kernels: Kernels) -> None:
    builder = kernels.BatchBuilder()
    builder.append(T0, None, b"v")
    batch = builder.finish(codec=4, compress=lambda data: b"not looked at")
    header = kernels.scan_batch(batch)
    assert header.attributes == 4
    assert kernels.inspect_batch(batch) == (header, T0, -1, ())


def test_missing_keys_are_named_record_by_record(kernels: Kernels) -> None:
    batch = build(kernels, [(T0, None, b"a"), (T0, b"", b"b"), (T0, None, b"c")])
    *_, faults = kernels.inspect_batch(batch, require_key=True)
    assert faults == ((0, Fault.KEY), (2, Fault.KEY))
    assert kernels.inspect_batch(batch)[3] == ()


def test_timestamps_outside_the_bounds_are_named_and_none_is_allowed(kernels: Kernels) -> None:
    batch = build(
        kernels, [(T0, None, b"a"), (T0 - 1, None, b"b"), (T0 + 9, None, b"c"), (-1, None, b"d")]
    )
    _, greatest, delta, faults = kernels.inspect_batch(
        batch, timestamp_min=T0, timestamp_max=T0 + 8
    )
    assert (greatest, delta) == (T0 + 9, 2)
    assert faults == ((1, Fault.TIMESTAMP), (2, Fault.TIMESTAMP))


def test_the_first_of_equal_greatest_timestamps_counts(kernels: Kernels) -> None:
    batch = build(kernels, [(T0, None, b""), (T0 + 1, None, b""), (T0 + 1, None, b"")])
    assert kernels.inspect_batch(batch)[1:3] == (T0 + 1, 1)


def test_records_without_timestamps_have_none_as_maximum(kernels: Kernels) -> None:
    batch = build(kernels, [(-1, None, b"a"), (-1, None, b"b")])
    assert kernels.inspect_batch(batch)[1:3] == (-1, -1)


def test_offset_deltas_with_gaps_are_named(kernels: Kernels) -> None:
    builder = kernels.BatchBuilder()
    builder.append(T0, None, b"a")
    builder.append(T0, None, b"b", offset_delta=5)
    batch = builder.finish()
    assert kernels.inspect_batch(batch)[3] == ((1, Fault.OFFSET),)
    *_, faults = kernels.inspect_batch(batch, require_key=True)
    assert faults == ((0, Fault.KEY), (1, Fault.KEY))


RECORD = "0e 00 00 00 01 02 61 00"  # length 7, attributes, deltas 0 and 0, no key, value "a"


@pytest.mark.parametrize(
    ("records", "count", "fault"),
    [
        ("0e 00 00 00 01 02 61", 1, (0, Fault.CUT)),
        ("", 1, (0, Fault.CUT)),
        ("80", 1, (0, Fault.CUT)),
        ("80 80 80 80 80 00", 1, (0, Fault.VARINT)),
        ("01 00", 1, (0, Fault.LENGTH)),  # negative
        ("00", 1, (0, Fault.LENGTH)),  # not even attributes
        ("0c 00 00 00 01 02 61 00", 1, (0, Fault.LENGTH)),  # header count outside
        ("10 00 00 00 01 02 61 00 00", 1, (0, Fault.LENGTH)),  # one byte unused
        ("0e 00 80 80 80 80 80 80", 1, (0, Fault.LENGTH)),  # a number runs out of the record
        ("18 00 80 80 80 80 80 80 80 80 80 80 00", 1, (0, Fault.VARINT)),
        ("0e 00 00 00 03 02 61 00", 1, (0, Fault.FIELD)),  # key length -2
        ("0e 00 00 00 01 05 61 00", 1, (0, Fault.FIELD)),  # value length -3
        ("0e 00 00 00 01 7e 61 00", 1, (0, Fault.LENGTH)),  # value longer than the record
        ("0e 00 00 00 01 02 61 01", 1, (0, Fault.HEADERS)),  # -1 headers
        ("0e 00 00 00 01 02 61 04", 1, (0, Fault.HEADERS)),  # more headers than bytes
        ("12 00 00 00 01 02 61 02 01 01", 1, (0, Fault.HEADERS)),  # a header without a name
        (RECORD + "00", 1, (1, Fault.LEFTOVER)),
        (RECORD, 0, (0, Fault.LEFTOVER)),
        (RECORD, -1, (0, Fault.COUNT)),
    ],
)
def test_malformed_records(
    kernels: Kernels, records: str, count: int, fault: tuple[int, Fault]
) -> None:
    data = bytes.fromhex(records)
    assert kernels.validate_records(data, 0, len(data), count, T0)[2] == (fault,)


def test_faults_before_an_unreadable_record_are_kept(kernels: Kernels) -> None:
    data = bytes.fromhex(RECORD + "00")
    *_, faults = kernels.validate_records(data, 0, len(data), 2, T0, require_key=True)
    assert faults == ((0, Fault.KEY), (1, Fault.LENGTH))


def test_assigned_offsets_leave_the_crc_alone(kernels: Kernels, batch: bytearray) -> None:
    buffer = bytearray(b"xx") + batch
    kernels.assign_offsets(memoryview(buffer), 2, 100, 3)
    header = kernels.check_batch(buffer, 2)
    assert (header.base_offset, header.leader_epoch, header.crc) == (100, 3, 0x9D163EF9)


def test_append_time_is_set_and_taken_back(kernels: Kernels, batch: bytearray) -> None:
    assert kernels.stamp_timestamp(batch, 0, True, T0 + 777) == 0xD36787BB
    header = kernels.check_batch(batch)
    assert (header.attributes, header.max_timestamp) == (8, T0 + 777)
    assert kernels.stamp_timestamp(batch, 0, False, T0 + 5) == 0x9D163EF9


def test_a_producer_is_stamped_after_the_fact(kernels: Kernels, batch: bytearray) -> None:
    assert kernels.stamp_producer(batch, 0, 4000, 0, 0, True) == 0x327DD600
    assert astuple(kernels.check_batch(batch))[9:12] == (4000, 0, 0)
    assert kernels.stamp_producer(batch, 0, -1, -1, -1) == 0x9D163EF9


def test_patching_a_cut_batch_is_refused(kernels: Kernels, batch: bytearray) -> None:
    cut = batch[:-1]
    for patch in (
        lambda: kernels.assign_offsets(cut, 0, 0, 0),
        lambda: kernels.stamp_timestamp(cut, 0, True, 0),
        lambda: kernels.stamp_producer(cut, 0, 1, 1, 1),
    ):
        with pytest.raises(CorruptRecordError, match="truncated at 90"):
            patch()

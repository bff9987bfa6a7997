"""Transaction markers: written, read, and tolerant of what later versions may add."""

from __future__ import annotations

import pytest

from barnabas.kernels import Record
from barnabas.model.errors import CorruptRecordError
from barnabas.records.batch import iterate, read_header
from barnabas.records.control import ControlType, Marker, build_control_batch, read_marker


def record(key: str | None, value: str | None) -> Record:
    return Record(
        0,
        0,
        None if key is None else bytes.fromhex(key),
        None if value is None else bytes.fromhex(value),
    )


@pytest.mark.parametrize("control_type", list(ControlType))
def test_a_marker_comes_back(control_type: ControlType) -> None:
    batch = build_control_batch(
        control_type,
        producer_id=2**40,
        producer_epoch=3,
        coordinator_epoch=5,
        now_ms=1000,
        base_offset=8,
    )
    header = read_header(batch)
    assert header.is_control
    assert header.is_transactional
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (2**40, 3, -1)
    assert (header.count, header.last_offset, header.max_timestamp) == (1, 8, 1000)
    (found,) = iterate(batch, control=True)
    assert read_marker(found) == Marker(control_type, 5)


def test_later_versions_and_longer_data_are_read_by_their_known_start() -> None:
    assert read_marker(record("0001 0001 ffff", "0002 00000009 ffff")) == Marker(
        ControlType.COMMIT, 9
    )


def test_other_kinds_of_control_records_are_no_markers() -> None:
    for number in (2, 3, 4, 5, 6, 99):
        assert read_marker(record(f"0000 {number:04x}", None)) is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, "0000 00000001"),
        ("0000 00", "0000 00000001"),
        ("ffff 0001", "0000 00000001"),
        ("0000 0001", None),
        ("0000 0001", "0000 000001"),
        ("0000 0001", "ffff 00000001"),
    ],
)
def test_malformed_markers_are_corrupt(key: str | None, value: str | None) -> None:
    with pytest.raises(CorruptRecordError):
        read_marker(record(key, value))

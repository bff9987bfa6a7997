"""What a reader may see of fetched bytes, and where it goes on."""

from __future__ import annotations

import pytest
from tests import bombs

from barnabas.cli.fetched import visible_records
from barnabas.model.errors import CorruptRecordError
from barnabas.records.builder import build_batch
from barnabas.records.compression import Codec, TooLargeError
from barnabas.records.control import ControlType, build_control_batch


def batch(base_offset: int, *values: bytes, producer: int = -1) -> bytes:
    return build_batch(
        [(1000, None, value) for value in values],
        base_offset=base_offset,
        producer_id=producer,
        producer_epoch=0 if producer >= 0 else -1,
        base_sequence=0 if producer >= 0 else -1,
        transactional=producer >= 0,
    )


def marker(base_offset: int, producer: int, kind: ControlType) -> bytes:
    return build_control_batch(
        kind,
        producer_id=producer,
        producer_epoch=0,
        coordinator_epoch=0,
        now_ms=1000,
        base_offset=base_offset,
    )


def seen(data: bytes, offset: int, aborted: list[tuple[int, int]]) -> tuple[list[bytes], int]:
    fetched = visible_records(data, offset, aborted)
    return [record.value or b"" for record in fetched.records], fetched.next_offset


def test_records_before_the_wanted_offset_are_left_out() -> None:
    assert seen(batch(10, b"a", b"b", b"c"), 11, []) == ([b"b", b"c"], 13)


def test_a_cut_batch_at_the_end_is_left_for_the_next_fetch() -> None:
    assert seen(batch(0, b"a") + batch(1, b"b")[:-1], 0, []) == ([b"a"], 1)
    assert seen(batch(5, b"a")[:-1], 5, []) == ([], 5)
    assert seen(b"", 5, []) == ([], 5)


def test_aborted_transactions_are_hidden_up_to_their_marker() -> None:
    data = (
        batch(0, b"kept", producer=1)
        + batch(1, b"aborted", producer=2)
        + batch(2, b"plain")
        + marker(3, 2, ControlType.ABORT)
        + batch(4, b"later", producer=2)
        + marker(5, 1, ControlType.COMMIT)
        + marker(6, 2, ControlType.COMMIT)
    )
    assert seen(data, 0, [(2, 1)]) == ([b"kept", b"plain", b"later"], 7)
    assert seen(data, 0, []) == ([b"kept", b"aborted", b"plain", b"later"], 7)


def test_a_transaction_aborted_twice_is_hidden_twice() -> None:
    data = (
        batch(0, b"one", producer=2)
        + marker(1, 2, ControlType.ABORT)
        + batch(2, b"two", producer=2)
        + marker(3, 2, ControlType.ABORT)
        + batch(4, b"three", producer=2)
    )
    assert seen(data, 0, [(2, 2), (2, 0)]) == ([b"three"], 5)


def test_damaged_bytes_are_not_shown() -> None:
    data = bytearray(batch(0, b"abc"))
    data[-2] ^= 1
    with pytest.raises(CorruptRecordError):
        visible_records(bytes(data), 0)


def test_records_that_are_many_bytes_are_read_in_several_goes() -> None:
    """What compressed bytes unpack to is not held all at once."""
    data = bombs.batch(Codec.ZSTD, bombs.many_records(40_000, 1000), 40_000)
    offsets: list[int] = []
    while len(offsets) < 40_000:
        fetched = visible_records(data, len(offsets))
        assert 10_000 < len(fetched.records) < 20_000 or len(offsets) > 25_000
        offsets += [record.offset for record in fetched.records]
        assert fetched.next_offset == offsets[-1] + 1
    assert offsets == list(range(40_000))


def test_a_record_that_is_not_to_be_unpacked_is_named_after_those_before_it() -> None:
    bomb = bytearray(bombs.batch(Codec.GZIP, bombs.one_record(40 << 20)))
    bomb[:8] = (2).to_bytes(8, "big")
    data = batch(0, b"a", b"b") + bytes(bomb)
    assert seen(data, 0, []) == ([b"a", b"b"], 2)
    with pytest.raises(TooLargeError, match=r"offset 2: .*barnabas\.unpacked\.record\.max\.bytes"):
        visible_records(data, 2)

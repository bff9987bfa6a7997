"""What a consumer sees of a fetched partition: which records, in which form, and where it is."""

from __future__ import annotations

import gc
import json
import pickle
import weakref
import zlib
from types import ModuleType as Kernels
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.kernels.batch_header import CONTROL_BIT, TRANSACTIONAL_BIT
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import CorruptRecordError

T0 = 1_700_000_000_000


def unpack(codec: int, data: memoryview, count: int) -> bytes:
    assert codec == 1
    return zlib.decompress(data)


def build(kernels: Kernels, rows: list[Any], base_offset: int = 0, **options: Any) -> bytes:
    """Return a batch of (value) or (value, key, headers, offset delta) rows."""
    builder = kernels.BatchBuilder()
    for index, row in enumerate(rows):
        value, key, headers, delta = (*row, *(None, (), index)[len(row) - 1 :])  # type: ignore[misc]
        builder.append(T0 + index, key, value, headers, delta)
    packed = options.pop("packed", False)
    return bytes(
        builder.finish(
            base_offset=base_offset,
            codec=int(packed),
            compress=(lambda data: zlib.compress(data)) if packed else None,
            **options,
        )
    )


def marker(kernels: Kernels, offset: int, producer_id: int, commit: bool) -> bytes:
    return build(
        kernels,
        [(b"\0\0\0\0\0\7", b"\0\0\0\1" if commit else b"\0\0\0\0")],
        offset,
        producer_id=producer_id,
        producer_epoch=0,
        attributes=TRANSACTIONAL_BIT | CONTROL_BIT,
    )


def cursor(kernels: Kernels, data: bytes, position: int = 0, **options: Any) -> Any:
    return kernels.RecordCursor(data, "t", 3, position, unpack=unpack, **options)


def offsets(records: list[Any]) -> list[int]:
    return [record.offset for record in records]


def test_all_fields_of_a_record(kernels: Kernels) -> None:
    """A record has what kafka-python's has, under the same names, in the same order."""
    headers = [("h", b"1"), ("é", None)]
    data = build(kernels, [(b"v", b"key", headers)], 40, leader_epoch=7)
    (record,) = cursor(kernels, data).take(5)
    assert tuple(record) == ("t", 3, 7, 40, T0, 0, b"key", b"v", headers, None, 3, 1, 4)
    assert record._asdict()["serialized_header_size"] == 4
    assert record.headers is not record.headers, "a list of its own cannot be spoilt"
    topic, partition, *_, last = record
    assert (topic, partition, last) == ("t", 3, 4)
    assert record[3] == 40
    assert len(record) == 13
    assert record[-2:] == (1, 4)
    assert repr(record).startswith("ConsumerRecord(topic='t', partition=3, leader_epoch=7, offset=")
    match record:
        case kernels.ConsumerRecord(topic="t", offset=offset):  # type: ignore[misc]
            assert offset == 40
        case _:
            pytest.fail("a record can be matched by its fields")


def test_records_are_values(kernels: Kernels) -> None:
    """They compare and hash by their fields, and survive pickling and replacement."""
    data = build(kernels, [(b"v", b"k", [("h", b"1")])])
    (record,) = cursor(kernels, data).take(1)
    (same,) = cursor(kernels, data).take(1)
    assert record == same
    assert record == tuple(record)
    assert hash(record) == hash(same)
    assert record != record._replace(value=b"w")
    assert record._replace(value=b"w").value == b"w"
    assert record != object()
    assert pickle.loads(pickle.dumps(record)) == record
    with pytest.raises((AttributeError, TypeError)):
        record.nonsense = 1


def test_nulls_have_no_size(kernels: Kernels) -> None:
    """Null and empty are told apart, in the fields and in their sizes."""
    data = build(kernels, [(None,), (b"", b"")])
    null, empty = cursor(kernels, data).take(2)
    assert (null.key, null.value, null.headers) == (None, None, [])
    assert null[-3:] == (-1, -1, -1)
    assert (empty.key, empty.value) == (b"", b"")
    assert empty[-3:] == (0, 0, -1)


def test_chunks_across_batches(kernels: Kernels) -> None:
    """Records come in lists as long as asked for, whatever the batches are."""
    data = build(kernels, [(b"a",)] * 3) + build(kernels, [(b"b",)] * 4, 3, packed=True)
    read = cursor(kernels, data)
    assert read.bytes_left == len(data)
    assert offsets(read.take(2)) == [0, 1]
    assert read.position == 2
    assert offsets(read.take(3)) == [2, 3, 4]
    assert not read.exhausted
    assert read.take(0) == []
    assert offsets(read.take(9)) == [5, 6]
    assert read.exhausted
    assert read.bytes_left == 0
    assert read.take(1) == []
    assert read.position == 7


def test_starting_inside_a_batch(kernels: Kernels) -> None:
    """A broker delivers whole batches: what is below the wanted offset is passed over."""
    data = build(kernels, [(b"a",)] * 3) + build(kernels, [(b"b",)] * 3, 3, leader_epoch=2)
    read = cursor(kernels, data, 4)
    assert offsets(read.take(9)) == [4, 5]
    assert read.leader_epoch == 2


def test_gaps_of_compaction(kernels: Kernels) -> None:
    """The position moves past offsets that have no record any more, also whole batches."""
    gappy = build(kernels, [(b"a", None, (), 1), (b"b", None, (), 4)], 10, last_offset_delta=9)
    empty = build(kernels, [], 20, last_offset_delta=4)
    read = cursor(kernels, gappy + empty + build(kernels, [(b"c",)], 30))
    assert offsets(read.take(1)) == [11]
    assert read.position == 12
    assert offsets(read.take(1)) == [14]
    assert read.position == 20
    assert offsets(read.take(1)) == [30]
    read = cursor(kernels, empty, 20)
    assert read.take(1) == []
    assert read.position == 25
    assert read.progressed


def test_where_to_read_on(kernels: Kernels) -> None:
    """The offset after the last whole batch is known before a record is read."""
    first = build(kernels, [(b"a",)] * 3, 5, leader_epoch=1, last_offset_delta=7)
    second = build(kernels, [(b"b",)] * 2, 13, leader_epoch=4)
    assert cursor(kernels, first + second, 6).survey() == (15, 4)
    assert cursor(kernels, first + second[:-1], 6).survey() == (13, 1)
    assert cursor(kernels, first[:-1], 6).survey() == (6, -1)
    assert cursor(kernels, b"", 6).survey() == (6, -1)


def test_append_time(kernels: Kernels) -> None:
    """The broker's time replaces all others, and the record says so."""
    data = bytearray(build(kernels, [(b"a",), (b"b",)]))
    kernels.stamp_timestamp(data, 0, True, T0 + 99)
    assert [(r.timestamp, r.timestamp_type) for r in cursor(kernels, bytes(data)).take(2)] == [
        (T0 + 99, 1),
        (T0 + 99, 1),
    ]


def test_markers_are_not_shown(kernels: Kernels) -> None:
    """Readers of anything see aborted records, but no markers."""
    data = (
        build(kernels, [(b"a",)], producer_id=1, attributes=TRANSACTIONAL_BIT)
        + marker(kernels, 1, 1, commit=False)
        + build(kernels, [(b"b",)], 2)
        + marker(kernels, 3, 2, commit=True)
    )
    read = cursor(kernels, data)
    assert offsets(read.take(9)) == [0, 2]
    assert read.position == 4


def test_aborted_transactions(kernels: Kernels) -> None:
    """Readers of committed records see neither aborted records nor markers."""
    data = (
        build(kernels, [(b"aborted",)], 0, producer_id=1, attributes=TRANSACTIONAL_BIT)
        + build(kernels, [(b"kept",)], 1, producer_id=2, attributes=TRANSACTIONAL_BIT)
        + build(kernels, [(b"kept",)], 2, producer_id=1)  # not transactional
        + marker(kernels, 3, 1, commit=False)
        + build(kernels, [(b"kept",)], 4, producer_id=1, attributes=TRANSACTIONAL_BIT)
        + marker(kernels, 5, 2, commit=True)
        + build(kernels, [(b"aborted",)], 6, producer_id=1, attributes=TRANSACTIONAL_BIT)
    )
    read = cursor(kernels, data, aborted=[(6, 1), (0, 1)])
    assert {(r.offset, r.value) for r in read.take(9)} == {(n, b"kept") for n in (1, 2, 4)}
    assert read.position == 7
    assert read.exhausted


def test_a_cut_tail_is_left_out(kernels: Kernels) -> None:
    """A broker cuts the last batch where the size is reached; without any whole one, it is told."""
    whole, cut = build(kernels, [(b"a",)]), build(kernels, [(b"b",)], 1)
    for size in (5, 30, 61, len(cut) - 1):
        read = cursor(kernels, whole + cut[:size])
        assert offsets(read.take(9)) == [0]
        assert read.exhausted or read.take(1) == []
        assert read.exhausted
        assert read.progressed
        read = cursor(kernels, cut[:size])
        assert read.take(1) == []
        assert not read.progressed


def test_damage_is_told_after_what_is_whole(kernels: Kernels) -> None:
    """The records before the damage are given; the damage is told on the next call, and again."""
    good, bad = build(kernels, [(b"a",)]), bytearray(build(kernels, [(b"b" * 50,)], 1))
    bad[-5] ^= 1
    read = cursor(kernels, good + bytes(bad))
    assert offsets(read.take(9)) == [0]
    for _ in range(2):
        with pytest.raises(CorruptRecordError, match="CRC"):
            read.take(9)
    assert read.position == 1
    assert [r.offset for r in cursor(kernels, bytes(bad), check_crcs=False).take(9)] == [1]


def test_damaged_records(kernels: Kernels) -> None:
    """A record that contradicts itself is told with its place in the batch."""
    bad = bytearray(build(kernels, [(b"a",), (b"b" * 50,)]))
    bad[69] = 0x7F  # the second record's length
    read = cursor(kernels, bytes(bad), check_crcs=False)
    assert offsets(read.take(9)) == [0]
    with pytest.raises(CorruptRecordError, match="record 1 of the batch"):
        read.take(9)
    old = bytearray(build(kernels, [(b"a",)]))
    old[16] = 1
    with pytest.raises(CorruptRecordError, match="magic 1"):
        cursor(kernels, bytes(old)).take(1)


def with_leftovers(kernels: Kernels, base_offset: int, packed: bool) -> bytes:
    """Return a batch of three records with bytes after the last one."""
    more = b"more"
    builder = kernels.BatchBuilder()
    for index in range(3):
        builder.append(T0, None, b"%d" % index, (), index)
    if packed:
        return bytes(
            builder.finish(
                base_offset=base_offset,
                codec=1,
                compress=lambda data: zlib.compress(bytes(data) + more),
            )
        )
    batch = bytes(builder.finish(base_offset=base_offset))
    size = int.from_bytes(batch[8:12], "big") + len(more)
    return batch[:8] + size.to_bytes(4, "big") + batch[12:] + more


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("before", [0, 2])
@pytest.mark.parametrize("chunk", [1, 2, 3, 9])
def test_leftover_bytes_are_told(kernels: Kernels, packed: bool, before: int, chunk: int) -> None:
    """A batch with bytes after its last record raises there, again and again, as in Kafka."""
    data = with_leftovers(kernels, before, packed) + build(kernels, [(b"later",)], before + 3)
    if before:
        data = build(kernels, [(b"a",)] * before) + data
    expected = list(range(before + 2))  # all but the last record, which is in doubt
    read = cursor(kernels, data, check_crcs=False)
    found: list[int] = []
    while len(found) < len(expected):
        taken = offsets(read.take(chunk))
        assert taken, "nothing is told before what is whole was given"
        found += taken
    assert found == expected
    for _ in range(2):
        with pytest.raises(CorruptRecordError, match="left over after the last record"):
            read.take(chunk)
    assert read.position == before + 2
    assert not read.exhausted

    store = kernels.ColumnStore()
    read = cursor(kernels, data, check_crcs=False)
    while store.count < len(expected):
        assert read.fill(store, chunk)
    for _ in range(2):
        with pytest.raises(CorruptRecordError, match="left over after the last record"):
            read.fill(store, chunk)
    assert store.count == len(expected)


def test_leftover_bytes_after_records_that_were_seen(kernels: Kernels) -> None:
    """Reading from the middle of such a batch, or from its last record, does not hide it."""
    data = with_leftovers(kernels, 0, False)
    assert offsets(cursor(kernels, data, 1, check_crcs=False).take(9)) == [1]
    with pytest.raises(CorruptRecordError, match="record 3 of the batch"):
        cursor(kernels, data, 2, check_crcs=False).take(9)


def test_deserializers(kernels: Kernels) -> None:
    """Functions get the bytes; objects get topic, headers and bytes, as kafka-python's do."""

    class Rich:
        def deserialize(self, topic: str, headers: Any, data: bytes | None) -> Any:
            return topic, headers, data

    data = build(kernels, [(b"[1]", b"k", [("h", b"1")]), (b"[2]",)])
    read = cursor(kernels, data, key_deserializer=Rich(), value_deserializer=json.loads)
    first, second = read.take(2)
    assert first.key == ("t", [("h", b"1")], b"k")
    assert second.key == ("t", [], None)
    assert (first.value, second.value) == ([1], [2])
    assert first.serialized_value_size == 3


def test_a_deserializer_that_fails(kernels: Kernels) -> None:
    """The reader stands before the bad record, and the error tells where it is."""
    data = build(kernels, [(b"1",), (b"no",), (b"3",)])
    read = cursor(kernels, data, value_deserializer=json.loads)
    assert [r.value for r in read.take(9)] == [1]
    for _ in range(2):
        with pytest.raises(json.JSONDecodeError) as caught:
            read.take(9)
        assert caught.value.__notes__[-1] == "in t-3 at offset 1"
    assert read.position == 1
    skipping = cursor(kernels, data, 2, value_deserializer=json.loads)
    assert [r.value for r in skipping.take(9)] == [3]


def test_decompressing_in_advance(kernels: Kernels) -> None:
    """What is prepared is not unpacked again; damage waits for the reader."""
    calls = []

    def counting(codec: int, data: memoryview, count: int) -> bytes:
        calls.append(codec)
        return unpack(codec, data, count)

    data = b"".join(build(kernels, [(b"a" * 100,)], n, packed=True) for n in range(4))
    read = kernels.RecordCursor(data, "t", 0, 0, unpack=counting)
    read.prepare(150)
    assert len(calls) == 2
    assert offsets(read.take(9)) == [0, 1, 2, 3]
    assert len(calls) == 4
    bad = bytearray(data)
    bad[-1] ^= 1
    read = kernels.RecordCursor(bytes(bad), "t", 0, 0, unpack=counting)
    read.prepare(10**6)
    assert offsets(read.take(9)) == [0, 1, 2]
    with pytest.raises(CorruptRecordError):
        read.take(1)


def test_plain_records_cost_the_collector_nothing(kernels: Kernels) -> None:
    """A compiled record of bytes is not tracked; one that user code filled is."""
    if "cython" not in kernels.__name__:  # type: ignore[attr-defined]
        pytest.skip("plain Python objects are always tracked")
    data = build(kernels, [(b"[]",)])
    assert not gc.is_tracked(cursor(kernels, data).take(1)[0])
    (record,) = cursor(kernels, data, value_deserializer=json.loads).take(1)
    assert gc.is_tracked(record)


cells = st.none() | st.binary(max_size=40)
rows = st.tuples(
    cells,
    cells,
    st.lists(st.tuples(st.text(max_size=4), st.none() | st.binary(max_size=4)), max_size=2),
)
batches = st.lists(
    st.tuples(
        st.lists(rows, max_size=5),
        st.integers(0, 3),  # offsets without a record at the end
        st.sampled_from(["plain", "packed", "transactional", "commit", "abort"]),
        st.integers(1, 2),  # producer
    ),
    max_size=5,
)


@given(batches, st.integers(0, 12), st.integers(1, 7), st.integers(0, 40), st.data())
def test_twins_agree(
    twins: tuple[Kernels, Kernels],
    described: list[Any],
    position: int,
    chunk: int,
    cut: int,
    data: st.DataObject,
) -> None:
    """For any batches, the reference and the compiled cursor give the same, step by step."""
    kernels = twins[0]
    parts, offset, begun = [], 0, []
    for content, gap, kind, producer in described:
        if kind in ("commit", "abort"):
            parts.append(marker(kernels, offset, producer, kind == "commit"))
            offset += 1
            continue
        delta = len(content) - 1 + gap
        if delta < 0:
            continue
        transactional = TRANSACTIONAL_BIT if kind == "transactional" else 0
        if transactional:
            begun.append((offset, producer))
        parts.append(
            build(
                kernels,
                content,
                offset,
                producer_id=producer,
                last_offset_delta=delta,
                attributes=transactional,
                packed=kind == "packed",
                leader_epoch=offset,
            )
        )
        offset += delta + 1
    whole = b"".join(parts)
    whole = whole[: len(whole) - cut] if cut < len(whole) else whole
    aborted = data.draw(st.lists(st.sampled_from(begun), unique=True)) if begun else []
    results = []
    for twin in twins:
        read = cursor(twin, whole, position, aborted=aborted)
        steps: list[Any] = [read.survey()]
        while taken := read.take(chunk):
            steps.append(([tuple(record) for record in taken], read.position, read.leader_epoch))
        steps.append((read.position, read.leader_epoch, read.exhausted, read.progressed))
        store = twin.ColumnStore()
        read = cursor(twin, whole, position, aborted=aborted)
        while read.fill(store, chunk):
            steps.append((store.count, read.position))
        columns = store.finish()
        for column in columns:
            if isinstance(column, tuple):
                steps.append(
                    [None if x is None else x if isinstance(x, str) else bytes(x) for x in column]
                )
            else:
                steps.append(column if isinstance(column, int) else bytes(column))
        results.append(steps)
    assert results[0] == results[1]


def test_columns_are_not_overwritten_while_somebody_looks(kernels: Kernels) -> None:
    """Memory is used again only when nobody has the columns any more."""
    store = kernels.ColumnStore()
    kept = []
    for n in range(8):
        cursor(kernels, build(kernels, [(b"%d" % n,)] * 3, n)).fill(store, 9)
        kept.append(store.finish())
    assert [bytes(columns.values[2]) for columns in kept] == [b"%d" % n * 3 for n in range(8)]
    assert store.count == 0


def chunked(kernels: Kernels, sizes: list[int]) -> tuple[bytes, Any]:
    """Return a packed batch of ten records, and what unpacks it in chunks of so many."""
    data = build(kernels, [(b"%d" % n,) for n in range(10)], 100, packed=True)
    lengths = [len(each) for each in (b"%d" % n for n in range(10))]
    assert sum(sizes) == len(lengths)

    def unpack_some(codec: int, packed: memoryview, count: int) -> Any:
        assert count == 10
        records = unpack(codec, packed, count)
        size = len(records) // 10  # all are of one size
        position = 0
        for number in sizes:
            yield records[position : position + number * size], number
            position += number * size

    return data, unpack_some


def test_chunks_of_a_large_batch(kernels: Kernels) -> None:
    """A call ends where the next chunk would have to be unpacked; nothing is lost between."""
    data, unpack_some = chunked(kernels, [3, 1, 6])
    more = data + build(kernels, [(b"x",)], 110)
    read = kernels.RecordCursor(more, "t", 0, 0, unpack=unpack_some)
    read.prepare(1 << 20)
    assert not read.unpacking
    assert offsets(read.take(2)) == [100, 101]
    assert read.unpacking
    assert offsets(read.take(50)) == [102]
    assert read.position == 103
    assert offsets(read.take(50)) == [103]
    assert offsets(read.take(50)) == [104, 105, 106, 107, 108, 109, 110]
    assert not read.unpacking
    assert read.exhausted


def test_chunks_of_a_large_batch_in_columns(kernels: Kernels) -> None:
    data, unpack_some = chunked(kernels, [3, 1, 6])
    read = kernels.RecordCursor(data, "t", 0, 102, unpack=unpack_some)
    store = kernels.ColumnStore()
    assert [read.fill(store, 50) for _ in range(4)] == [1, 1, 6, 0]
    assert store.finish().count == 8
    assert read.position == 110


def test_chunks_that_end_early_or_fail(kernels: Kernels) -> None:
    """What was unpacked is given; then it is said what is wrong, every time."""

    def failing(codec: int, packed: memoryview, count: int) -> Any:
        yield unpack(codec, packed, count)[: len(unpack(codec, packed, count)) // 10], 1
        raise CorruptRecordError("bad luck")

    def short(codec: int, packed: memoryview, count: int) -> Any:
        yield unpack(codec, packed, count)[: len(unpack(codec, packed, count)) // 10], 1

    data, _ = chunked(kernels, [10])
    for unpack_some, text in ((failing, "bad luck"), (short, "record 1 of the batch")):
        read = kernels.RecordCursor(data, "t", 0, 0, unpack=unpack_some)
        assert offsets(read.take(50)) == [100]
        for _ in range(2):
            with pytest.raises(CorruptRecordError, match=text):
                read.take(50)
        assert read.position == 101


def test_a_failure_that_is_kept_makes_no_cycle(kernels: Kernels) -> None:
    """A cursor goes with its last reader: the collector cannot take views that are in use."""

    class Owner(bytearray):
        """Bytes whose end can be seen."""

    def failing(codec: int, packed: memoryview, count: int) -> Any:
        raise CorruptRecordError("bad luck", ErrorCode.MESSAGE_TOO_LARGE)
        yield b"", 0

    data = Owner(chunked(kernels, [10])[0])
    gone = weakref.ref(data)
    said = []
    gc.disable()
    try:
        read = kernels.RecordCursor(data, "t", 0, 0, unpack=failing)
        for _ in range(2):
            try:
                read.take(50)
            except CorruptRecordError as failure:  # pytest.raises would keep the traceback
                said.append((str(failure), failure.code))
        del data, read
        assert said == [("bad luck", ErrorCode.MESSAGE_TOO_LARGE)] * 2
        assert gone() is None
    finally:
        gc.enable()

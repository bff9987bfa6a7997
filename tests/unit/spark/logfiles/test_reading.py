"""Rows of segment files: what was written comes back, whatever the format and the damage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests import bombs
from tests.unit.spark.segments import TIME_MS, batch, marker, segment

from barnabas.kernels import BatchBuilder, Record, crc32c
from barnabas.records.builder import build_batch
from barnabas.records.compression import Codec
from barnabas.records.control import ControlType
from barnabas.records.legacy import encode_message
from barnabas.spark.logfiles import reading as log_reading
from barnabas.spark.logfiles.files import plan_tasks
from barnabas.spark.logfiles.options import LogColumns, parse_log
from barnabas.spark.logfiles.reading import CorruptSegmentError, read_pieces

pa = pytest.importorskip("pyarrow")

Rows = list[dict[str, Any]]


def layout(columns: LogColumns) -> Any:
    """Return the Arrow types of what `log_ddl` declares."""
    fields = [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("timestampType", pa.int32()),
    ]
    if columns.headers:
        fields.append(
            ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])))
        )
    if columns.location:
        fields += [
            ("segment", pa.string()),
            ("position", pa.int64()),
            ("baseOffset", pa.int64()),
            ("leaderEpoch", pa.int32()),
            ("producerId", pa.int64()),
        ]
    if columns.control:
        fields.append(("controlType", pa.string()))
    if columns.corrupt:
        fields.append(("corrupt", pa.string()))
    return pa.schema(fields)


def read(path: object, **given: str) -> Rows:
    options = parse_log({"path": str(path)} | given)
    kind = layout(options.columns)
    rows: Rows = []
    for task in plan_tasks(options):
        for found in read_pieces(task, options, kind):
            assert found.schema.equals(kind)
            assert found.num_rows
            rows += found.to_pylist()
    return rows


def values(rows: Rows) -> list[bytes | None]:
    return [row["value"] for row in rows if row.get("corrupt") is None]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_come_with_their_place_on_disk(tmp_path: Path, codec: str) -> None:
    first, second = batch(0, b"a", b"b", codec=codec), batch(2, b"c", codec=codec, epoch=4)
    path = segment(tmp_path, "t-1", 0, first, second)
    rows = read(tmp_path)
    assert [(row["key"], row["value"], row["offset"]) for row in rows] == [
        (b"k0", b"a", 0),
        (b"k1", b"b", 1),
        (b"k2", b"c", 2),
    ]
    assert {(row["topic"], row["partition"], row["segment"]) for row in rows} == {
        ("t", 1, str(path))
    }
    assert [(row["position"], row["baseOffset"], row["leaderEpoch"]) for row in rows] == [
        (0, 0, 3),
        (0, 0, 3),
        (len(first), 2, 4),
    ]
    assert [row["timestamp"].timestamp() * 1000 for row in rows] == [TIME_MS + n for n in range(3)]
    assert {(row["timestampType"], row["producerId"]) for row in rows} == {(0, -1)}


def test_headers_and_nulls_come_as_they_are(tmp_path: Path) -> None:
    rows_in = [(5, None, b"", [("h", b"1"), ("h", None)]), (6, b"", None, [])]
    segment(tmp_path, "t-0", 0, bytes(build_batch(rows_in)))
    first, second = read(tmp_path, includeHeaders="true", includePlace="false")
    assert (first["key"], first["value"]) == (None, b"")
    assert first["headers"] == [{"key": "h", "value": b"1"}, {"key": "h", "value": None}]
    assert (second["key"], second["value"], second["headers"]) == (b"", None, [])
    assert "segment" not in first


def test_offsets_and_times_cut_inside_batches(tmp_path: Path) -> None:
    segment(tmp_path, "t-0", 0, batch(0, *[b"%d" % n for n in range(10)]))
    segment(tmp_path, "t-0", 10, batch(10, *[b"%d" % n for n in range(10, 20)], codec="lz4"))
    rows = read(tmp_path, startingOffsets="7", endingOffsets="13")
    assert values(rows) == [b"%d" % n for n in range(7, 13)]
    rows = read(tmp_path, startingTimestamp=str(TIME_MS + 8), endingTimestamp=str(TIME_MS + 11))
    assert values(rows) == [b"8", b"9", b"10"]


def test_more_rows_than_one_arrow_batch_keep_their_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_reading, "ROWS_MAX", 7)
    parts = [batch(5 * n, *[b"%d" % (5 * n + m) for m in range(5)]) for n in range(20)]
    segment(tmp_path, "t-0", 0, *parts)
    rows = read(tmp_path)
    assert [row["offset"] for row in rows] == list(range(100))
    assert [row["baseOffset"] for row in rows] == [n // 5 * 5 for n in range(100)]


def test_compaction_leaves_gaps_and_empty_batches(tmp_path: Path) -> None:
    sparse, empty = BatchBuilder(), BatchBuilder()
    sparse.append(1, b"k", b"v")
    parts = [
        bytes(sparse.finish(base_offset=5, last_offset_delta=9)),
        bytes(empty.finish(base_offset=20, last_offset_delta=3)),
    ]
    segment(tmp_path, "t-0", 0, *parts, batch(40, b"end"))
    assert [row["offset"] for row in read(tmp_path)] == [5, 40]


@pytest.mark.parametrize("split", [False, True])
def test_committed_records_alone(tmp_path: Path, split: bool) -> None:
    parts = [
        batch(0, b"aborted", producer=7),
        batch(1, b"plain"),
        batch(2, b"committed", producer=8),
        marker(3, 7, ControlType.ABORT),
        marker(4, 8, ControlType.COMMIT),
        batch(5, b"again", producer=7),
        marker(6, 7, ControlType.COMMIT),
        batch(7, b"open", producer=8),
    ]
    if split:
        for base, part in zip((0, 1, 2, 3, 4, 5, 6, 7), parts, strict=True):
            segment(tmp_path, "t-0", base, part)
    else:
        segment(tmp_path, "t-0", 0, *parts)
    assert values(read(tmp_path, readCommitted="true")) == [b"plain", b"committed", b"again"]
    assert len(read(tmp_path)) == 5
    rows = read(tmp_path, includeControl="true")
    found = {row["offset"]: row["controlType"] for row in rows}
    assert {offset: kind for offset, kind in found.items() if kind} == {
        3: "ABORT",
        4: "COMMIT",
        6: "COMMIT",
    }
    assert {row["producerId"] for row in rows if row["controlType"] == "ABORT"} == {7}


def test_messages_of_older_formats(tmp_path: Path) -> None:
    old = [
        encode_message(Record(0, -1, b"k", b"zero"), 0),
        encode_message(Record(1, TIME_MS, None, b"one"), 1),
        encode_message(Record(2, TIME_MS, None, None), 1, 0x08),
    ]
    segment(tmp_path, "t-0", 0, *old, batch(3, b"two"))
    rows = read(tmp_path)
    assert [(row["offset"], row["value"], row["timestampType"]) for row in rows] == [
        (0, b"zero", -1),
        (1, b"one", 0),
        (2, None, 1),
        (3, b"two", 0),
    ]
    assert [row["position"] for row in rows] == [sum(map(len, old[:number])) for number in range(4)]
    assert values(read(tmp_path, startingOffsets="1", endingOffsets="2")) == [b"one"]


def damaged(part: bytes, at: int = 70) -> bytes:
    changed = bytearray(part)
    changed[at] ^= 0x10
    return bytes(changed)


def test_damage_fails_is_skipped_or_reported(tmp_path: Path) -> None:
    good, bad = batch(0, b"a"), batch(1, b"bbbbbbbbbbbb")
    path = segment(tmp_path, "t-0", 0, good, damaged(bad), batch(2, b"c"))
    with pytest.raises(CorruptSegmentError) as failure:
        read(tmp_path)
    assert f"{path} at {len(good)}, {len(bad)} bytes: batch has CRC" in str(failure.value)
    assert values(read(tmp_path, onCorrupt="skip")) == [b"a", b"c"]

    rows = read(tmp_path, onCorrupt="report", includeHeaders="true")
    assert values(rows) == [b"a", b"c"]
    [told] = [row for row in rows if row["corrupt"] is not None]
    assert (told["segment"], told["position"]) == (str(path), len(good))
    assert (told["offset"], told["value"], told["headers"]) == (None, None, [])
    assert (told["topic"], told["partition"]) == ("t", 0)
    assert "CRC" in told["corrupt"]


def lying(kind: str) -> bytes:
    """Return a batch of offset 5 that cannot be read, with a right checksum."""
    changed = bytearray(batch(5, b"x" * 100))
    if kind == "gzip":
        changed[22] |= 1  # it says that it is compressed, and is not
    else:
        changed[61] ^= 0x02  # the length of the record
    changed[17:21] = crc32c(bytes(changed[21:])).to_bytes(4, "big")
    return bytes(changed)


@pytest.mark.parametrize("kind", ["gzip", "length"])
def test_records_that_lie_under_a_good_checksum_are_told(tmp_path: Path, kind: str) -> None:
    before, after = batch(0, *[b"v"] * 5), [batch(6, b"after"), batch(7, b"end")]
    segment(tmp_path, "t-0", 0, before, lying(kind), *after)
    rows = read(tmp_path, onCorrupt="report")
    assert values(rows) == [*[b"v"] * 5, b"after", b"end"]
    [told] = [row for row in rows if row["corrupt"] is not None]
    assert told["position"] == len(before)
    with pytest.raises(CorruptSegmentError, match=f"at {len(before)}, "):
        read(tmp_path)


def test_a_torn_tail_is_fine_only_in_the_last_segment(tmp_path: Path) -> None:
    torn = batch(1, b"never finished")[:-3]
    path = segment(tmp_path, "t-0", 0, batch(0, b"a"), torn)
    assert values(read(tmp_path)) == [b"a"]
    segment(tmp_path, "t-0", 1, batch(1, b"b"))
    with pytest.raises(CorruptSegmentError, match=str(path)):
        read(tmp_path)


def test_offsets_that_do_not_belong_into_a_segment_are_damage(tmp_path: Path) -> None:
    segment(tmp_path, "t-0", 10, batch(3, b"low"), batch(10, b"a"))
    segment(tmp_path, "t-0", 11, batch(11, b"b"))
    rows = read(tmp_path, onCorrupt="report")
    assert values(rows) == [b"a", b"b"]
    [told] = [row for row in rows if row["corrupt"] is not None]
    assert "offsets 3 to 3 in the segment from 10 to 10" in told["corrupt"]


def test_segments_that_a_broker_moves_meanwhile(tmp_path: Path) -> None:
    """Renamed ones are found; of a merged one each task takes what it was to read."""
    first = segment(tmp_path, "t-0", 0, batch(0, b"a"), batch(1, b"old"))
    second = segment(tmp_path, "t-0", 2, batch(2, b"b"))
    options = parse_log({"path": str(tmp_path), "minPartitions": "2"})
    kind = layout(options.columns)
    tasks = plan_tasks(options)
    assert len(tasks) == 2

    def rows() -> list[bytes]:
        return [
            value.as_py()
            for task in tasks
            for found in read_pieces(task, options, kind)
            for value in found.column("value")
        ]

    second.rename(f"{second}.deleted")
    assert rows() == [b"a", b"old", b"b"]
    Path(f"{second}.deleted").unlink()
    merged = first.with_suffix(".swap")
    merged.write_bytes(batch(0, b"a") + batch(2, b"b"))
    merged.rename(first)
    assert rows() == [b"a", b"b"]
    first.unlink()
    with pytest.raises(CorruptSegmentError, match="was deleted since the query was planned"):
        rows()


def test_what_unpacks_to_much_comes_in_several_arrow_batches(tmp_path: Path) -> None:
    """A large record is refused by name, place and option, unless the option allows it."""
    many = bombs.batch(Codec.ZSTD, bombs.many_records(4000, 1000), 4000)
    segment(tmp_path, "t-0", 0, many)
    options = parse_log({"path": str(tmp_path)})
    sizes = [
        found.num_rows
        for task in plan_tasks(options)
        for found in read_pieces(task, options, layout(options.columns))
    ]
    assert sum(sizes) == 4000
    assert len(sizes) > 1
    segment(tmp_path, "u-0", 0, bombs.batch(Codec.ZSTD, bombs.one_record(20 << 20)))
    with pytest.raises(CorruptSegmentError, match=r"u-0.*barnabas\.unpacked\.record\.max\.bytes"):
        read(tmp_path, topics="u")
    (row,) = read(tmp_path, topics="u", **{"barnabas.unpacked.record.max.bytes": "30000000"})
    assert row["value"] == bytes(20 << 20)

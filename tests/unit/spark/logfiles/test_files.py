"""Which files a query of a directory reads, and how tasks share them."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from tests.unit.spark.segments import batch, segment

from barnabas.model.errors import InvalidValueError
from barnabas.model.ids import TopicPartition
from barnabas.spark.logfiles.files import Piece, plan_tasks
from barnabas.spark.logfiles.options import OFFSET_MAX, parse_log


def pieces(*paths: object, **options: str) -> list[Piece]:
    given = {"path": str(paths[0])} if len(paths) == 1 else {}
    if len(paths) > 1:
        given["paths"] = "[" + ", ".join(f'"{path}"' for path in paths) + "]"
    return [each for task in plan_tasks(parse_log(given | options)) for each in task]


def test_a_data_directory_is_all_its_partitions(tmp_path: Path) -> None:
    segment(tmp_path, "my-topic-0", 0, batch(0, b"a"))
    segment(tmp_path, "my-topic-0", 1, batch(1, b"b"))
    segment(tmp_path, "my-topic-11", 0, batch(0, b"c"))
    (tmp_path / "meta.properties").write_text("")
    moved = "gone-0." + "0" * 32 + "-delete"
    segment(tmp_path, moved, 0, batch(0, b"d"))
    (tmp_path / "my-topic-0" / "00000000000000000000.index").write_bytes(b"")
    (tmp_path / "my-topic-0" / "00000000000000000000.log.cleaned").write_bytes(b"")

    found = pieces(tmp_path)
    assert [(*each.partition, each.base, each.bound, each.is_last) for each in found] == [
        ("my-topic", 0, 0, 1, False),
        ("my-topic", 0, 1, OFFSET_MAX, True),
        ("my-topic", 11, 0, OFFSET_MAX, True),
    ]
    [alone] = pieces(tmp_path / moved)
    assert alone.partition == TopicPartition("gone", 0)


def test_a_partition_a_file_a_pattern_and_several_paths(tmp_path: Path) -> None:
    first = segment(tmp_path, "a-0", 0, batch(0, b"a"))
    segment(tmp_path, "a-0", 1, batch(1, b"b"))
    segment(tmp_path, "b-0", 0, batch(0, b"c"))
    segment(tmp_path, "copy", 0, batch(0, b"d"))
    assert len(pieces(tmp_path / "a-0")) == 2
    [alone] = pieces(first)
    assert (alone.path, alone.bound) == (str(first), 1)
    assert {each.partition.topic for each in pieces(tmp_path / "[ab]-*")} == {"a", "b"}
    assert len(pieces(tmp_path / "a-0", tmp_path / "b-0", tmp_path / "a-0")) == 3
    [renamed] = pieces(f"file://{tmp_path}/copy")
    assert renamed.partition == TopicPartition("copy", 0)


def test_segments_without_wanted_offsets_are_left_out(tmp_path: Path) -> None:
    for base in range(0, 50, 10):
        segment(tmp_path, "t-0", base, batch(base, *[b"v"] * 10))
    found = pieces(tmp_path, startingOffsets="15", endingOffsets="30")
    assert [(each.base, each.start, each.until) for each in found] == [(10, 15, 20), (20, 20, 30)]


def test_tasks_share_the_bytes(tmp_path: Path) -> None:
    for number in range(8):
        segment(tmp_path, f"t-{number}", 0, batch(0, b"v" * 1000))
    tasks = plan_tasks(parse_log({"path": str(tmp_path), "minPartitions": "4"}))
    assert [len(task) for task in tasks] == [2, 2, 2, 2]
    size = len(batch(0, b"v" * 1000))
    options = {"path": str(tmp_path), "minPartitions": "1", "maxBytesPerTask": str(size)}
    assert [len(task) for task in plan_tasks(parse_log(options))] == [1] * 8


def test_a_large_segment_is_cut_where_its_index_knows_a_batch(tmp_path: Path) -> None:
    batches = [batch(10 * number, *[b"v" * 100] * 10) for number in range(40)]
    path = segment(tmp_path, "t-0", 0, *batches)
    places = [sum(map(len, batches[:number])) for number in range(40)]
    entries = [struct.pack(">ii", 10 * n + 9, places[n]) for n in range(1, 40)]
    entries[20] = struct.pack(">ii", 219, places[21] + 3)  # wrong: no batch begins there
    path.with_suffix(".index").write_bytes(b"".join(entries) + bytes(80))

    found = pieces(tmp_path, minPartitions="4")
    assert len(found) == 4
    assert [each.position for each in found[1:]] == [each.end for each in found[:-1]]
    assert {each.position for each in found} <= set(places)
    assert [each.start for each in found] == [
        each.position // len(batches[0]) * 10 for each in found
    ]
    assert [each.is_last for each in found] == [False, False, False, True]
    assert found[-1].end is None


def test_nothing_to_read_is_said_clearly(tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match=r"load: .*/nowhere does not exist"):
        pieces(tmp_path / "nowhere")
    with pytest.raises(InvalidValueError, match="load: no segment files in"):
        pieces(tmp_path)
    segment(tmp_path, "orders-0", 0, batch(0, b"a"))
    with pytest.raises(InvalidValueError, match="topics, partitions: match none of orders-0"):
        pieces(tmp_path, topics="order")
    (tmp_path / "orders-0" / "notes.txt").write_text("x")
    with pytest.raises(InvalidValueError, match=r"notes\.txt is not a segment file"):
        pieces(tmp_path / "orders-0" / "notes.txt")

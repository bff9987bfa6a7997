"""Files have their names only when they are whole, and nothing is replaced unasked."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from tests.unit.archive.records import record

from barnabas.archive.formats import Format
from barnabas.archive.jsonl_file import JsonLinesWriter, read_json_lines
from barnabas.archive.output import Output
from barnabas.archive.text import ArchiveError
from barnabas.model.ids import TopicPartition

ORDERS = TopicPartition("orders", 2)


def output(path: Path, *, single: bool = False, **options: bool | int) -> Output:
    return Output(path, Format.JSONL, single=single, partitions=1, **options)  # type: ignore[arg-type]


def test_one_file(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a.jsonl"
    files = output(path, single=True)
    files.write(ORDERS, 0, [record(0)], 1)
    assert not path.exists()
    files.finish()
    assert len(list(read_json_lines(path))) == 1
    assert [each.name for each in path.parent.iterdir()] == ["a.jsonl"]


def test_a_directory_has_a_file_for_so_many_rows(tmp_path: Path) -> None:
    files = output(tmp_path, rows_per_file=2)
    assert files.room(ORDERS) == 2
    files.write(ORDERS, 7, [record(7)], 1)
    assert files.room(ORDERS) == 1
    files.write(ORDERS, 8, [record(8)], 1)
    assert files.room(ORDERS) == 2
    files.write(ORDERS, 9, [record(9)], 1)
    files.finish_partition(ORDERS)
    assert [path.name for path in files.files] == [
        "orders-00002-00000000000000000007.jsonl",
        "orders-00002-00000000000000000009.jsonl",
    ]


def test_what_failed_leaves_nothing(tmp_path: Path) -> None:
    files = output(tmp_path)
    files.write(ORDERS, 0, [record(0)], 1)
    assert len(list(tmp_path.iterdir())) == 1
    files.discard()
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last bytes of a file find no room: neither then nor later does a part of it stay."""

    def close(self: JsonLinesWriter) -> None:
        self._file.close()
        raise OSError(errno.ENOSPC, "No space left on device")

    files = output(tmp_path)
    for number in range(2):
        files.write(TopicPartition("orders", number), 0, [record(0)], 1)
    monkeypatch.setattr(JsonLinesWriter, "close", close)
    with pytest.raises(OSError, match="No space"):
        files.finish()
    assert len(list(tmp_path.iterdir())) == 2
    files.discard()
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_replaced_unasked(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("mine")
    with pytest.raises(ArchiveError, match="--overwrite"):
        output(path, single=True)
    with pytest.raises(ArchiveError, match="--overwrite"):
        output(tmp_path)
    with pytest.raises(ArchiveError, match="is a directory"):
        output(tmp_path, single=True, overwrite=True)
    with pytest.raises(ArchiveError, match="must be a directory"):
        output(path)
    assert path.read_text() == "mine"
    output(path, single=True, overwrite=True).finish()
    assert path.read_text() == ""

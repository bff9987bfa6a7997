"""A file with several names never gets other bytes."""

from __future__ import annotations

from pathlib import Path

from barnabas.log.files import DiskFiles
from barnabas.log.sharing import copy_start, cut_shared


def test_cut_of_a_shared_file(tmp_path: Path) -> None:
    files, one, two = DiskFiles(), tmp_path / "one", tmp_path / "two"
    one.write_bytes(b"0123456789")
    assert not cut_shared(files, str(one), 4), "it has one name: whoever cuts it may do so"
    files.link(str(one), str(two))
    assert cut_shared(files, str(one), 4)
    assert one.read_bytes() == b"0123"
    assert two.read_bytes() == b"0123456789"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "two"]


def test_copy_ends_where_the_source_does(tmp_path: Path) -> None:
    files, one, two = DiskFiles(), tmp_path / "one", tmp_path / "two"
    one.write_bytes(b"0123")
    source = files.open(str(one))
    copy_start(files, source, str(two), 100)
    source.close()
    assert two.read_bytes() == b"0123"

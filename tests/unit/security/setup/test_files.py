"""Secret files: for their owner alone, whole, and never overwritten."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from barnabas.model.errors import ConfigError
from barnabas.security.setup.files import create, make_private, replace


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_files_and_directories_are_private_whatever_the_mask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        make_private(tmp_path / "a" / "b")
        assert create(tmp_path / "a" / "b" / "file", b"one")
    finally:
        os.umask(before)
    assert mode(tmp_path / "a" / "b") == 0o700
    assert mode(tmp_path / "a" / "b" / "file") == 0o600


def test_a_file_that_exists_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "file"
    assert create(path, b"one")
    assert not create(path, b"two")
    assert path.read_bytes() == b"one"
    assert [*tmp_path.iterdir()] == [path]


def test_of_two_who_create_a_file_one_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"theirs")
    monkeypatch.setattr(Path, "exists", lambda _: False)
    assert not create(path, b"ours")
    assert path.read_bytes() == b"theirs"
    assert [*tmp_path.iterdir()] == [path]


def test_what_a_killed_process_left_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / f".file.{os.getpid()}").write_bytes(b"half")
    assert create(tmp_path / "file", b"whole")
    assert [*tmp_path.iterdir()] == [tmp_path / "file"]


def test_replacing_keeps_the_mode_and_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "file"
    create(path, b"one")
    replace(path, b"two")
    assert path.read_bytes() == b"two"
    assert mode(path) == 0o600
    assert [*tmp_path.iterdir()] == [path]


def test_a_directory_that_others_may_enter_is_rejected(tmp_path: Path) -> None:
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o755)
    with pytest.raises(ConfigError, match=r"has mode 0755.*chmod 700"):
        make_private(open_to_all)
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="is not a directory"):
        make_private(tmp_path / "file")
    open_to_all.chmod(0o700)
    make_private(open_to_all)
    assert mode(open_to_all) == 0o700

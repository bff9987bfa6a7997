"""Files are renamed by size, and a failed one is opened again."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.logging.rotating_file import RotatingFile


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(directory.iterdir())}


def test_a_file_is_renamed_before_it_would_be_too_large(tmp_path: Path) -> None:
    file = RotatingFile(tmp_path / "server.log", 10, 2)
    for text in (b"aaaa\n", b"bbbb\n", b"cccc\n", b"dddddddddddd\n", b"eeee\n"):
        file.write(text)
    file.close()
    assert contents(tmp_path) == {
        "server.log": b"eeee\n",
        "server.log.1": b"dddddddddddd\n",
        "server.log.2": b"cccc\n",
    }


def test_without_backups_a_file_is_begun_again(tmp_path: Path) -> None:
    file = RotatingFile(tmp_path / "server.log", 8, 0)
    file.write(b"aaaaaa\n")
    file.write(b"bbbbbb\n")
    file.close()
    assert contents(tmp_path) == {"server.log": b"bbbbbb\n"}


def test_an_existing_file_is_continued(tmp_path: Path) -> None:
    (tmp_path / "server.log").write_bytes(b"12345678\n")
    file = RotatingFile(tmp_path / "server.log", 10, 1)
    file.open()
    file.write(b"9\n")
    file.close()
    assert contents(tmp_path) == {"server.log": b"9\n", "server.log.1": b"12345678\n"}


def test_after_a_failure_the_file_is_opened_again(tmp_path: Path) -> None:
    directory = tmp_path / "logs"
    file = RotatingFile(directory / "server.log", 100, 1)
    with pytest.raises(FileNotFoundError):
        file.write(b"lost\n")
    directory.mkdir()
    file.write(b"kept\n")
    file.close()
    assert contents(directory) == {"server.log": b"kept\n"}

"""Passwords are typed twice, or read from a file; what is wrong with them is told without them."""

from __future__ import annotations

import getpass
import io
import os
import sys
from pathlib import Path

import pytest

from barnabas.cli.password import new_password
from barnabas.model.errors import InvalidValueError


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a user will type, in order."""
    answers: list[str] = []
    monkeypatch.setattr(getpass, "getpass", lambda prompt: answers.pop(0))
    return answers


def test_a_password_is_typed_twice(typed: list[str]) -> None:
    typed += ["se=cr,et ☂", "se=cr,et ☂"]
    assert new_password("ada", None) == "se=cr,et ☂"
    assert typed == []


def test_what_is_typed_wrong_changes_nothing(typed: list[str]) -> None:
    typed += ["hush", "hash"]
    with pytest.raises(InvalidValueError, match="the two passwords differ") as failure:
        new_password("ada", None)
    assert "hush" not in str(failure.value)
    typed[:] = [""]
    with pytest.raises(InvalidValueError, match="empty"):
        new_password("ada", None)


def test_without_a_terminal_nothing_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python would read, and show, the password where there is no terminal to hide it."""

    def no_terminal(path: str, *more: object) -> int:
        raise OSError(path)

    monkeypatch.setattr(os, "open", no_terminal)
    monkeypatch.setattr(sys, "stdin", io.StringIO("hush\nhush\n"))
    with pytest.raises(InvalidValueError, match="use --password-file FILE"):
        new_password("ada", None)


@pytest.mark.parametrize("content", ["se cret", "se cret\n", "se cret\r\n"])
def test_a_file_has_it_in_its_only_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str
) -> None:
    path = tmp_path / "password"
    path.touch(0o600)
    path.write_bytes(content.encode())
    assert new_password("ada", str(path)) == "se cret"
    assert capsys.readouterr().err == ""


def test_standard_input_is_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("☂\n".encode())))
    assert new_password("ada", "-") == "☂"


def test_a_file_that_others_can_read_is_warned_about(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "password"
    path.write_text("hush")
    path.chmod(0o644)
    assert new_password("ada", str(path)) == "hush"
    warning = f"--password-file {path}: others can read it; use: chmod 600 {path}"
    assert capsys.readouterr().err == f"barnabas: {warning}\n"


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "the password is empty"),
        (b"\n", "the password is empty"),
        (b"one\ntwo\n", "must have one line"),
        (b"\xff", "not UTF-8"),
    ],
)
def test_what_is_no_password_is_named(tmp_path: Path, content: bytes, complaint: str) -> None:
    path = tmp_path / "password"
    path.touch(0o600)
    path.write_bytes(content)
    with pytest.raises(InvalidValueError, match=f"^--password-file {path}: {complaint}"):
        new_password("ada", str(path))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match="none: no such file or directory"):
        new_password("ada", str(tmp_path / "none"))

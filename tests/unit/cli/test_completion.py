"""What the Tab key finds, asked of the shells themselves."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from barnabas.cli.completion import SHELLS, script
from barnabas.cli.main import COMMANDS, main

shtab = pytest.importorskip("shtab", reason="pip install shtab")

DEADLINE_S = 60.0


@pytest.fixture(scope="session")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory with the scripts of all shells."""
    directory = tmp_path_factory.mktemp("completion")
    for shell in SHELLS:
        name = "_barnabas" if shell == "zsh" else shell  # zsh looks for it by this name
        (directory / name).write_text(script(shell))
    (directory / "there.properties").touch()
    (directory / "folder").mkdir()
    return directory


def shell(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def asked(command: list[str], directory: Path) -> list[str]:
    done = subprocess.run(
        command, cwd=directory, text=True, capture_output=True, timeout=DEADLINE_S, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return [line.split("\t")[0].strip() for line in done.stdout.splitlines()]


def bash(line: str, scripts: Path) -> list[str]:
    """Return the candidates for the last word of a line."""
    words = line.split(" ")
    quoted = " ".join(f"'{word}'" for word in words)
    asking = f"""
        source ./bash
        COMP_WORDS=({quoted}) COMP_CWORD={len(words) - 1}
        COMP_LINE='{line}' COMP_POINT={len(line)}
        completes=$(complete -p barnabas | sed 's/.*-F \\([^ ]*\\) .*/\\1/')
        $completes barnabas '{words[-1]}' '{words[-2]}'
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    return asked([shell("bash"), "--norc", "-c", asking], scripts)


def fish(line: str, scripts: Path) -> list[str]:
    """Return the candidates for the last word of a line."""
    asking = f"function barnabas; end; source ./fish; complete -C '{line}'"
    return asked([shell("fish"), "--no-config", "-c", asking], scripts)


def zsh(line: str, scripts: Path) -> str:
    """Return the line after the Tab key, as a terminal of zsh has it."""
    terminal, inside = pty.openpty()
    process = subprocess.Popen(
        [shell("zsh"), "-f", "-i"],
        cwd=scripts,
        env={**os.environ, "TERM": "dumb", "ZDOTDIR": str(scripts)},
        stdin=inside,
        stdout=inside,
        stderr=inside,
        start_new_session=True,
    )
    os.close(inside)
    try:
        setup = "zstyle ':completion:*' insert-tab false; fpath=($PWD $fpath); PS1=;"
        setup += "autoload -U compinit; compinit -u -D;"
        setup += "barnabas() { print -r -- '<'$*'>' }; print re''ady"
        os.write(terminal, f"{setup}\n".encode())
        _until(b"\nready", terminal)
        os.write(terminal, f"{line}\t\n".encode())
        said = _until(b">\r\n", terminal)
        return said.decode().rpartition("<")[2].partition(">")[0].strip()
    finally:
        process.kill()
        process.wait()
        os.close(terminal)


def _until(end: bytes, terminal: int) -> bytes:
    said = b""
    deadline_s = time.monotonic() + DEADLINE_S
    while end not in said:
        assert time.monotonic() < deadline_s, said
        if select.select([terminal], [], [], 1.0)[0]:
            said += os.read(terminal, 4096)
    return said


@pytest.mark.parametrize("ask", [bash, fish])
def test_commands_actions_options_and_choices(ask: object, scripts: Path) -> None:
    def found(line: str) -> set[str]:
        return set(ask(line, scripts))  # type: ignore[operator]

    assert {command.name for command in COMMANDS} | {"kafka-topics"} <= found("barnabas ")
    assert found("barnabas top") == {"top", "topics"}
    assert found("barnabas perf ") >= {"produce", "consume", "latency"}
    assert found("barnabas topics create orders --part") == {"--partitions"}
    assert found("barnabas perf produce orders --codec z") == {"zstd"}
    assert "there.properties" in found("barnabas topics list --command-config the")
    assert {each.rstrip("/") for each in found("barnabas start --data-dir fol")} == {"folder"}


def test_zsh_completes_what_is_typed(scripts: Path) -> None:
    assert zsh("barnabas comp", scripts) == "completion"
    assert zsh("barnabas perf lat", scripts) == "perf latency"
    assert zsh("barnabas topics create orders --part", scripts) == (
        "topics create orders --partitions"
    )


def test_the_command_prints_the_script(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "bash"]) == 0
    said = capsys.readouterr()
    assert (said.out, said.err) == (script("bash") + "\n", "")


def test_other_shells_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "tcsh"]) == 2
    assert "invalid choice: 'tcsh'" in capsys.readouterr().err


def test_without_the_library_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "shtab", None)
    assert main(["completion", "fish"]) == 1
    assert capsys.readouterr().err == (
        "barnabas completion: the package shtab is not installed: pip install shtab\n"
    )

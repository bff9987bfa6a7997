"""The command line as a whole: what is imported, what failures look like, which exit codes come."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

from barnabas.cli.main import COMMANDS, Command, main, overview, parser

SOURCE = Path(__file__).parents[3] / "src"
THERE = [command for command in COMMANDS if find_spec(command.module) is not None]


def python(*words: str, **options: object) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    return subprocess.run(
        [sys.executable, *words],
        env=environment,
        text=True,
        capture_output=True,
        timeout=60,
        check=False,
        **options,  # type: ignore[call-overload]
    )


def imported_by(statement: str) -> set[str]:
    """Return the modules that a fresh interpreter has loaded after a statement."""
    done = python("-c", f"import sys\n{statement}\nprint(*sys.modules, file=sys.stderr)")
    assert done.returncode == 0, done.stderr
    return set(done.stderr.split())


def test_help_imports_no_command_and_nothing_heavy() -> None:
    modules = imported_by("from barnabas.cli.main import main; main(['--help'])")
    assert {name for name in modules if name.startswith("barnabas")} == {
        "barnabas",
        "barnabas.cli",
        "barnabas.cli.interruption",
        "barnabas.cli.main",
    }
    assert modules.isdisjoint({"argparse", "asyncio", "rich", "uvloop", "dataclasses", "json"})


def test_signals_are_taken_before_anything_else_is_imported() -> None:
    scripts = tomllib.loads((SOURCE.parent / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts == {"barnabas": "barnabas.cli.console:main"}
    before = imported_by("import sys")
    modules = imported_by("import barnabas.cli.console") - before
    assert modules - {"__future__", "atexit", "_signal"} == {
        "barnabas",
        "barnabas.cli",
        "barnabas.cli.console",
        "barnabas.cli.interruption",
    }


def test_a_command_imports_itself_alone_and_no_drawing() -> None:
    modules = imported_by("from barnabas.cli.main import *; parser(COMMANDS[1])")
    assert "barnabas.cli.topics" in modules
    others = {command.module for command in COMMANDS} - {"barnabas.cli.topics"}
    heavy = {"rich", "uvloop", "cramjam", "pyarrow", "barnabas.records"}
    heavy |= {"barnabas.broker", "barnabas.log", "barnabas.config"}
    assert modules.isdisjoint(others | heavy)


def test_only_the_messages_that_are_spoken_are_imported() -> None:
    modules = imported_by("from barnabas.cli.main import *; parser(COMMANDS[1])")
    messages = {name for name in modules if name.startswith("barnabas.wire.messages.")}
    assert messages == {
        f"barnabas.wire.messages.{name}"
        for name in (
            "alter_replica_log_dirs",
            "api_versions",
            "create_partitions",
            "create_topics",
            "delete_records",
            "delete_topics",
            "describe_log_dirs",
            "list_offsets",
            "metadata",
        )
    }


def test_the_overview_lists_every_command() -> None:
    text = overview()
    for command in COMMANDS:
        assert f"  {command.name} " in text
        assert command.summary in text


@pytest.mark.parametrize("words", [[], ["--help"], ["-h"], ["help"]])
def test_help_is_no_failure(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 0
    assert capsys.readouterr().out == overview()


@pytest.mark.parametrize("command", THERE, ids=lambda command: command.name)
def test_every_command_explains_itself_with_examples(
    command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command.name, "--help"]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"usage: barnabas {command.name}")
    for action in _actions(command):
        assert main([command.name, action, "--help"]) == 0
        help_text = capsys.readouterr().out
        assert f"barnabas {command.name} {action}" in help_text.partition("examples:")[2]
    if not _actions(command):
        assert f"barnabas {command.name}" in text.partition("examples:")[2]


def _actions(command: Command) -> list[str]:
    import argparse

    for action in parser(command)._actions:
        if isinstance(action, argparse._SubParsersAction):
            return list(action.choices)
    return []


def test_the_version_is_the_packages(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("barnabas 0.")


def test_an_unknown_command_is_misuse(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topic"]) == 2
    assert "unknown command 'topic'; commands: start, topics," in capsys.readouterr().err


def test_wrong_arguments_are_misuse(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topics", "create", "t", "--partitions", "0"]) == 2
    assert "'0' is not a whole number of at least 1" in capsys.readouterr().err


def test_no_broker_is_one_line_with_the_next_step(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topics", "list", "--bootstrap", "127.0.0.1:1"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == (
        "barnabas topics: cannot connect to 127.0.0.1:1: connection refused; "
        "is a broker running there? start one with: barnabas start\n"
    )


def test_a_bad_address_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topics", "list", "--bootstrap", "a:b:c"]) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_the_bootstrap_comes_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BARNABAS_BOOTSTRAP", "127.0.0.1:2")
    assert main(["topics", "list"]) == 1
    assert "127.0.0.1:2" in capsys.readouterr().err


def test_a_missing_file_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["produce", "t", "--file", "/no/such/file"]) == 1
    assert capsys.readouterr().err.startswith("barnabas produce: [Errno 2] No such file")


def test_interruption_is_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    done = python(
        "-c",
        "import sys, barnabas.cli.main as m\n"
        "def interrupted(words): raise KeyboardInterrupt\n"
        "m._dispatch = interrupted\n"
        "sys.exit(m.main(['x']))",
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_a_reader_that_stops_reading_is_no_failure() -> None:
    command = f"{sys.executable} -m barnabas.cli --help | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", f"sleep 0; for i in 1 2 3; do {command}; done"],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        text=True,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert set(done.stdout.split()) == {"0"}
    assert done.stderr == ""
    assert signal.SIGPIPE  # the shell reports 141 if the default action were left in place

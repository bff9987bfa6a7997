from __future__ import annotations

import sys
from types import ModuleType

import pytest

from barnabas.cli.kafka.command import run
from barnabas.cli.kafka.flags import Flag, Flags, Given
from barnabas.cli.kafka.tools import Tool
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError, RequestError

TOOL = Tool("kafka-things", "tests_kafka_things")


class Things(ModuleType):
    """The module of a tool."""

    FLAGS = Flags(
        "Does things.",
        (
            Flag("--list", help="list them"),
            Flag("--old", "X", "as before", inert="it is always so"),
        ),
        one_of=(("list",),),
    )
    raises: BaseException | None = None
    code: int | None = None

    def run(self, given: Given) -> int | None:
        if self.raises is not None:
            raise self.raises
        print("one thing")
        return self.code


@pytest.fixture
def things(monkeypatch: pytest.MonkeyPatch) -> Things:
    module = Things(TOOL.module)
    monkeypatch.setitem(sys.modules, TOOL.module, module)
    return module


def test_it_does_its_work(things: Things, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(TOOL, ["--list"]) == 0
    assert capsys.readouterr() == ("one thing\n", "")
    things.code = 1
    assert run(TOOL, ["--list"]) == 1


def test_what_has_no_effect_is_said(things: Things, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(TOOL, ["--list", "--old", "x", "more", "words"]) == 0
    out, err = capsys.readouterr()
    assert out == "one thing\n"
    assert err.splitlines() == [
        "kafka-things: --old has no effect: it is always so",
        "kafka-things: ignored: more words",
    ]


def test_misuse_exits_with_1(things: Things, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(TOOL, ["--lits"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("lits is not a recognized option; did you mean --list? (see: ")
    assert err.count("\n") == 1


def test_no_words_at_all_print_the_help(things: Things, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(TOOL, []) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("usage: barnabas kafka-things [OPTION]...")


def test_help_and_version(things: Things, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(TOOL, ["--help"]) == 0
    assert capsys.readouterr().out.startswith("usage: barnabas kafka-things")
    assert run(TOOL, ["--version"]) == 0
    number, name = capsys.readouterr().out.split()
    assert number[0].isdecimal()
    assert name == "(Barnabas)"


def test_a_failure_is_one_line(things: Things, capsys: pytest.CaptureFixture[str]) -> None:
    things.raises = RequestError(ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 'a' already\nexists.")
    things.raises.add_note("use another name")
    assert run(TOOL, ["--list"]) == 1
    assert capsys.readouterr() == ("", "Error: Topic 'a' already exists.; use another name\n")


def test_a_failure_may_belong_on_standard_output(
    things: Things, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    things.raises = FileNotFoundError(2, "No such file or directory", "x.json")
    monkeypatch.setattr(things, "FAILURE", "Error while doing things : ", raising=False)
    monkeypatch.setattr(things, "FAILS_ON_STDOUT", True, raising=False)
    assert run(TOOL, ["--list"]) == 1
    out, err = capsys.readouterr()
    assert (out, err) == (
        "Error while doing things : [Errno 2] No such file or directory: 'x.json'\n",
        "",
    )


def test_a_mistake_of_ours_is_not_hidden(things: Things) -> None:
    things.raises = ZeroDivisionError()
    with pytest.raises(ZeroDivisionError):
        run(TOOL, ["--list"])
    things.raises = BarnabasError()
    assert run(TOOL, ["--list"]) == 1


def test_a_tool_may_read_its_words_itself(
    things: Things, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(things, "main", lambda words: len(words), raising=False)
    assert run(TOOL, ["a", "b"]) == 2

"""`barnabas consume` against a real broker: where it starts, where it stops, what it prints."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from barnabas.cli import consume
from barnabas.cli.main import main


@pytest.fixture
def letters(topic: str, produce: Any) -> str:
    """A topic with a, b, c at offsets 0 to 2 of partition 0, one hour apart, c being new."""
    for value, age in (("a", "2h"), ("b", "1h"), ("c", "0s")):
        assert produce(topic, f"{value}\n", "--partition", "0", "--timestamp", age).code == 0
    return topic


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], "a b c"),
        (["--from", "beginning"], "a b c"),
        (["--from", "1"], "b c"),
        (["--from", "90m"], "b c"),
        (["--from", "end"], ""),
        (["--from", "@99999999999999"], ""),
        (["--max-messages", "2"], "a b"),
        (["--partition", "1"], ""),
        (["--isolation", "committed"], "a b c"),
    ],
)
def test_where_it_starts_and_stops(
    barnabas: Any, letters: str, words: list[str], expected: str
) -> None:
    run = barnabas("consume", letters, "--exit-at-end", *words)
    assert (run.code, run.out.split(), run.err) == (0, expected.split(), "")


def test_a_group_goes_on_where_it_was(barnabas: Any, letters: str) -> None:
    """What one member printed, the next one does not print again."""
    words = ("--group", f"g-{letters}", "--from", "beginning")
    first = barnabas("consume", letters, *words, "--max-messages", "2")
    assert (first.code, first.out.split(), first.err) == (0, ["a", "b"], "")
    second = barnabas("consume", letters, *words, "--exit-at-end")
    assert (second.code, second.out.split(), second.err) == (0, ["c"], "")
    third = barnabas("consume", letters, *words, "--exit-at-end")
    assert (third.code, third.out, third.err) == (0, "", "")


def test_what_makes_no_sense_in_a_group_is_told(barnabas: Any, letters: str) -> None:
    run = barnabas("consume", letters, "--group", "g", "--partition", "0")
    assert run.code == 1
    assert "the group assigns the partitions" in run.err
    run = barnabas("consume", letters, "--group", "g", "--from", "1")
    assert run.code == 1
    assert "barnabas groups reset-offsets" in run.err


def test_a_format_is_followed(barnabas: Any, letters: str) -> None:
    words = ("--format", r"%t/%p/%o:%k=%v\t%V%%\n", "--null-marker", "NULL", "--max-messages", "1")
    run = barnabas("consume", letters, "--exit-at-end", *words)
    assert run.out == f"{letters}/0/0:NULL=a\t1%\n"


def test_a_wrong_format_is_misuse(barnabas: Any, letters: str) -> None:
    run = barnabas("consume", letters, "--format", "%q")
    assert run.code == 2
    assert "unknown %q" in run.err


def test_an_offset_outside_of_the_log_is_moved_and_told(barnabas: Any, letters: str) -> None:
    barnabas("topics", "delete-records", letters, "--before", "2", "--partition", "0")
    run = barnabas("consume", letters, "--exit-at-end", "--from", "0", "--partition", "0")
    assert run.out == "c\n"
    assert run.err == f"barnabas consume: {letters}-0 has no offset 0; going on from 2\n"


def test_following_prints_what_comes_later(
    barnabas: Any, letters: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = tmp_path / "more"
    more.write_text("d\n")
    words = ["produce", letters, "--file", str(more), "--partition", "0"]
    later = threading.Thread(target=main, args=(words,))
    print_delivery = consume._print

    def print_then_produce(*arguments: Any) -> int | None:
        if not later.ident:
            later.start()
        return print_delivery(*arguments)

    monkeypatch.setattr(consume, "_print", print_then_produce)
    run = barnabas("consume", letters, "--from", "2", "--partition", "0", "--max-messages", "2")
    later.join()
    assert run.out.split() == ["c", "d"]


def test_all_partitions_are_read(barnabas: Any, topic: str, produce: Any) -> None:
    for partition in "012":
        produce(topic, f"{partition}\n", "--partition", partition)
    run = barnabas("consume", topic, "--exit-at-end")
    assert sorted(run.out.split()) == ["0", "1", "2"]


def test_a_missing_topic_is_told_with_the_next_step(barnabas: Any) -> None:
    run = barnabas("consume", "not-there")
    assert run.code == 1
    assert run.err == (
        "barnabas consume: topic 'not-there' does not exist (UNKNOWN_TOPIC_OR_PARTITION); "
        "create it with: barnabas topics create not-there\n"
    )


def start(topic: str, *words: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "barnabas.cli", "consume", topic, *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_interruption_ends_it_with_a_line_beside_the_records(letters: str) -> None:
    with start(letters, "--from", "beginning") as process:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(3)] == [b"a\n", b"b\n", b"c\n"]
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (130, b"", b"barnabas consume: interrupted\n")


def test_a_reader_that_has_seen_enough_ends_it_quietly(topic: str, produce: Any) -> None:
    assert produce(topic, "".join(f"{n:0100}\n" for n in range(20_000))).code == 0
    with start(topic, "--exit-at-end") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=30) == 0

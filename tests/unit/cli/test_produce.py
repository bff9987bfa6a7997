"""`barnabas produce` against a real broker: what arrives, what is refused, what is told."""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
from typing import Any

import pytest

from barnabas.cli.produce import Report, row_reader
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError


def consumed(barnabas: Any, topic: str, *words: str) -> list[dict[str, Any]]:
    run = barnabas("consume", topic, "--exit-at-end", "--json", *words)
    assert (run.code, run.err) == (0, "")
    return [json.loads(line) for line in run.out.splitlines()]


def test_lines_arrive_in_order_and_are_summed_up(barnabas: Any, topic: str, produce: Any) -> None:
    text = "".join(f"{number}\n" for number in range(5000))
    run = produce(topic, text, "--partition", "2")
    assert (run.code, run.out) == (0, "")
    assert re.fullmatch(
        rf"5000 records sent to {topic} in \d+\.\d\d s \(\d+ records/s\): "
        r"partition 2 offsets 0-4999\n",
        run.err,
    )
    records = consumed(barnabas, topic)
    assert [record["value"] for record in records] == text.split()
    assert {record["partition"] for record in records} == {2}


def test_lines_without_keys_all_arrive(barnabas: Any, topic: str, produce: Any) -> None:
    assert produce(topic, "a\nb\nlast without end").code == 0
    values = sorted(record["value"] for record in consumed(barnabas, topic))
    assert values == ["a", "b", "last without end"]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_keys_nulls_headers_and_codecs(barnabas: Any, topic: str, produce: Any, codec: str) -> None:
    run = produce(
        *(topic, "a:1\nb:NULL\nNULL:3\n", "--key-separator", ":", "--null-marker", "NULL"),
        *("--header", "h=x=y", "--timestamp", "@1700000000000", "--codec", codec),
    )
    assert run.code == 0, run.err
    records = sorted(consumed(barnabas, topic), key=lambda record: record["key"] or "")
    assert [(record["key"], record["value"]) for record in records] == [
        (None, "3"),
        ("a", "1"),
        ("b", None),
    ]
    assert all(record["headers"] == [["h", "x=y"]] for record in records)
    assert all(record["timestamp"] == 1_700_000_000_000 for record in records)


def test_machines_hear_where_each_line_went(topic: str, produce: Any) -> None:
    produce(topic, "before\n", "--partition", "1")
    run = produce(topic, "a\nb\n", "--partition", "1", "--json")
    assert [json.loads(line) for line in run.out.splitlines()] == [
        {"line": 1, "topic": topic, "partition": 1, "offset": 1},
        {"line": 2, "topic": topic, "partition": 1, "offset": 2},
    ]


def test_keys_choose_the_partitions_that_other_clients_choose(
    barnabas: Any, topic: str, produce: Any
) -> None:
    # The hash that Kafka's own clients have for these keys.
    hashes = {"21": -973932308, "foobar": -790332482, "abc": 479470107}
    produce(topic, "".join(f"{key}:\n" for key in hashes), "--key-separator", ":")
    places = {record["key"]: record["partition"] for record in consumed(barnabas, topic)}
    assert places == {key: (number & 0x7FFFFFFF) % 3 for key, number in hashes.items()}


def test_without_acknowledgements_records_still_arrive(
    barnabas: Any, topic: str, produce: Any
) -> None:
    run = produce(topic, "a\n", "--acks", "0", "--partition", "0")
    assert run.err.startswith(f"1 record sent to {topic}")
    assert "offsets" not in run.err
    # The broker takes requests of a connection in order; ours was closed after the last one, so
    # read until the record is there.
    run = barnabas("consume", topic, "--from", "beginning", "--max-messages", "1")
    assert run.out == "a\n"


def test_a_line_without_the_separator_is_named_and_the_rest_is_sent(
    barnabas: Any, topic: str, produce: Any
) -> None:
    run = produce(topic, "a:1\nbad\nb:2\n", "--key-separator", ":")
    assert run.code == 1
    complaint, summary = run.err.splitlines()
    assert complaint == "barnabas produce: line 2 was not sent: it has no key separator ':'"
    assert summary.startswith("2 records sent to")
    assert "1 failed" in summary
    assert len(consumed(barnabas, topic)) == 2


def test_a_topic_that_cannot_take_a_record_says_why(
    barnabas: Any, topic: str, produce: Any
) -> None:
    barnabas("configs", "alter", "--topic", topic, "--set", "cleanup.policy=compact")
    run = produce(topic, "without a key\n")
    assert run.code == 1
    assert "line 1 was not sent: " in run.err
    assert "key" in run.err


def test_batches_too_large_for_the_topic_are_halved(
    barnabas: Any, topic: str, produce: Any
) -> None:
    barnabas("configs", "alter", "--topic", topic, "--set", "max.message.bytes=2000")
    lines = [str(number).rjust(500, "-") for number in range(20)]
    run = produce(topic, "\n".join(lines) + "\n" + "x" * 3000 + "\n", "--partition", "0")
    assert "line 21 was not sent: " in run.err
    assert "(MESSAGE_TOO_LARGE)" in run.err
    assert [record["value"] for record in consumed(barnabas, topic)] == lines


def test_a_partition_that_does_not_exist_is_named(topic: str, produce: Any) -> None:
    run = produce(topic, "a\n", "--partition", "9")
    assert (run.code, run.err) == (
        1,
        f"barnabas produce: topic '{topic}' has partitions 0-2, not 9\n",
    )


def arguments(**given: Any) -> argparse.Namespace:
    defaults = {"header": [], "key_separator": None, "null_marker": None, "timestamp": None}
    return argparse.Namespace(**{**defaults, **given})


def test_a_line_becomes_a_row() -> None:
    assert row_reader(arguments())(b"a:b") == (None, b"a:b", (), None)
    keyed = row_reader(arguments(key_separator=b":", null_marker=b"", timestamp=9))
    assert keyed(b"a:") == (b"a", None, (), 9)
    assert keyed(b":b:c") == (None, b"b:c", (), 9)


def test_refused_records_are_told_apart_from_their_neighbours(
    capsys: pytest.CaptureFixture[str],
) -> None:
    report = Report("t", as_json=False)
    failure = RequestError(ErrorCode.INVALID_RECORD, "bad")
    report.failed([7, 8, 9], failure, {8: RequestError(ErrorCode.INVALID_RECORD, "no key")})
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].endswith(
        "line 7 was not sent: it shares a batch with line 8, which was rejected"
    )
    assert lines[1].endswith("line 8 was not sent: no key (INVALID_RECORD)")


def test_only_the_first_complaints_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    report = Report("t", as_json=False)
    for line in range(25):
        report.refused(line, "no")
    assert report.finish() == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 12
    assert lines[10] == "barnabas produce: 15 more lines were not sent"


def test_interruption_of_a_silent_source_tells_what_was_sent(
    barnabas_bootstrap: str, topic: str
) -> None:
    command = [sys.executable, "-m", "barnabas.cli", "produce", topic, "--json"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"typed\n")
        process.stdin.flush()
        # The line is sent at once, although the source stays open.
        assert json.loads(process.stdout.readline())["line"] == 1
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert re.fullmatch(rb"1 record sent to \S+ in .* s \(.*\): partition \d offsets 0-0\n", err), (
        err
    )


def test_bytes_that_are_not_text_pass_through_arguments(
    barnabas: Any, produce: Any, topic: str
) -> None:
    """A shell passes any byte; a header's name alone must be text."""
    odd = os.fsdecode(b"\xff")
    marked = produce(
        topic, "k:x\n", "--header", f"h={odd}", "--key-separator", ":", "--null-marker", odd
    )
    assert marked.code == 0, marked.err
    (record,) = consumed(barnabas, topic)
    assert record["headers"] == [["h", {"base64": "/w=="}]]
    refused = produce(topic, "x\n", "--header", f"{odd}=v")
    assert refused.code == 2
    assert "is not UTF-8" in refused.err
    assert barnabas("topics", "create", odd).code == 1

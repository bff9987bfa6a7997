"""`kafka-console-producer` and `kafka-console-consumer`: what goes in comes out."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.cli.conftest import Run
from tests.unit.cli.kafka.tool_runs import RunTool, runner

from barnabas.cli.main import main

PAIRS = ("--property", "parse.key=true", "--property", "key.separator=:")


@pytest.fixture
def send(
    barnabas_bootstrap: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Run]:
    """Run the producer; the first word is its standard input."""
    run = runner("kafka-console-producer.sh", barnabas_bootstrap, capsys)

    def sent(text: str, *words: str) -> Run:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        return run(*words)

    return sent


@pytest.fixture
def read(barnabas_bootstrap: str, capsys: pytest.CaptureFixture[str]) -> RunTool:
    return runner("kafka-console-consumer.sh", barnabas_bootstrap, capsys)


def printing(*names: str) -> list[str]:
    return [word for name in names for word in ("--property", f"print.{name}=true")]


def test_lines(send: Callable[..., Run], read: RunTool, topic: str) -> None:
    assert send("one\ntwo\n", "--topic", topic, "--timeout", "0") == (0, "", "")
    run = read("--topic", topic, "--from-beginning", "--max-messages", "2")
    assert (run.code, sorted(run.out.split())) == (0, ["one", "two"])
    assert run.err == "Processed a total of 2 messages\n"
    run = read("--include", f"{topic}|x", "--from-beginning", "--max-messages", "2")
    assert (run.code, sorted(run.out.split())) == (0, ["one", "two"])


def test_an_end_without_records(read: RunTool, topic: str) -> None:
    run = read("--topic", topic, "--from-beginning", "--timeout-ms", "50")
    assert (run.code, run.out) == (0, "")
    assert run.err.splitlines() == [
        "No record has arrived for 50 ms (--timeout-ms)",
        "Processed a total of 0 messages",
    ]


def test_keys_and_headers(
    send: Callable[..., Run], read: RunTool, topic: str, tmp_path: Path
) -> None:
    headers = (
        *("--property", "parse.headers=true", "--property", "headers.delimiter=|"),
        *("--property", "headers.key.separator==", "--property", "null.marker=NULL"),
    )
    assert send("a=1,b=NULL|k:v:w\nNULL|NULL:v\n", "--topic", topic, *PAIRS, *headers).code == 0
    file = tmp_path / "formatter.properties"
    file.write_text("print.headers=true\nkey.separator=;\nnull.literal=nil\n")
    words = ("--topic", topic, "--from-beginning", "--max-messages", "2", "--formatter-config")
    run = read(*words, str(file), *printing("key", "partition", "offset", "epoch"))
    assert sorted(line.partition("Epoch:0;")[2] for line in run.out.splitlines()) == [
        "NO_HEADERS;nil;v",
        "a:1,b:nil;k;v:w",
    ]
    assert all(line[:10] == "Partition:" and ";Offset:" in line for line in run.out.splitlines())


def test_one_partition(
    send: Callable[..., Run],
    read: RunTool,
    topic: str,
    barnabas_bootstrap: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    sticky = ("--topic", topic, "--sync", "--compression-codec", "--request-required-acks", "all")
    assert send("k:0\nk:1\nk:2\n", *sticky, *PAIRS).code == 0
    where = ("--bootstrap-server", barnabas_bootstrap, "--topic", topic)
    assert main(("kafka-get-offsets", *where)) == 0
    offsets = capsys.readouterr().out.split()
    [number] = [each.split(":")[1] for each in offsets if each.endswith(":3")]
    run = read("--topic", topic, "--partition", number, "--offset", "1", "--max-messages", "2")
    assert run.out == "1\n2\n"
    words = ("--topic", topic, "--partition", number, "--max-messages", "1")
    assert read(*words, "--from-beginning", *printing("key")).out == "k\t0\n"
    assert read(*words, "--offset", "earliest", "--property", "line.separator=;").out == "0;"
    missing = read("--topic", topic, "--partition", "7", "--max-messages", "1")
    assert (missing.code, missing.out) == (1, "")
    assert "has no partition 7" in missing.err


def test_deserializers(send: Callable[..., Run], read: RunTool, topic: str) -> None:
    assert send("k:abcd\nk:ab\n", "--topic", topic, "--sync", *PAIRS).code == 0
    number = ("--value-deserializer", "org.apache.kafka.common.serialization.IntegerDeserializer")
    words = ("--topic", topic, "--from-beginning", "--max-messages", "2", *number)
    run = read(*words)
    assert (run.code, run.out) == (1, "1633837924\n")
    run = read(*words, "--skip-message-on-error", "--enable-systest-events")
    assert (run.code, run.out) == (0, "1633837924\nshutdown_complete\n")
    assert "Error processing message, skipping: " in run.err


def test_a_line_without_a_separator(send: Callable[..., Run], read: RunTool, topic: str) -> None:
    run = send("one\n", "--topic", topic, *PAIRS)
    assert run.code == 1
    assert "No key separator found on line number 1: 'one'" in run.err
    assert send("two\n", "--topic", topic, *PAIRS, "--property", "ignore.error=true").code == 0
    run = read("--topic", topic, "--from-beginning", "--max-messages", "1", *printing("key"))
    assert run.out == "null\ttwo\n"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ((), 'Missing required argument "[topic]"'),
        (("--topic", "t", "--property"), "Option property requires an argument"),
        (("--topic", "t", "--batch-size", "big"), "Cannot parse argument 'big'"),
        (("--topic", "t", "--compression-codec", "best"), "best"),
        (("--topic", "t", "--producer.config", "none.properties"), "none.properties: no such file"),
        (("--topic", "t", "--line-reader", "my.Reader"), "Java classes cannot be loaded"),
        (
            ("--topic", "t", "--property", "a=b", "--reader-property", "a=b"),
            "Options --reader-property and --property cannot be specified together.",
        ),
    ],
)
def test_misuse_of_the_producer(
    send: Callable[..., Run], words: tuple[str, ...], text: str
) -> None:
    run = send("", *words)
    assert (run.code, run.out) == (1, "")
    assert text in run.err
    assert len(run.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--from-beginning",), "Exactly one of --include/--topic is required."),
        (("--topic", "t", "--include", "t"), "Exactly one of --include/--topic is required."),
        (("--topic", "t", "--offset", "5"), "The partition is required when offset is specified."),
        (("--topic", "t", "--partition", "0", "--offset", "some"), "'some' is incorrect"),
        (("--include", "t", "--partition", "0"), "The topic is required when partition"),
        (("--topic", "t", "--partition", "0", "--group", "g"), "group and partition cannot be"),
        (
            ("--topic", "t", "--partition", "0", "--from-beginning", "--offset", "5"),
            "Options from-beginning and offset cannot be specified together.",
        ),
        (
            ("--topic", "t", "--group", "g", "--consumer-property", "group.id=h"),
            "Detected group ids: 'g', 'h'",
        ),
        (
            ("--topic", "t", "--from-beginning", "--consumer-property", "auto.offset.reset=latest"),
            "'auto.offset.reset=latest', please remove one option",
        ),
        (("--topic", "t", "--consumer.config", "none.properties"), "none.properties: no such file"),
        (("--topic", "t", "--formatter", "no.such.Formatter"), "Java classes cannot be loaded"),
        (("--topic", "t", "--max-messages", "many"), "Cannot parse argument 'many'"),
    ],
)
def test_misuse_of_the_consumer(read: RunTool, words: tuple[str, ...], text: str) -> None:
    run = read(*words)
    assert (run.code, run.out) == (1, "")
    assert text in run.err
    assert len(run.err.splitlines()) == 1

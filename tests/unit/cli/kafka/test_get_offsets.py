"""`kafka-get-offsets`: which partitions, at which time."""

from __future__ import annotations

import pytest
from tests.unit.cli.conftest import Barnabas, Produce
from tests.unit.cli.kafka.tool_runs import RunTool, runner


@pytest.fixture
def offsets(barnabas_bootstrap: str, capsys: pytest.CaptureFixture[str]) -> RunTool:
    return runner("kafka-get-offsets.sh", barnabas_bootstrap, capsys)


@pytest.fixture
def filled(topic: str, produce: Produce) -> str:
    """A topic with three records in its second partition."""
    assert produce(topic, "a\nb\nc\n", "--partition", "1").code == 0
    return topic


def test_ends_by_default(offsets: RunTool, filled: str) -> None:
    assert offsets("--topic", filled).out == f"{filled}:0:0\n{filled}:1:3\n{filled}:2:0\n"


@pytest.mark.parametrize(
    ("time", "expected"),
    [("-1", 3), ("latest", 3), ("-2", 0), ("earliest", 0), ("-4", 0), ("0", 0)],
)
def test_times(offsets: RunTool, filled: str, time: str, expected: int) -> None:
    run = offsets("--topic", filled, "--partitions", "1", "--time", time)
    assert (run.code, run.out) == (0, f"{filled}:1:{expected}\n")


@pytest.mark.parametrize("time", ["-3", "max-timestamp"])
def test_the_newest_record(offsets: RunTool, filled: str, time: str) -> None:
    lines = offsets("--topic", filled, "--time", time).out.split()
    assert lines in [[f"{filled}:1:{offset}"] for offset in range(3)], "one of the same instant"


def test_no_offset_where_no_record_is_as_young(offsets: RunTool, filled: str) -> None:
    run = offsets("--topic", filled, "--time", "4102444800000")
    assert (run.code, run.out) == (0, "")


@pytest.mark.parametrize(
    ("pattern", "partitions"),
    [
        ("{}", [0, 1, 2]),
        ("{}:1", [1]),
        ("{}:0-2", [0, 1]),
        ("{}:1-", [1, 2]),
        ("{}:-2", [0, 1]),
        ("{}:0,{}:2", [0, 2]),
        ("{}.*:2,none:0", [2]),
    ],
)
def test_patterns_of_partitions(
    offsets: RunTool, filled: str, pattern: str, partitions: list[int]
) -> None:
    lines = offsets("--topic-partitions", pattern.replace("{}", filled)).out.splitlines()
    found = [int(line.split(":")[1]) for line in lines if line.startswith(f"{filled}:")]
    assert found == partitions


def test_internal_topics_are_left_out(
    offsets: RunTool, barnabas: Barnabas, barnabas_bootstrap: str, filled: str
) -> None:
    assert (
        barnabas("consume", filled, "--from", "beginning", "--exit-at-end", "--group", "g").code
        == 0
    )
    assert "__consumer_offsets:0:" in offsets().out
    assert "__consumer_offsets" not in offsets("--exclude-internal-topics").out


def test_the_old_name_of_the_brokers(
    barnabas_bootstrap: str, filled: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run = runner("kafka-get-offsets", None, capsys)
    assert run("--broker-list", barnabas_bootstrap, "--topic", f"{filled}").code == 0
    assert 'Missing required argument "[bootstrap-server]"' in run("--topic", filled).err


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--topic", "none-such"], "Could not match any topic-partitions with the specified filt"),
        (["--time", "soon"], "Malformed time argument soon. Please use -1 or latest"),
        (["--partitions", "x"], "--partitions expects a comma separated list of numeric"),
        (["--topic-partitions", "a:b:c"], "Invalid rule specification: a:b:c"),
        (["--topic-partitions", "a", "--topic", "a"], "cannot be used with --topic or --partitio"),
        (["--topic", "("], "is an invalid regex"),
    ],
)
def test_misuse(offsets: RunTool, words: list[str], text: str) -> None:
    run = offsets(*words)
    assert run.code == 1
    assert text in run.err
    assert run.out == ""

"""`kafka-producer-perf-test`, `kafka-consumer-perf-test` and `kafka-e2e-latency`: their lines."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.unit.cli.conftest import Barnabas
from tests.unit.cli.kafka.tool_runs import RunTool, runner

LINE = re.compile(
    r"\d+ records sent, \d+\.\d{6} records/sec \(\d+\.\d\d MB/sec\), \d+\.\d\d ms avg latency, "
    r"\d+\.\d\d ms max latency, \d+ ms 50th, \d+ ms 95th, \d+ ms 99th, \d+ ms 99\.9th\."
)
DATE = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d{3}"


@pytest.fixture
def produce_perf(capsys: pytest.CaptureFixture[str]) -> RunTool:
    return runner("kafka-producer-perf-test", None, capsys)


@pytest.fixture
def consume_perf(barnabas_bootstrap: str, capsys: pytest.CaptureFixture[str]) -> RunTool:
    return runner("kafka-consumer-perf-test", barnabas_bootstrap, capsys)


@pytest.fixture
def props(barnabas_bootstrap: str) -> tuple[str, ...]:
    return ("--throughput", "-1", "--producer-props", f"bootstrap.servers={barnabas_bootstrap}")


def test_rates(
    produce_perf: RunTool, consume_perf: RunTool, props: tuple[str, ...], topic: str
) -> None:
    run = produce_perf("--topic", topic, "--num-records", "50", "--record-size", "10", *props)
    assert (run.code, run.err) == (0, "")
    assert LINE.fullmatch(run.out.rstrip("\n"))
    assert run.out.startswith("50 records sent, ")
    run = consume_perf("--topic", topic, "--messages", "50")
    head, line = run.out.splitlines()
    assert head == (
        "start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, "
        "rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
    )
    assert re.fullmatch(
        rf"{DATE}, {DATE}, 0\.0005, [\d.]+, 50, [\d.]+, \d+, \d+, [\d.]+, [\d.]+", line
    )
    run = consume_perf("--topic", topic, "--messages", "50", "--hide-header")
    assert len(run.out.splitlines()) == 1


def test_payloads(
    produce_perf: RunTool, props: tuple[str, ...], topic: str, tmp_path: Path, barnabas: Barnabas
) -> None:
    file = tmp_path / "payloads"
    file.write_text("one\none\n")
    run = produce_perf(
        *("--topic", topic, "--num-records", "3", "--payload-file", str(file), *props),
        *("acks=all", "linger.ms=0", "--transactional-id", topic),
    )
    first, second, line = run.out.splitlines()
    assert first == f"Reading payloads from: {file}"
    assert second == "Number of messages read: 2"
    assert line.startswith("3 records sent, ")
    assert barnabas("consume", topic, "--exit-at-end", "--from", "beginning").out == "one\n" * 3
    words = ("--topic", topic, "--num-records", "3", "--payload-monotonic", "--print-metrics")
    run = produce_perf(*words, *props)
    assert "Metric Name" in run.out
    printed = barnabas("consume", topic, "--exit-at-end", "--from", "beginning").out
    assert {"0", "1", "2"} < set(printed.split())


SMALL = ("--num-records", "5", "--throughput", "-1")
NOWHERE = ("--producer-props", "bootstrap.servers=127.0.0.1:1")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--num-records", "5"), 'Missing required argument "[throughput]"'),
        (SMALL, "exactly one"),
        ((*SMALL, "--record-size", "5"), "Either --producer-props or --producer.config must"),
        ((*SMALL, "--record-size", "0", *NOWHERE), "should be greater than zero"),
        ((*SMALL, "--record-size", "x", *NOWHERE), "'x'"),
        ((*SMALL, "--payload-file", "none-such", *NOWHERE), "none-such"),
        ((*SMALL, "--record-size", "5", *NOWHERE, "bootstrap.timeout.ms=1"), "127.0.0.1:1"),
    ],
)
def test_misuse_of_the_producer(produce_perf: RunTool, words: tuple[str, ...], text: str) -> None:
    run = produce_perf("--topic", "t", *words)
    assert run.code == 1
    assert text in run.err
    assert len(run.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--topic", "t"), 'Missing required argument "[messages]"'),
        (("--messages", "5"), "Exactly one of --topic/--include is required."),
        (("--topic", "t", "--messages", "5", "--reporting-interval", "0"), "greater than 0"),
    ],
)
def test_misuse_of_the_consumer(consume_perf: RunTool, words: tuple[str, ...], text: str) -> None:
    run = consume_perf(*words)
    assert (run.code, run.out) == (1, "")
    assert text in run.err


def test_latency(barnabas_bootstrap: str, capsys: pytest.CaptureFixture[str], topic: str) -> None:
    tool = runner("kafka-e2e-latency", None, capsys)
    run = tool(barnabas_bootstrap, topic, "3", "all", "64")
    first, average, percentiles = run.out.splitlines()
    assert run.code == 0
    assert re.fullmatch(r"0\t[\d.e-]+", first)
    assert re.fullmatch(r"Avg latency: \d+\.\d{4} ms", average)
    assert re.fullmatch(r"Percentiles: 50th = \d+, 99th = \d+, 99\.9th = \d+", percentiles)
    assert tool(barnabas_bootstrap, topic).err.startswith("USAGE: kafka-e2e-latency broker_list")
    assert "requires synchronous" in tool(barnabas_bootstrap, topic, "3", "0", "64").err
    assert "message_size_bytes 5: must be" in tool(barnabas_bootstrap, topic, "3", "1", "5").err

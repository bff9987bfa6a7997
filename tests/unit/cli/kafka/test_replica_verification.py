"""`kafka-replica-verification`: what it says of replicas, until it is stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.cli.conftest import Produce
from tests.unit.cli.kafka.tool_runs import runner
from tools.processes import wait_for_line

from barnabas.cli.kafka.replica_comparison import DifferentOffsets, Fetched, matched
from barnabas.model.ids import TopicPartition
from barnabas.records.builder import build_batch
from barnabas.records.message_set import scan_entries


def test_replicas_are_compared_until_a_signal(
    barnabas_bootstrap: str, topic: str, produce: Produce, tmp_path: Path
) -> None:
    assert produce(topic, "a\nb\n", "--partition", "0").code == 0
    log = tmp_path / "output"
    words = ["--broker-list", barnabas_bootstrap, "--topics-include", topic, "--time", "-2"]
    words += ["--report-interval-ms", "1", "--max-wait-ms", "50"]
    with log.open("wb") as output:
        tool = subprocess.Popen(
            [sys.executable, "-m", "barnabas.cli", "kafka-replica-verification", *words],
            stdout=output,
            stderr=output,
            env=dict(os.environ, PYTHONPATH=os.pathsep.join(filter(None, sys.path))),
        )
    try:
        wait_for_line(tool, log, "max lag is 0 for partition", 30)
        tool.send_signal(signal.SIGINT)
        assert tool.wait(20) == 130
    finally:
        tool.kill()
        tool.wait()
    first, *rest = log.read_text().splitlines()
    assert first.endswith(": verification process is started")
    assert "among 3 partitions\n" in "\n".join([*rest, ""])
    assert "Traceback" not in log.read_text()


def fetched(*batches: bytearray, high_watermark: int = 9) -> Fetched:
    return Fetched(high_watermark, scan_entries(b"".join(batches)))


def batch(offset: int, *values: bytes) -> bytearray:
    rows = [(1, None, value, ()) for value in values]
    return build_batch(rows, base_offset=offset, leader_epoch=0)


def test_which_batches_differ() -> None:
    key = TopicPartition("t", 0)
    first, second = batch(0, b"a", b"b"), batch(2, b"c")
    positions = {key: 0}
    assert matched(key, {1: fetched(first, second), 2: fetched(first)}, positions) == []
    assert positions == {key: 2}
    behind = fetched(first, second, high_watermark=2)
    assert matched(key, {1: fetched(first, second), 2: behind}, {key: 0}) == []
    [complaint] = matched(key, {1: fetched(second), 2: fetched(batch(2, b"d"))}, positions)
    assert complaint.startswith("partition t-0 has unmatched checksum at offset 2; replica 1's ")
    assert positions == {key: 3}
    with pytest.raises(DifferentOffsets, match="replica 1's offset 1 doesn't match replica 2's"):
        matched(key, {1: fetched(first), 2: fetched(batch(0, b"a"))}, {key: 0})


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ((), 'Missing required argument "[broker-list]"'),
        (("--broker-list", "BROKERS", "--topics-include", "none-such"), "No topics found."),
        (("--broker-list", "BROKERS", "--topics-include", "["), "[ is an invalid regex"),
        (("--broker-list", "BROKERS", "--time", "soon"), "Cannot parse argument 'soon'"),
        (("--broker-list", "127.0.0.1:1"), "127.0.0.1:1"),
    ],
)
def test_misuse(
    barnabas_bootstrap: str,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    text: str,
) -> None:
    given = [barnabas_bootstrap if word == "BROKERS" else word for word in words]
    run = runner("kafka-replica-verification", None, capsys)(*given)
    assert (run.code, run.out) == (1, "")
    assert text in run.err
    assert len(run.err.splitlines()) == 1 or not words

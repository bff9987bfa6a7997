"""`barnabas perf` against a real broker: what is measured, refused and printed."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from barnabas import KafkaConsumer


def measured(run: Any) -> list[dict[str, Any]]:
    assert (run.code, run.err) == (0, "")
    found: list[dict[str, Any]] = json.loads(run.out)
    return found


def test_records_are_produced_and_consumed(barnabas: Any, topic: str, tmp_path: Path) -> None:
    words = ("--records", "1001", "--clients", "2", "--json")
    (sent,) = measured(barnabas("perf", "produce", topic, "--record-size", "50", *words))
    assert (sent["client"], sent["records"], sent["bytes"]) == ("barnabas", 1001, 50_050)
    assert sent["failures"] == 0
    # Seconds are rounded to milliseconds, of which a quick machine takes few.
    assert sent["seconds"] == pytest.approx(1001 / sent["records_per_s"], abs=0.0006)
    latency = sent["latency_ms"]
    assert 0 < latency["p50"] <= latency["p99"] <= latency["max"] <= sent["seconds"] * 1000
    assert sum(bar["records"] for bar in sent["histogram"]) == 1001

    # Each of two clients reads its own partitions.
    (read,) = measured(barnabas("perf", "consume", topic, "--idle", "0.3", *words[2:]))
    assert (read["records"], read["bytes"]) == (1001, 50_050)


def test_lines_of_a_file_are_sent_in_transactions(
    barnabas: Any, barnabas_bootstrap: str, topic: str, tmp_path: Path
) -> None:
    path = tmp_path / "payloads"
    path.write_text("one\ntwo\nthree\n")
    words = ("--payload-file", str(path), "--records", "200", "--throughput", "2000")
    run = barnabas("perf", "produce", topic, *words, "--transaction-duration", "0.02")
    assert (run.code, run.err) == (0, "")
    rates, latencies, histogram = run.out.split("\n\n")
    header, row = rates.splitlines()
    assert dict(zip(header.split(), row.split(), strict=False))["RECORDS"] == "200"
    assert [line.split()[0] for line in latencies.splitlines()] == ["LATENCY", "barnabas"]
    assert histogram.startswith("barnabas: latencies of 200 records\n")
    with KafkaConsumer(
        topic,
        bootstrap_servers=barnabas_bootstrap,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
        consumer_timeout_ms=5000,
    ) as consumer:
        values = [next(consumer).value for _ in range(200)]
    assert set(values) == {b"one", b"two", b"three"}
    listed = json.loads(barnabas("transactions", "list", "--json").out)
    assert {each["state"] for each in listed} == {"CompleteCommit"}


def test_a_group_reads_and_commits_nothing(barnabas: Any, topic: str, produce: Any) -> None:
    produce(topic, "a\nb\nc\n")
    for _ in range(2):
        words = ("--group", f"{topic}-readers", "--idle", "0.3", "--json")
        (read,) = measured(barnabas("perf", "consume", topic, *words))
        assert read["records"] == 3


def test_records_go_there_and_back(barnabas: Any, topic: str) -> None:
    words = ("--records", "20", "--client-option", "fetch.min.bytes=1", "--json")
    (found,) = measured(barnabas("perf", "latency", topic, *words))
    assert (found["records"], found["bytes"]) == (20, 2000)
    assert found["latency_ms"]["p50"] > 0


def test_a_client_that_fails_does_not_hide_the_other(barnabas: Any, topic: str) -> None:
    pytest.importorskip("kafka")
    words = ("--client", "kafka-python,barnabas", "--client-option", "linger.millis=1")
    run = barnabas("perf", "produce", topic, "--records", "10", *words)
    assert (run.code, run.out) == (1, "")
    one, other = run.err.splitlines()
    assert re.match(r"barnabas perf: kafka-python: .*linger_millis", one)
    assert other.startswith("barnabas perf: barnabas: linger.millis: no such option")


def test_records_that_are_not_written_are_counted(barnabas: Any, topic: str) -> None:
    barnabas("configs", "alter", "--topic", topic, "--set", "max.message.bytes=1000")
    run = barnabas("perf", "produce", topic, "--records", "3", "--record-size", "5000", "--json")
    assert run.code == 1
    (found,) = json.loads(run.out)
    assert (found["records"], found["failures"]) == (0, 3)
    assert run.err.startswith("barnabas perf: barnabas: 3 records failed, the first: ")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("produce", "absent"), "topic 'absent' does not exist; create it with: "),
        (("produce", "t", "--payload-file", "/none"), "--payload-file /none: no such file"),
        (
            ("produce", "t", "--transaction-duration", "1", "--acks", "1"),
            "--acks 1: transactions need --acks all",
        ),
        (
            ("produce", "t", "--client", "aiokafka", "--command-config", "file"),
            "--command-config is for our own client: ",
        ),
    ],
)
def test_what_cannot_be_measured_is_one_line(
    barnabas: Any, words: tuple[str, ...], said: str
) -> None:
    run = barnabas("perf", *words)
    assert (run.code, run.out) == (1, "")
    assert run.err.startswith(f"barnabas perf: {said}")
    assert run.err.count("\n") == 1


def test_each_client_has_partitions_of_its_own(barnabas: Any, topic: str) -> None:
    run = barnabas("perf", "consume", topic, "--clients", "4")
    assert run.code == 1
    assert run.err.startswith(f"barnabas perf: --clients 4: topic {topic} has 3 partitions, and ")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--client", "kafkajs"), "unknown client 'kafkajs': must be barnabas, "),
        (("--client", ","), "no client is named"),
        (("--throughput", "0"), "'0' is not a positive number of records"),
        (("--record-size", "10", "--payload-file", "f"), "not allowed with argument --record-size"),
    ],
)
def test_wrong_words_are_misuse(barnabas: Any, words: tuple[str, ...], said: str) -> None:
    run = barnabas("perf", "produce", "t", *words)
    assert run.code == 2
    assert said in run.err


def test_a_client_that_is_not_installed_is_named(
    barnabas: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    run = barnabas("perf", "consume", "t", "--client", "aiokafka")
    assert run.code == 2
    assert "aiokafka is not installed: pip install aiokafka" in run.err


def test_ctrl_c_ends_it_with_a_report(barnabas_bootstrap: str, barnabas: Any, topic: str) -> None:
    words = ("produce", topic, "--duration", "3600", "--throughput", "500", "--json")
    with subprocess.Popen(
        [sys.executable, "-m", "barnabas.cli", "perf", *words],
        env=dict(os.environ, BARNABAS_BOOTSTRAP=barnabas_bootstrap),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        with KafkaConsumer(
            topic, bootstrap_servers=barnabas_bootstrap, auto_offset_reset="earliest"
        ) as consumer:
            next(consumer)  # it is at work
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, "")
    (found,) = json.loads(out)
    assert found["records"] > 0
    assert found["failures"] == 0

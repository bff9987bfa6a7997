"""`kafka-server-start` and `kafka-server-stop`: a broker from its start to its stop."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.cli.kafka.tool_runs import runner
from tools.processes import free_port, wait_for_line

from barnabas.cli.kafka.server_start import settings_of
from barnabas.cli.kafka.server_stop import broker_arguments, broker_id, running_brokers


def test_kafkas_defaults_and_overrides(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("node.id=4\n")
    assert settings_of(str(file), {"num.partitions": "3"}) == {
        "listeners": "PLAINTEXT://:9092",
        "log.dirs": "/tmp/kafka-logs",
        "broker.id": "4",
        "num.partitions": "3",
    }
    file.write_text("broker.id=1\nlog.dir=/d\nlisteners=PLAINTEXT://:1\n")
    assert settings_of(str(file), {}) == {}


@pytest.mark.parametrize(
    ("line", "arguments"),
    [
        ("/usr/bin/python3 -m barnabas.cli start --id 3", ["--id", "3"]),
        ("barnabas kafka-server-start.sh server.properties", ["server.properties"]),
        ("python3.11 /venv/bin/barnabas start", []),
        ("python3 -m barnabas.cli topics list", None),
        ("less barnabas start", None),
        ("", None),
    ],
)
def test_which_processes_are_brokers(line: str, arguments: list[str] | None) -> None:
    assert broker_arguments(line.split()) == arguments


def test_a_broker_is_started_and_stopped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    number = str(1_000_000 + os.getpid())  # of no other broker on this machine
    file = tmp_path / "server.properties"
    logs = tmp_path / "logs"
    file.write_text(f"broker.id={number}\nreserved.broker.max.id=2000000000\nlog.dirs={logs}\n")
    listeners = f"listeners=PLAINTEXT://127.0.0.1:{free_port()}"
    words = ["kafka-server-start.sh", "server.properties", "--override", listeners]
    with (tmp_path / "output").open("wb") as output:
        broker = subprocess.Popen(
            [sys.executable, "-m", "barnabas.cli", *words],
            cwd=tmp_path,
            stdout=output,
            stderr=output,
            env=dict(os.environ, PYTHONPATH=os.pathsep.join(filter(None, sys.path))),
        )
    try:
        wait_for_line(broker, tmp_path / "output", "ready", 30)
        [found] = [each for each in running_brokers(Path("/proc")) if each.pid == broker.pid]
        assert broker_id(found) == number
        stop = runner("kafka-server-stop.sh", None, capsys)
        assert stop("--node-id", number) == (0, "", "")
        assert broker.wait(20) == 0
        assert stop("--node-id", number) == (1, "No kafka server to stop\n", "")
    finally:
        broker.kill()
        broker.wait()


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ((), "USAGE: kafka-server-start [-daemon] server.properties"),
        (("none.properties",), "none.properties: no such file or directory"),
        (("f", "--override", "a"), "must be property=value"),
    ],
)
def test_misuse(capsys: pytest.CaptureFixture[str], words: tuple[str, ...], text: str) -> None:
    run = runner("kafka-server-start", None, capsys)(*words)
    assert (run.code, run.out) == (1, "")
    assert text in run.err

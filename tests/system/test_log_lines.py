"""The log lines of a broker's own process: formats, files, and readers that do not read."""

from __future__ import annotations

import fcntl
import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from barnabas import KafkaProducer
from barnabas.testing.process import ProcessRunner

pytestmark = pytest.mark.system

DEADLINE_S = 60
PIPE_BYTES = 4096
READY = re.compile(r"is ready on PLAINTEXT://([\d.]+):(\d+)")


@contextmanager
def started(directory: Path, *words: str) -> Iterator[tuple[subprocess.Popen[str], str, int]]:
    """Run a broker whose standard error is a small pipe that nobody reads."""
    command = [sys.executable, "-m", "barnabas.cli", "start", "--id", "3"]
    command += ["--listen", "127.0.0.1:0", "--data-dir", str(directory / "data"), *words]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stderr is not None
            fcntl.fcntl(process.stderr.fileno(), fcntl.F_SETPIPE_SZ, PIPE_BYTES)
            found = READY.search(process.stdout.readline())
            assert found is not None
            yield process, found[1], int(found[2])
        finally:
            process.kill()


def make_lines(host: str, port: int, count: int) -> None:
    """Make the broker write a line each time: it closes what does not speak Kafka's protocol."""
    for _ in range(count):
        with socket.create_connection((host, port), DEADLINE_S) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert connection.recv(1) == b""


def stop(process: subprocess.Popen[str]) -> int:
    process.send_signal(signal.SIGTERM)
    return process.wait(DEADLINE_S)


def test_a_pipe_that_nobody_reads_holds_nothing_up(tmp_path: Path) -> None:
    with started(tmp_path) as (process, host, port):
        make_lines(host, port, 100)  # several times what the pipe takes
        with KafkaProducer(bootstrap_servers=f"{host}:{port}") as producer:
            assert producer.send("orders", b"1").get(DEADLINE_S).offset == 0
        assert stop(process) == 0
        assert process.stderr is not None
        assert 0 < len(process.stderr.read()) <= PIPE_BYTES


def test_a_reader_that_comes_late_gets_every_line(tmp_path: Path) -> None:
    with started(tmp_path) as (process, host, port):
        make_lines(host, port, 100)
        process.send_signal(signal.SIGTERM)
        assert process.stderr is not None
        lines = process.stderr.read().splitlines()
        assert process.wait(DEADLINE_S) == 0
    closed = [line for line in lines if "barnabas.network: connection from 127.0.0.1" in line]
    assert len(closed) == 100


def test_kafkas_files_are_written_beside_a_pipe_that_nobody_reads(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    with started(tmp_path, "--set", f"barnabas.log.dir={logs}") as (process, host, port):
        make_lines(host, port, 100)
        assert stop(process) == 0
    server = (logs / "server.log").read_text().splitlines()
    form = re.compile(r"\[[\d-]+ [\d:,]+\] WARN connection from .* \(barnabas\.network\)")
    assert sum(form.fullmatch(line) is not None for line in server) == 100
    assert "is the controller" in (logs / "controller.log").read_text()
    assert (logs / "kafka-request.log").read_text() == ""


def _stderr_of(directory: Path, *words: str) -> Sequence[str]:
    with started(directory, *words) as (process, host, port):
        make_lines(host, port, 1)
        assert stop(process) == 0
        assert process.stderr is not None
        return process.stderr.read().splitlines()


def test_lines_for_machines(tmp_path: Path) -> None:
    lines = [json.loads(line) for line in _stderr_of(tmp_path, "--log-format", "json")]
    (closed,) = [line for line in lines if line["logger"] == "barnabas.network"]
    assert (closed["level"], closed["broker"]) == ("WARNING", 3)
    assert "an HTTP request: this is not a web port" in closed["message"]
    assert all(re.fullmatch(r"[\d-]+T[\d:]+\.\d{3}Z", line["ts"]) for line in lines)


def test_lines_in_elastics_schema(tmp_path: Path) -> None:
    lines = [json.loads(line) for line in _stderr_of(tmp_path, "--set", "barnabas.log.format=ecs")]
    (closed,) = [line for line in lines if line["log.logger"] == "barnabas.network"]
    assert closed["labels"] == {"broker": 3}


def test_a_start_that_fails_says_everything(tmp_path: Path) -> None:
    """What was logged before is written, too, and in front of the error."""
    (tmp_path / "data").write_text("")
    command = [sys.executable, "-m", "barnabas.cli", "start", "--listen", "127.0.0.1:0"]
    command += ["--data-dir", str(tmp_path / "data"), "--set", "no.such.option=1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S)
    assert done.returncode == 1
    first, *_, last = done.stderr.splitlines()
    assert "WARNING barnabas.config: no.such.option" in first
    assert last.startswith("barnabas start: ")


def test_a_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    command = [sys.executable, "-m", "barnabas.cli", "start", "--listen", "127.0.0.1:0"]
    command += ["--data-dir", str(tmp_path / "data")]
    command += ["--set", f"barnabas.log.dir={tmp_path / 'file'}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S)
    assert done.returncode == 1
    assert f"barnabas.log.dir={tmp_path / 'file'}: cannot write: " in done.stderr


def test_levels_change_while_the_broker_runs(tmp_path: Path) -> None:
    runner = ProcessRunner()
    options = {
        "broker.id": "3",
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dirs": str(tmp_path / "data"),
        "barnabas.log.dir": str(tmp_path / "logs"),
    }
    host, port = runner.start(options)
    alter = [sys.executable, "-m", "barnabas.cli", "configs", "alter", "--broker-loggers", "3"]
    alter += ["--bootstrap", f"{host}:{port}", "--set", "kafka.network=ERROR"]
    try:
        make_lines(host, port, 1)
        subprocess.run(alter, check=True, timeout=DEADLINE_S)
        make_lines(host, port, 1)
    finally:
        runner.stop()
    assert (tmp_path / "logs" / "server.log").read_text().count("an HTTP request") == 1

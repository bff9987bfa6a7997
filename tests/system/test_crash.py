"""Broker processes that end: killed, asked to stop, or refused at their start."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Message, Producer
from tests.unit.broker.serving import (
    Wire,
    batch_of,
    create_topic,
    fetch,
    fetch_request,
    produce,
    records_of,
    wait_for,
)

from barnabas.log.directory import CLEAN_SHUTDOWN
from barnabas.testing.process import ProcessRunner

pytestmark = pytest.mark.system

PARTITIONS = 3


def options(data: Path, port: int = 0) -> dict[str, str]:
    return {
        "broker.id": "0",
        "listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "log.dirs": str(data),
        "log.segment.bytes": "1048576",
    }


class Load:
    """A producer that sends without end, and remembers what was acknowledged."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.acknowledged: dict[tuple[int, int], bytes] = {}
        self.sent = 0
        self._ended = threading.Event()
        self._producer = Producer(
            {
                "bootstrap.servers": f"{address[0]}:{address[1]}",
                "enable.idempotence": True,
                "linger.ms": 1,
                "message.timeout.ms": 240_000,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 100,
                "log_level": 0,
            }
        )
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._ended.is_set():
            value = b"%08d" % self.sent + bytes(200)
            try:
                self._producer.produce(
                    "t", value, partition=self.sent % PARTITIONS, on_delivery=self._delivered
                )
                self.sent += 1
            except BufferError:
                self._producer.poll(0.05)
            self._producer.poll(0)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            partition, offset, value = message.partition(), message.offset(), message.value()
            assert partition is not None
            assert offset is not None
            assert isinstance(value, bytes)
            self.acknowledged[partition, offset] = value

    def wait_for(self, count: int) -> None:
        """Wait until so many records were acknowledged."""
        wait_for(lambda: len(self.acknowledged) >= count, f"{count} records are acknowledged")

    def finish(self) -> None:
        """Stop sending; wait until everything sent is acknowledged."""
        self._ended.set()
        self._thread.join(60)
        assert self._producer.flush(120) == 0


def read_all(address: tuple[str, int]) -> dict[tuple[int, int], bytes | None]:
    """Read every record of the topic from the start."""
    found: dict[tuple[int, int], bytes | None] = {}
    with Wire(address) as wire:
        for partition in range(PARTITIONS):
            offset = 0
            while True:
                result = fetch(wire, "t", offset, partition=partition)
                assert result.error_code == 0
                records = records_of(result)
                if not records:
                    assert offset == result.high_watermark
                    break
                for record in records:
                    found[partition, record.offset] = record.value
                offset = records[-1].offset + 1
    return found


def test_killed_under_load(tmp_path: Path) -> None:
    """SIGKILL loses nothing acknowledged, doubles nothing, and the broker starts again by itself.

    A process that dies leaves its writes in the page cache: so even what was never flushed must be
    there.
    """
    runner = ProcessRunner()
    address = runner.start(options(tmp_path / "data"))
    with Wire(address) as wire:
        create_topic(wire, "t", PARTITIONS)
    load = Load(address)
    try:
        for life in range(1, 4):
            load.wait_for(3000 * life)
            runner.kill()
            assert runner.start(options(tmp_path / "data", address[1])) == address
        load.finish()
        found = read_all(address)
        missing = {key for key in load.acknowledged if key not in found}
        assert not missing
        assert all(found[key] == value for key, value in load.acknowledged.items())
        values = list(found.values())
        assert len(values) == len(set(values)), "an idempotent producer's records are there once"
        assert len(values) == load.sent
    finally:
        runner.stop()
    assert "Traceback" not in (tmp_path / "data.err").read_text()


def test_terminated_cleanly(tmp_path: Path) -> None:
    """SIGTERM leaves a marker, and the next start has nothing to recover."""
    runner = ProcessRunner()
    address = runner.start(options(tmp_path / "data"))
    with Wire(address) as wire:
        create_topic(wire, "t", PARTITIONS)
        produce(wire, "t", batch_of(["kept"]))
        process = runner._process
        assert process is not None
        runner.stop()
        assert process.returncode == 0
        wire.expect_close()
    marker = tmp_path / "data" / CLEAN_SHUTDOWN
    assert marker.exists()
    address = runner.start(options(tmp_path / "data", address[1]))
    assert not marker.exists(), "a crash from now on is unclean"
    assert len(read_all(address)) == 1
    log = (tmp_path / "data.err").read_text()
    assert "was not closed cleanly" not in log
    runner.kill()
    runner.start(options(tmp_path / "data", address[1]))
    runner.stop()
    assert "was not closed cleanly" in (tmp_path / "data.err").read_text()


def test_terminated_under_load(tmp_path: Path) -> None:
    """A controlled shutdown in the middle of everything loses and doubles nothing either."""
    runner = ProcessRunner()
    address = runner.start(options(tmp_path / "data"))
    with Wire(address) as wire:
        create_topic(wire, "t", PARTITIONS)
    load = Load(address)
    try:
        load.wait_for(2000)
        process = runner._process
        assert process is not None
        runner.stop()
        assert process.returncode == 0
        assert (tmp_path / "data" / CLEAN_SHUTDOWN).exists()
        runner.start(options(tmp_path / "data", address[1]))
        load.finish()
        found = read_all(address)
        assert all(found[key] == value for key, value in load.acknowledged.items())
        assert len(found) == len(set(found.values())) == load.sent
    finally:
        runner.stop()
    log = (tmp_path / "data.err").read_text()
    assert "Traceback" not in log
    assert "was not closed cleanly" not in log


START = (sys.executable, "-m", "barnabas.cli", "start", "--id", "0")


def run_start(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `barnabas start` until it ends by itself."""
    command = [*START, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@contextmanager
def started(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run `barnabas start` until somebody stops it."""
    command = [*START, *arguments]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def test_two_brokers_on_one_directory(tmp_path: Path) -> None:
    """The second one refuses, in one line that names the directory, and harms nothing."""
    data = tmp_path / "data"
    runner = ProcessRunner()
    address = runner.start(options(data))
    try:
        with Wire(address) as wire:
            create_topic(wire, "t", PARTITIONS)
            second = run_start("--data-dir", str(data), "--listen", "127.0.0.1:0")
            assert second.returncode == 1
            assert second.stdout == ""
            (line,) = second.stderr.splitlines()
            assert str(data) in line
            assert produce(wire, "t", batch_of(["still here"])).error_code == 0
    finally:
        runner.stop()


def test_port_in_use(tmp_path: Path) -> None:
    """A taken port is told in one line that names it; the directory is as it was, and free."""
    data = tmp_path / "data"
    runner = ProcessRunner()
    runner.start(options(data))
    runner.stop()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        refused = run_start("--data-dir", str(data), "--listen", f"127.0.0.1:{port}")
    assert refused.returncode == 1
    (line,) = refused.stderr.splitlines()
    assert str(port) in line
    assert (data / CLEAN_SHUTDOWN).exists()
    runner.start(options(data))
    runner.stop()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_during_a_start(tmp_path: Path, number: signal.Signals) -> None:
    """A broker that waits for a ZooKeeper that says nothing can be stopped, and says so."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        silent.settimeout(60)
        zookeeper = f"127.0.0.1:{silent.getsockname()[1]}"
        words = ("--data-dir", str(tmp_path), "--listen", "127.0.0.1:0", "--zookeeper", zookeeper)
        with started(*words) as process:
            connection, _ = silent.accept()
            process.send_signal(number)
            out, err = process.communicate(timeout=60)
            connection.close()
    code = 130 if number is signal.SIGINT else 0
    assert (process.returncode, out) == (code, "Barnabas was stopped before it was ready\n")
    assert "Traceback" not in err


def test_a_stop_that_cannot_mark_its_directory(tmp_path: Path) -> None:
    """Whoever reads the exit code or the last line is not told that all went well."""
    data = tmp_path / "data"
    with started("--data-dir", str(data), "--listen", "127.0.0.1:0") as process:
        assert process.stdout is not None
        assert " is ready on " in process.stdout.readline()
        shutil.rmtree(data)
        process.terminate()
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (1, "")
    assert f"not closed cleanly: {data} " in err.splitlines()[-1]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_while_clients_wait(tmp_path: Path, number: signal.Signals) -> None:
    """A client in a long poll does not hold up a shutdown."""
    runner = ProcessRunner()
    address = runner.start(options(tmp_path / "data"))
    process = runner._process
    assert process is not None
    with Wire(address) as wire:
        create_topic(wire, "t")
        wire.send(fetch_request("t", max_wait_ms=300_000), 12)
        process.send_signal(number)
        assert process.wait(60) == (130 if number is signal.SIGINT else 0)
        wire.expect_close()
    runner.stop()

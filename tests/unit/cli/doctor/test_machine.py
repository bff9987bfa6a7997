"""What is measured of a machine, on this one: directories, locks, and a ZooKeeper's answers."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.cli.doctor.finding import Check, Severity
from barnabas.cli.doctor.machine import (
    machine_checks,
    read_srvr,
    zookeeper_addresses,
    zookeeper_server,
)
from barnabas.cli.doctor.machine_checks import (
    Descriptors,
    Directory,
    DiskSpeed,
    LastStop,
    Memory,
    Owner,
)
from barnabas.client.addresses import Address

SRVR = """\
Zookeeper version: 3.8.4-9316c2a7a97e1666d8f4593f34dd6fc36ecc436c, built on 2024-02-12 22:16 UTC
Latency min/avg/max: 0/0.8125/14
Received: 120
Sent: 119
Connections: 3
Outstanding: 7
Zxid: 0x100000042
Mode: follower
Node count: 141
"""


def checks(*paths: Path) -> dict[type, Check]:
    return {type(check): check for check in machine_checks([str(path) for path in paths], 1)}


def test_everything_is_measured(tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    for name in ("0.log", "0.index", "5.log"):
        (tmp_path / "orders-0" / name).touch()
    (tmp_path / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=abc\n")
    found = checks(tmp_path)
    directory, speed, memory = found[Directory], found[DiskSpeed], found[Memory]
    assert isinstance(directory, Directory)
    assert directory.total_bytes is not None
    assert directory.usable_bytes is not None
    assert 0 < directory.usable_bytes <= directory.total_bytes
    assert isinstance(speed, DiskSpeed)
    assert speed.sync_ms > 0
    assert speed.bytes_per_s > 0
    assert isinstance(memory, Memory)
    assert 0 < memory.available_bytes < memory.total_bytes
    assert found[LastStop] == LastStop(str(tmp_path), 1, None, False)
    assert found[Owner] == Owner({str(tmp_path): {"broker.id": "1", "cluster.id": "abc"}}, 1)
    descriptors = found[Descriptors]
    assert isinstance(descriptors, Descriptors)
    assert (descriptors.segments, descriptors.used) == (2, None)


@pytest.mark.parametrize("kind", ["flock", "lockf"])
def test_a_running_broker_is_found_by_its_lock(tmp_path: Path, kind: str) -> None:
    """Ours takes one kind of lock, Java another."""
    script = (
        "import fcntl, sys\n"
        f"file = open(sys.argv[1], 'w'); fcntl.{kind}(file, fcntl.LOCK_EX)\n"
        "print('locked', flush=True); sys.stdin.read()"
    )
    command = ["python3", "-c", script, str(tmp_path / ".lock")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "locked\n"
        found = checks(tmp_path)
        holder.communicate("")
    assert found[LastStop] == LastStop(str(tmp_path), 0, holder.pid, False)
    descriptors = found[Descriptors]
    assert isinstance(descriptors, Descriptors)
    assert descriptors.used
    assert descriptors.used >= 4


def test_a_lock_that_nobody_holds_is_none(tmp_path: Path) -> None:
    with (tmp_path / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
    assert checks(tmp_path)[LastStop] == LastStop(str(tmp_path), 0, None, False)


def test_a_directory_to_be_created_is_measured_where_it_will_be(tmp_path: Path) -> None:
    found = checks(tmp_path / "new" / "data")
    directory = found[Directory]
    assert isinstance(directory, Directory)
    assert directory.failure is None
    assert DiskSpeed not in found
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def disk(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A small disk of its own, with these options of the mount."""
    path = tmp_path / "disk"
    path.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", request.param, "tmpfs", str(path)]
    mounted = subprocess.run(command, capture_output=True, text=True, check=False)
    if mounted.returncode != 0:
        pytest.skip(f"a disk needs the right to mount one: {mounted.stderr.strip()}")
    yield path
    subprocess.run(["umount", "-l", str(path)], check=True)


@pytest.mark.parametrize("disk", ["size=1024k,ro"], indirect=True)
def test_a_disk_that_is_read_only(disk: Path) -> None:
    finding = checks(disk)[Directory].judge()
    assert finding.severity is Severity.RED
    assert "read-only file system" in finding.text


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(bytes(65_536)):
            pass


@pytest.mark.parametrize("disk", ["size=1024k"], indirect=True)
def test_a_disk_that_is_full(disk: Path) -> None:
    fill(disk / "all")
    finding = checks(disk)[Directory].judge()
    assert finding.severity is Severity.RED
    assert "no space left on device" in finding.text
    os.truncate(disk / "all", 1_000_000)
    assert checks(disk)[Directory].judge().severity is Severity.RED
    os.truncate(disk / "all", 900_000)
    assert checks(disk)[Directory].judge().severity is Severity.AMBER


def test_the_servers_of_a_zookeeper_connect() -> None:
    assert zookeeper_addresses("a:2182,b, [::1]:2183/kafka") == [
        Address("a", 2182),
        Address("b", 2181),
        Address("::1", 2183),
    ]


def test_an_answer_of_zookeeper_is_read() -> None:
    server = read_srvr("zk:2181", 1.5, SRVR)
    assert (server.mode, server.average_ms, server.outstanding) == ("follower", 0.8125, 7)
    assert server.judge().severity is Severity.GREEN
    no_quorum = "This ZooKeeper instance is not currently serving requests\n"
    assert "no quorum" in (read_srvr("zk:2181", 1.5, no_quorum).failure or "")
    closed = "srvr is not executed because it is not in the whitelist.\n"
    assert read_srvr("zk:2181", 1.5, closed).judge().severity is Severity.GREEN
    assert "ZooKeeper server" in (read_srvr("zk:2181", 1.5, "HTTP/1.1 400\n").failure or "")


@pytest.mark.parametrize(
    ("answer", "tls", "severity"),
    [(SRVR, False, "green"), ("", False, "red"), ("", True, "green")],
)
def test_a_server_is_asked(answer: str, tls: bool, severity: str) -> None:
    asked: list[bytes] = []

    async def ask() -> Check:
        served = asyncio.Event()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            asked.append(await reader.read(4))
            for line in answer.splitlines(keepends=True):
                writer.write(line.encode())
                await writer.drain()
            writer.close()
            await writer.wait_closed()
            served.set()

        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            host, port = server.sockets[0].getsockname()
            check = await zookeeper_server(Address(host, port), 5000, tls=tls)
            await served.wait()
            return check

    assert asyncio.run(ask()).judge().severity == severity
    assert asked == [b"" if tls else b"srvr"]

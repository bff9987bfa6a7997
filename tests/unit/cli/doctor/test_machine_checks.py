"""A broker's machine: each fault turns its check."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.cli.doctor.judged import Case, assert_judged

from barnabas.cli.doctor.finding import Severity
from barnabas.cli.doctor.machine_checks import (
    Descriptors,
    Directory,
    DiskSpeed,
    LastStop,
    Memory,
    Owner,
    ZooKeeperServer,
)

GREEN, AMBER, RED = Severity.GREEN, Severity.AMBER, Severity.RED
GIB = 1 << 30

DIR = Directory("/d", None, 100 * GIB, 50 * GIB, 1000)
DISK = DiskSpeed("/d", 2.0, 1e9)
MEMORY = Memory(16 * GIB, 8 * GIB, 0.0)
SERVER = ZooKeeperServer("zk:2181", 1.0, None, "follower", 0.5, 0)
ONE, TWO = {"broker.id": "1", "cluster.id": "abc"}, {"broker.id": "2", "cluster.id": "abc"}

CASES: dict[str, Case] = {
    "writable": (DIR, GREEN, "50.0 GiB"),
    "read only": (Directory("/d", "cannot write: read-only file system"), RED, "read-only"),
    "full": (replace(DIR, usable_bytes=GIB), RED, "add space"),
    "nearly full": (replace(DIR, usable_bytes=14 * GIB), AMBER, "add space"),
    "no inodes": (replace(DIR, free_inodes=0), RED, "inode"),
    "uncounted inodes": (replace(DIR, free_inodes=None), GREEN, "free"),
    "fast": (DISK, GREEN, "fsync in 2.0 ms"),
    "slow": (replace(DISK, sync_ms=50.0), AMBER, "SSD"),
    "very slow": (replace(DISK, sync_ms=500.0), RED, "SSD"),
    "clean": (LastStop("/d", 3, None, True), GREEN, "3 logs"),
    "killed": (LastStop("/d", 3, None, False), AMBER, "barnabas log verify"),
    "new": (LastStop("/d", 0, None, False), GREEN, "0 logs"),
    "running": (LastStop("/d", 3, 77, False), GREEN, "process 77"),
    "owned": (Owner({"/a": ONE, "/b": ONE}, 1), GREEN, "broker 1"),
    "unowned": (Owner({"/a": {}}, 1), GREEN, "no broker"),
    "any owner": (Owner({"/a": TWO}, None), GREEN, "broker 2"),
    "of two brokers": (Owner({"/a": ONE, "/b": TWO}, 1), RED, "broker.id=2"),
    "of two clusters": (Owner({"/a": ONE, "/b": {"cluster.id": "x"}}), RED, "cluster.id=x"),
    "of another": (Owner({"/a": TWO}, 1), RED, "belongs to broker 2"),
    "enough files": (Descriptors(100_000, 3000), GREEN, "3,000 segments"),
    "few files": (Descriptors(4096, 2000), AMBER, "LimitNOFILE"),
    "too few files": (Descriptors(1024, 2000), RED, "ulimit"),
    "nearly used": (Descriptors(100_000, 10, 95_000), RED, "95000 open"),
    "memory": (MEMORY, GREEN, "8.0 GiB"),
    "little memory": (replace(MEMORY, available_bytes=GIB), AMBER, "page cache"),
    "waits": (replace(MEMORY, stalled_percent=10.0), AMBER, "10%"),
    "thrashes": (replace(MEMORY, stalled_percent=40.0), RED, "40%"),
    "uncounted waits": (replace(MEMORY, stalled_percent=None), GREEN, "available"),
    "serves": (SERVER, GREEN, "follower"),
    "slow requests": (replace(SERVER, average_ms=50.0), AMBER, "disk"),
    "very slow requests": (replace(SERVER, average_ms=1000.0), RED, "disk"),
    "far": (replace(SERVER, connect_ms=60.0), AMBER, "network"),
    "busy": (replace(SERVER, outstanding=100), AMBER, "100 outstanding"),
    "gone": (ZooKeeperServer("zk:2181", failure="connection refused"), RED, "refused"),
}


@pytest.mark.parametrize("name", CASES)
def test_facts_are_judged(name: str) -> None:
    assert_judged(CASES[name])

"""Measures the machine of a broker: directories, disks, descriptors, memory, ZooKeeper."""

from __future__ import annotations

import asyncio
import os
import re
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from barnabas.cli.doctor.finding import Check
from barnabas.cli.doctor.machine_checks import (
    Descriptors,
    Directory,
    DiskSpeed,
    LastStop,
    Memory,
    Owner,
    ZooKeeperServer,
)
from barnabas.client.addresses import Address, parse_address
from barnabas.client.opening import reason
from barnabas.config.properties import read_properties
from barnabas.log.directory import CLEAN_SHUTDOWN, LOCK, META, parse_name
from barnabas.model.errors import ConfigError

SYNCS = 9
SYNCED_BYTES = 4096
WRITTEN_BYTES = 8 * 1024 * 1024
SPARE_BYTES = 8 * WRITTEN_BYTES
"""A disk that is nearly full is not measured."""
ANSWER_BYTES_MAX = 65_536
ZOOKEEPER_PORT = 2181
_LATENCY = re.compile(r"^Latency min/avg/max: [\d.]+/([\d.]+)/[\d.]+", re.M)
_OUTSTANDING = re.compile(r"^Outstanding: (\d+)", re.M)
_MODE = re.compile(r"^Mode: (\w+)", re.M)
_STALLED = re.compile(r"^some .*\bavg60=([\d.]+)", re.M)
_AMOUNT = re.compile(r"^(\w+): +(\d+) kB", re.M)


def machine_checks(paths: list[str], broker_id: int | None) -> Iterator[Check]:
    """Yield what can be measured of the directories and of the machine."""
    owners: dict[str, dict[str, str]] = {}
    segments, pid = 0, None
    for path in paths:
        directory = _directory(path)
        yield directory
        if directory.failure is not None or not os.path.isdir(path):
            continue
        if directory.usable_bytes is not None and directory.usable_bytes > SPARE_BYTES:
            yield _speed(path)
        pid = _user_of(Path(path) / LOCK) or pid
        names = [name for name in os.listdir(path) if parse_name(name) is not None]
        segments += sum(1 for name in names for _ in (Path(path) / name).glob("*.log"))
        clean = (Path(path) / CLEAN_SHUTDOWN).exists()
        yield LastStop(path, len(names), _user_of(Path(path) / LOCK), clean)
        owners[path] = _meta(Path(path) / META)
    yield Owner(owners, broker_id)
    yield _descriptors(segments, pid)
    memory = _memory()
    if memory is not None:
        yield memory


def _directory(path: str) -> Directory:
    """Write a file where logs are written; a broker creates a directory that is missing."""
    existing = Path(path).absolute()
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    if not existing.is_dir():
        return Directory(path, f"{existing} is not a directory")
    try:
        with tempfile.NamedTemporaryFile(dir=existing, prefix=".doctor-") as file:
            file.write(bytes(SYNCED_BYTES))
            file.flush()
            os.fsync(file.fileno())
    except OSError as failure:
        return Directory(path, f"cannot write: {reason(failure)}")
    state = os.statvfs(existing)
    return Directory(
        path,
        None,
        state.f_blocks * state.f_frsize,
        state.f_bavail * state.f_frsize,
        state.f_favail if state.f_files else None,
    )


def _speed(path: str) -> DiskSpeed:
    times_ms = []
    with tempfile.NamedTemporaryFile(dir=path, prefix=".doctor-", buffering=0) as file:
        for _ in range(SYNCS):
            file.write(bytes(SYNCED_BYTES))
            began_s = time.perf_counter()
            os.fsync(file.fileno())
            times_ms.append((time.perf_counter() - began_s) * 1000)
        began_s = time.perf_counter()
        file.write(bytes(WRITTEN_BYTES))
        os.fsync(file.fileno())
        elapsed_s = time.perf_counter() - began_s
    return DiskSpeed(path, statistics.median(times_ms), WRITTEN_BYTES / max(elapsed_s, 1e-6))


def _meta(path: Path) -> dict[str, str]:
    try:
        meta = read_properties(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, ConfigError):
        return {}
    names = {"broker.id": meta.get("node.id", meta.get("broker.id"))}
    names["cluster.id"] = meta.get("cluster.id")
    return {name: value for name, value in names.items() if value is not None}


def _user_of(lock: Path) -> int | None:
    """Return the process that has locked a file, whichever kind of lock it uses."""
    try:
        inode = str(lock.stat().st_ino)
        lines = Path("/proc/locks").read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        words = line.split()
        if len(words) > 5 and words[5].endswith(f":{inode}") and _has_open(words[4], lock):
            return int(words[4])
    return None


def _has_open(pid: str, path: Path) -> bool:
    try:
        opened = list(Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return Path(f"/proc/{pid}").exists()  # of another user: its files are not shown
    return any(os.path.realpath(each) == os.path.realpath(path) for each in opened)


def _descriptors(segments: int, pid: int | None) -> Descriptors:
    if pid is not None and sys.platform == "linux":
        try:
            limit, _ = resource.prlimit(pid, resource.RLIMIT_NOFILE)
            return Descriptors(limit, segments, len(os.listdir(f"/proc/{pid}/fd")))
        except OSError:
            pass  # a broker of another user
    return Descriptors(resource.getrlimit(resource.RLIMIT_NOFILE)[0], segments)


def _memory() -> Memory | None:
    try:
        text = Path("/proc/meminfo").read_text()
    except OSError:
        return None  # not Linux
    amounts = {name: int(number) * 1024 for name, number in _AMOUNT.findall(text)}
    try:
        stalled = _STALLED.search(Path("/proc/pressure/memory").read_text())
    except OSError:
        stalled = None
    return Memory(
        amounts["MemTotal"],
        amounts.get("MemAvailable", amounts["MemFree"]),
        float(stalled[1]) if stalled is not None else None,
    )


def zookeeper_addresses(connect: str) -> list[Address]:
    """Return the servers of a zookeeper.connect."""
    hosts = connect.partition("/")[0].split(",")
    return [
        parse_address(host if ":" in host else f"{host}:{ZOOKEEPER_PORT}")
        for host in map(str.strip, hosts)
        if host
    ]


async def zookeeper_server(address: Address, timeout_ms: float, *, tls: bool) -> ZooKeeperServer:
    """Ask a ZooKeeper server how it is; with TLS, only whether it can be reached."""
    began_s = time.perf_counter()
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            reader, writer = await asyncio.open_connection(*address)
            connect_ms = (time.perf_counter() - began_s) * 1000
            if tls:
                writer.close()
                return ZooKeeperServer(str(address), connect_ms)
            writer.write(b"srvr")
            answer = (await reader.read(ANSWER_BYTES_MAX)).decode(errors="replace")
            while not reader.at_eof():
                answer += (await reader.read(ANSWER_BYTES_MAX)).decode(errors="replace")
            writer.close()
    except OSError as failure:
        return ZooKeeperServer(str(address), failure=reason(failure))
    return read_srvr(str(address), connect_ms, answer)


def read_srvr(address: str, connect_ms: float, answer: str) -> ZooKeeperServer:
    """Return what a server has answered to `srvr`."""
    if "not currently serving" in answer:
        return ZooKeeperServer(address, failure="it serves no requests: the ensemble has no quorum")
    mode, latency, outstanding = (
        pattern.search(answer) for pattern in (_MODE, _LATENCY, _OUTSTANDING)
    )
    if mode is None and "whitelist" not in answer:
        return ZooKeeperServer(address, failure="no answer to srvr: is it a ZooKeeper server?")
    return ZooKeeperServer(
        address,
        connect_ms,
        None,
        mode[1] if mode else None,
        float(latency[1]) if latency else None,
        int(outstanding[1]) if outstanding else 0,
    )

"""Logs to measure with: batches made once, sent to any partition over a raw socket, and what then
lies on the disk.

The broker gives a batch its offsets, so the same bytes are sent as often as a log needs them; what
a filling costs here is little, and the same for both brokers.
"""

from __future__ import annotations

import json
import struct
import time
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random

from bench import requests
from tools.processes import RunningBroker

from barnabas.records.builder import build_batch

IN_FLIGHT = 8
NOT_YET = (3, 6)  # a new partition is known to the controller before its leader knows it
BATCH_RECORDS = 100


def keyed_batches(keys: int, codec: str) -> list[bytes]:
    """Return batches with one record of about 130 bytes for each key, in random order."""
    random = Random(1)
    names = list(range(keys))
    random.shuffle(names)
    now_ms = int(time.time() * 1000)
    batches = []
    for start in range(0, keys, BATCH_RECORDS):
        rows = []
        for name in names[start : start + BATCH_RECORDS]:
            value = {
                "account": name,
                "owner": f"customer-{random.randrange(10**6):06d}",
                "balance": random.randrange(10**9) / 100,
                "state": random.choice(["open", "blocked", "closed"]),
            }
            rows.append((now_ms, b"account-%08d" % name, json.dumps(value).encode()))
        batches.append(build_batch(rows, codec))
    return batches


def timed_batches(count: int, records: int, size: int, step_ms: int) -> tuple[list[bytes], int]:
    """Return batches whose time rises with every record, and the time of the first one."""
    first_ms = int(time.time() * 1000) - count * records * step_ms
    batches = []
    for index in range(count):
        at = first_ms + index * records * step_ms
        rows = [(at + each * step_ms, None, b"x" * size) for each in range(records)]
        batches.append(build_batch(rows))
    return batches, first_ms


def produce(topic: str, partition: int, batch: bytes) -> bytes:
    """A Produce request of one batch, acks=1."""
    body = struct.pack(">i", partition) + requests.count(len(batch)) + batch + b"\0"
    data = requests.count(1) + requests.compact(topic) + requests.count(1) + body + b"\0"
    return requests.frame(0, 9, b"\0" + struct.pack(">hi", 1, 30_000) + data + b"\0")


def fill(broker: RunningBroker, topic: str, batches: Iterable[tuple[int, bytes]]) -> None:
    """Send batches, each with its partition; fail loudly if one is refused."""
    connection = requests.Connection(broker.bootstrap)
    waiting: deque[bytes] = deque()

    def take_answer() -> None:
        request = waiting.popleft()
        (code,) = struct.unpack_from(">h", connection.ask(b""), 5 + 1 + 1 + len(topic) + 1 + 4)
        if code in NOT_YET:
            time.sleep(0.01)
            connection.send(request)
            waiting.append(request)
        else:
            assert code == 0, f"Produce: error {code}"

    with connection.socket:
        for partition, batch in batches:
            waiting.append(produce(topic, partition, batch))
            connection.send(waiting[-1])
            if len(waiting) == IN_FLIGHT:
                take_answer()
        while waiting:
            take_answer()


# -- on the disk --------------------------------------------------------------------------------


def segment_sizes(directory: Path) -> dict[int, int]:
    """Return the bytes of each segment's batches by base offset."""
    return {int(path.stem): path.stat().st_size for path in directory.glob("*.log")}


def checkpointed(file: Path, topic: str, partition: int) -> int:
    """Return the offset that a checkpoint file has for a partition, -1 without one."""
    if file.exists():
        for line in file.read_text().splitlines()[2:]:
            name, number, offset = line.rsplit(" ", 2)
            if (name, int(number)) == (topic, partition):
                return int(offset)
    return -1


def wait_until(holds: Callable[[], bool], what: str, timeout_s: float = 120) -> None:
    """Look every few milliseconds."""
    deadline = time.monotonic() + timeout_s
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {timeout_s} s")
        time.sleep(0.003)

"""A real disk that is full: appends are refused, reads go on, and appends succeed again when there
is room.

The disk is a small tmpfs beside an ordinary directory, which holds the coordination file.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from tests.unit.broker.serving import (
    Serving,
    Wire,
    batch_of,
    create_topic,
    fetch,
    produce,
    values_of,
)

from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.wire.messages.describe_log_dirs import DescribeLogDirsRequest

pytestmark = pytest.mark.system

SIZE_KB = 4096
RECORD = b"x" * 100_000


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A directory on a disk of its own, with a few megabytes."""
    path = tmp_path / "small"
    path.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={SIZE_KB}k", "tmpfs", str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode != 0:
        pytest.skip(f"a small disk needs the right to mount one: {mounted.stderr.strip()}")
    yield path
    subprocess.run(["umount", "-l", str(path)], check=True)


def topic_on(serving: Serving, path: Path) -> str:
    """Create topics until one is in the directory."""
    path_of = serving.broker.logs.path_of
    with serving.connect() as wire:
        for number in range(4):
            name = f"t{number}"
            create_topic(wire, name, configs={"segment.bytes": "1000000"})
            if serving.inside(partial(path_of, TopicPartition(name, 0))) == str(path):
                return name
    raise AssertionError(f"no topic was placed in {path}")


def test_full_disk(tmp_path: Path, small_disk: Path) -> None:
    options = {"log.dirs": f"{tmp_path / 'large'},{small_disk}"}
    with Serving(tmp_path, options) as serving:
        full = topic_on(serving, small_disk)
        ballast = small_disk / "ballast"
        ballast.write_bytes(bytes(1024 * 1024))
        sent = 0
        with serving.connect() as wire:
            while True:
                result = produce(wire, full, batch_of([b"%d " % sent + RECORD]), acks=-1)
                if result.error_code:
                    break
                assert result.base_offset == sent
                sent += 1
            assert result.error_code == ErrorCode.KAFKA_STORAGE_ERROR
            assert 20 < sent < 40
            refused = produce(wire, full, batch_of([RECORD]), acks=-1)
            assert refused.error_code == ErrorCode.KAFKA_STORAGE_ERROR
            assert all("No space left on device" in line for line in serving.lines.of())
            serving.lines.clear()
            # Nobody is offline, the other disk serves, and everything written can be read.
            described = wire.ask(DescribeLogDirsRequest(topics=None)).results
            assert [each.error_code for each in described] == [0, 0]
            create_topic(wire, "other")
            assert produce(wire, "other", batch_of(["fine"]), acks=-1).error_code == 0
            assert read_numbers(wire, full, sent) == list(range(sent))
            ballast.unlink()
            after = produce(wire, full, batch_of([b"%d " % sent + RECORD]), acks=-1)
            assert (after.error_code, after.base_offset) == (0, sent)
            assert read_numbers(wire, full, sent + 1) == list(range(sent + 1))
        serving.stop()
        serving.start()
        with serving.connect() as wire:
            assert read_numbers(wire, full, sent + 1) == list(range(sent + 1))
        serving.lines.clear()


def read_numbers(wire: Wire, topic: str, count: int) -> list[int]:
    found: list[int] = []
    while len(found) < count:
        values = values_of(fetch(wire, topic, len(found)))
        assert values
        found += [int((value or b"").split()[0]) for value in values]
    return found

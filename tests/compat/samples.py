"""What every client is asked to carry: codecs, sizes, sample records; and loops that end."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

DEPS = Path(__file__).resolve().parents[2] / ".deps"
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
SIZES = (1, 100, 16_384, 1_000_000, 10_000_000)
# Room for the largest message and for any client's or batch's overhead.
ROOMY_BYTES = 12_000_000


@dataclass(frozen=True)
class Sample:
    """A record as a client should send it and as it should come back."""

    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    headers: tuple[tuple[str, bytes], ...] = ()


def make_samples(*, headers: bool = True) -> list[Sample]:
    """Return 40 records that differ in every field, with timestamps of the last hour.

    They are one second apart, and recent: a record older than the topic's retention may be deleted
    under the test.
    """
    start_ms = int(time.time() * 1000) - 3_600_000
    some = (("trace", b"1"), ("trace", b""), ("größe", b"\x00\xff"))
    return [
        Sample(
            key=None if number % 5 == 0 else b"key-%d" % number,
            value=None if number % 5 == 3 else b"value-%d " % number * (number + 1),
            timestamp_ms=start_ms + number * 1000,
            headers=some[: number % 4] if headers else (),
        )
        for number in range(40)
    ]


def until_deadline(what: str, seconds: float = 60) -> Iterator[float]:
    """Yield the seconds that are left, and fail the test when there are none."""
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        yield left
    pytest.fail(f"{what}: not within {seconds} s")

"""Segment files for tests, written batch by batch."""

from __future__ import annotations

from pathlib import Path

from barnabas.records.builder import build_batch
from barnabas.records.control import ControlType, build_control_batch

TIME_MS = 1_700_000_000_000


def batch(
    base: int, *values: bytes, codec: str = "none", producer: int = -1, epoch: int = 3
) -> bytes:
    """Return a batch of records whose times are the base time and their offsets."""
    rows = [
        (TIME_MS + base + number, b"k%d" % (base + number), value)
        for number, value in enumerate(values)
    ]
    return bytes(
        build_batch(
            rows,
            codec,
            base_offset=base,
            leader_epoch=epoch,
            producer_id=producer,
            producer_epoch=0 if producer >= 0 else -1,
            base_sequence=0 if producer >= 0 else -1,
            transactional=producer >= 0,
        )
    )


def marker(base: int, producer: int, kind: ControlType) -> bytes:
    return build_control_batch(
        kind,
        producer_id=producer,
        producer_epoch=0,
        coordinator_epoch=1,
        now_ms=TIME_MS + base,
        base_offset=base,
        leader_epoch=3,
    )


def segment(data: Path, name: str, base: int, *parts: bytes) -> Path:
    """Write one segment of a partition, such as "orders-0"."""
    directory = data / name
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{base:020d}.log"
    path.write_bytes(b"".join(parts))
    return path

"""The latest records of a topic, from which its columns are inferred."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from barnabas.spark.offset_ranges import OffsetRange
from barnabas.spark.range_reader import read_ranges

RECORDS = 500
STALLED_MS = 30_000.0

Sample = list[tuple[bytes | None, bytes | None]]
"""Keys and values."""


def latest(ranges: Sequence[OffsetRange], records: int = RECORDS) -> list[OffsetRange]:
    """Return the ends of ranges, with about that many offsets in total."""
    wanted = [each for each in ranges if len(each)]
    share = max(1, records // max(1, len(wanted)))
    return [replace(each, start=max(each.start, each.until - share)) for each in wanted]


def take_sample(
    client: Mapping[str, str], ranges: Sequence[OffsetRange], records: int = RECORDS
) -> Sample:
    """Return keys and values of the latest records; of the first ones if those have no records.

    The last offsets may have no records: markers of transactions, and what compaction removed.
    """
    sample = _read(client, latest(ranges, records), records)
    return sample or _read(client, [each for each in ranges if len(each)], records)


def _read(client: Mapping[str, str], ranges: Sequence[OffsetRange], records: int) -> Sample:
    found: Sample = []
    for batch in read_ranges(client, ranges, fail_on_data_loss=False, poll_timeout_ms=STALLED_MS):
        found += zip(
            batch.column("key").to_pylist(), batch.column("value").to_pylist(), strict=True
        )
        if len(found) >= records:
            break
    return found[:records]

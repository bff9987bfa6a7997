"""Single records by partition and offset: for their pages, and to send them again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from concurrent.futures import Executor
from typing import Final

from barnabas.console.records.asking import TopicAccess
from barnabas.console.records.decoding import Decoder
from barnabas.console.records.filter_evaluation import Test
from barnabas.console.records.rows import Row
from barnabas.console.records.scanning import Wanted, end_of, scan

Place = tuple[int, int]
"""Partition and offset."""

PLACES_MAX: Final = 1000
_FETCH_BYTES: Final = 1 << 20


class PlaceError(ValueError):
    """A place that is none, or too many of them."""


def read_places(texts: Iterable[str]) -> list[Place]:
    """Return the places that a form has chosen; raise PlaceError."""
    places: list[Place] = []
    for text in texts:
        partition, _, offset = text.partition(":")
        numbers = (partition, offset)
        if not all(each.isascii() and each.isdigit() and len(each) <= 19 for each in numbers):
            raise PlaceError(f"{text[:40]!r} must be PARTITION:OFFSET")
        places.append((int(partition), int(offset)))
    if len(places) > PLACES_MAX:
        raise PlaceError(f"{len(places)} records: at most {PLACES_MAX} at a time")
    return places


async def fetch_rows(
    access: TopicAccess, places: Iterable[Place], executor: Executor | None = None
) -> dict[Place, Row]:
    """Return the records at some places; those that are no longer there are left out."""
    by_partition: dict[int, set[int]] = {}
    for partition, offset in places:
        by_partition.setdefault(partition, set()).add(offset)
    spans = await access.spans(by_partition)
    found: dict[Place, Row] = {}
    for partition, offsets in by_partition.items():
        if partition not in spans:
            continue
        low, high = spans[partition]
        left = sorted(offset for offset in offsets if low <= offset < high)
        while left:
            first = left[0]
            fetched = await access.fetch(partition, first, _FETCH_BYTES)
            span = end_of(fetched.data)
            if span is None or span[1] <= first:
                left.pop(0)
                continue
            decoder = Decoder(access.name, "value", "hex")
            wanted = Wanted(
                partition,
                first,
                span[1],
                decoder,
                decoder,
                _is_among(offsets),
                everything=True,
            )
            # On a thread: a few kilobytes may unpack to many megabytes.
            scanned = await asyncio.get_running_loop().run_in_executor(
                executor, scan, [fetched.data], wanted, _work_on
            )
            for row in scanned.rows:
                if (row.is_record or row.offset == row.last_offset) and row.offset in offsets:
                    found[partition, row.offset] = row
            left = [offset for offset in left if offset >= span[1]]
    return found


def _is_among(offsets: set[int]) -> Test:
    return lambda record: record.offset in offsets


def _work_on() -> None:
    """Give no way: this is one fetch of records that were chosen by hand."""

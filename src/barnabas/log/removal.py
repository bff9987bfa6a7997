"""Segments that leave a log, with the snapshots beside them: the oldest, and compacted ones.

Their files are renamed to .deleted and returned to the caller, who unlinks them when no reader can
use them.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.log.file_pool import FilePool
from barnabas.log.producer_snapshot import take_out_snapshots
from barnabas.log.segment import Segment
from barnabas.log.segments import Segments


def take_out_first(pool: FilePool, directory: str, segments: Segments, count: int) -> list[str]:
    """Take out the oldest segments; return the files to unlink later."""
    paths = []
    for segment in segments.remove_first(count):
        paths += segment.take_out()
    return paths + take_out_snapshots(pool.files, directory, 0, segments[0].base_offset)


def replace(
    pool: FilePool, directory: str, segments: Segments, old: Sequence[Segment], new: Segment
) -> list[str]:
    """Put a compacted segment in the place of those it was made of; return the files to unlink.

    The snapshots inside go too: a transaction that is open in one of them may have lost its marker,
    because nothing else of it was left.
    """
    following = segments.base_after(old[-1])
    assert following is not None, new.base_offset
    segments.replace(old, new)
    new.adopt(pool)
    paths = []
    for segment in old:
        paths += segment.take_out()
    return paths + take_out_snapshots(pool.files, directory, new.base_offset, following)

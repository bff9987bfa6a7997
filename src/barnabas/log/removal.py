"""What leaves a log, with the snapshots beside it: the oldest segments, compacted ones, the end.

Segment files are renamed to .deleted and returned to the caller, who unlinks them when no reader
can use them. What is truncated must not reappear after a crash, between batches that are written
next; so everything is flushed before the log continues. The log lowers its own offsets.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.log.file_pool import FilePool
from barnabas.log.files import Files
from barnabas.log.producer_snapshot import snapshot_offsets, snapshot_path, take_out_snapshots
from barnabas.log.producer_state import ProducerStates
from barnabas.log.replay import rebuild_producers
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


def cut(files: Files, directory: str, segments: Segments, offset: int) -> int:
    """Remove the batches that contain `offset` or are above it; return the new log end."""
    segments.remove_above(offset)
    active = segments.active
    located = active.locate(offset)
    end = active.end_offset() if located is None else active.truncate(located[0])
    active.file.get().flush()
    files.flush_dir(directory)
    return end


def rewind_producers(
    files: Files, directory: str, producers: ProducerStates, segments: Segments, end: int
) -> None:
    """Restore the producer state as of the log end, and remove snapshots above it."""
    for taken in snapshot_offsets(files, directory):
        if taken > end:
            files.unlink(snapshot_path(directory, taken))
    rebuild_producers(files, directory, producers, list(segments), end)

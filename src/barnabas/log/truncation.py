"""Truncation of a log: of its segments, and of the state of its producers.

What was truncated must not reappear after a crash, between batches that are written next; so
everything is flushed before the log continues. The log lowers its own offsets.
"""

from __future__ import annotations

from barnabas.log.files import Files
from barnabas.log.producer_snapshot import snapshot_offsets, snapshot_path
from barnabas.log.producer_state import ProducerStates
from barnabas.log.replay import rebuild_producers
from barnabas.log.segments import Segments


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

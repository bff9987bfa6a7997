"""A log's end taken back: on disk, and in what is known of its producers.

What is gone must not come back after a crash, between batches that are written next; so all of it
is flushed before the log goes on. The offsets of the log are its own to lower.
"""

from __future__ import annotations

from barnabas.log.files import Files
from barnabas.log.producer_snapshot import snapshot_offsets, snapshot_path
from barnabas.log.producer_state import ProducerStates
from barnabas.log.replay import rebuild_producers
from barnabas.log.segments import Segments


def cut(files: Files, directory: str, segments: Segments, offset: int) -> int:
    """Remove the batches that hold `offset` or lie above it; return where the log ends now."""
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
    """Bring the producers back to the log's end, and remove what was noted of them above it."""
    for taken in snapshot_offsets(files, directory):
        if taken > end:
            files.unlink(snapshot_path(directory, taken))
    rebuild_producers(files, directory, producers, list(segments), end)

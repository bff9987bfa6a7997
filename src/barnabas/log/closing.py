"""What a clean stop writes next to a log's batches, so that the next start need not read them."""

from __future__ import annotations

from barnabas.log.files import Files
from barnabas.log.producer_snapshot import snapshot_path, write_snapshot
from barnabas.log.producer_state import ProducerStates
from barnabas.log.segments import Segments


def write_side_files(
    files: Files, directory: str, segments: Segments, producers: ProducerStates, end: int
) -> list[str]:
    """Write indexes and the state of producers; return the files that must still be flushed."""
    paths = []
    for segment in segments:
        segment.finish()
        if segment.side_files_changed:
            paths += segment.side_files()
    snapshot = snapshot_path(directory, end)
    if end > segments[0].base_offset and not files.exists(snapshot):
        write_snapshot(files, directory, producers, end)
        paths.append(snapshot)
    return paths

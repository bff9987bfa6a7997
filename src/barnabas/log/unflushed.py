"""What of a log's directory is not flushed yet, besides its batches.

Names that were created or changed, the file with the topic's id, index files and snapshots of
closed segments, leader epochs: a flush takes them over, and returns them if it fails.
"""

from __future__ import annotations

from barnabas.log import partition_metadata
from barnabas.log.files import Files
from barnabas.log.flush import Flush
from barnabas.log.leader_epochs import EPOCH_FILE, LeaderEpochs
from barnabas.log.producer_snapshot import snapshot_path, write_snapshot
from barnabas.log.producer_state import ProducerStates
from barnabas.log.segments import Segments


class Unflushed:
    """The names and side files of one log that a flush must include."""

    __slots__ = ("_directory", "_files", "_metadata", "directories")

    def __init__(self, files: Files, directory: str, *, settled: bool) -> None:
        """Begin with nothing unflushed if the log is `settled`, else with all that can be."""
        self.directories: set[str] = set()  # whose names are not flushed
        self._metadata = False
        self._files = files
        self._directory = directory
        if not settled:
            self.move_to(directory)
            self._metadata = True

    def move_to(self, directory: str) -> None:
        """Follow the log to another directory, whose name is not flushed."""
        self._directory = directory
        self.directories = {directory, directory.rpartition("/")[0]}

    def gather(
        self,
        segments: Segments,
        leader_epochs: LeaderEpochs,
        target: int,
        *,
        recovery_point: int,
        generation: int,
        side_files: list[str],
    ) -> Flush | None:
        """Return what must be flushed for the recovery point to reach the target, if anything."""
        unsaved = leader_epochs.changed or self.directories or side_files
        if target <= recovery_point and not unsaved:
            return None
        reached = segments.starting_at(recovery_point)
        reached = [segment for segment in reached if segment.base_offset < target]
        for segment in reached:
            following = segments.base_after(segment)
            if following is not None:
                side_files += segment.side_files()
                side_files.append(snapshot_path(self._directory, following))
        if self._metadata:
            side_files.append(f"{self._directory}/{partition_metadata.NAME}")
        epochs = None
        if leader_epochs.changed:
            epochs = (f"{self._directory}/{EPOCH_FILE}", leader_epochs.encode())
            self.directories.add(self._directory)
        flush = Flush(
            self._files,
            target,
            reached,
            generation=generation,
            side_files=side_files,
            directories=sorted(self.directories),
            epochs=epochs,
        )
        leader_epochs.changed = False
        self.directories.clear()
        return flush

    def gather_side_files(
        self, segments: Segments, producers: ProducerStates, end: int
    ) -> list[str]:
        """Write what a clean start reads instead of the batches; return the files to flush.

        That is: all indexes, and the state of producers at the log's end.
        """
        paths = []
        for segment in segments:
            segment.finish()
            if segment.side_files_changed:
                paths += segment.side_files()
        snapshot = snapshot_path(self._directory, end)
        if end > segments[0].base_offset and not self._files.exists(snapshot):
            write_snapshot(self._files, self._directory, producers, end)
            paths.append(snapshot)
        if paths:
            self.directories.add(self._directory)
        return paths

    def settle(self, flush: Flush, leader_epochs: LeaderEpochs) -> None:
        """Record the outcome of a flush that was gathered here."""
        if flush.done:
            self._metadata = False
        else:
            leader_epochs.changed = leader_epochs.changed or flush.epochs is not None
            self.directories.update(flush.directories)

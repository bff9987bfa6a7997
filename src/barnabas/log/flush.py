"""A flush of one log, in three steps, so that the slow one can run on another thread.

`PartitionLog.begin_flush` pins the files and notes what to write; `Flush.run` does the work and
touches nothing that another thread may change; `PartitionLog.finish_flush` moves the recovery
point. Many flushes can be run as one group between their first and last steps.
"""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.log.file_pool import PooledFile
from barnabas.log.files import File, Files


@dataclass
class Flush:
    """What must reach the disk before the recovery point may move to `up_to`."""

    files: Files
    up_to: int
    generation: int
    pinned: list[tuple[PooledFile, File]]
    paths: list[str]
    directories: list[str]
    epochs: tuple[str, bytes] | None
    done: bool = False

    def run(self) -> None:
        """Flush; a StorageError leaves the recovery point where it was."""
        for _, file in self.pinned:
            file.flush()
        for path in self.paths:
            # A side file may be gone: segments without aborted transactions have one less, and a
            # segment may be deleted while this runs.
            self.files.flush_file(path)
        if self.epochs is not None:
            path, data = self.epochs
            self.files.write_atomic(path, data, flush=True)
        for directory in self.directories:
            self.files.flush_dir(directory)
        self.done = True

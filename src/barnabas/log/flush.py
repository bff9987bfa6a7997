"""A flush of one log, in three steps, so that the slow one can run on another thread.

`PartitionLog.begin_flush` pins the files and records what to write; `Flush.run` does the work and
touches nothing that another thread may change; `PartitionLog.finish_flush` moves the recovery
point. Many flushes can be run as one group between their first and last steps.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.log.file_pool import PooledFile
from barnabas.log.files import File, Files
from barnabas.log.segment import Segment


class Flush:
    """What must reach the disk before the recovery point may move to `up_to`."""

    def __init__(
        self,
        files: Files,
        up_to: int,
        segments: Sequence[Segment],
        *,
        generation: int,
        side_files: Sequence[str],
        directories: Sequence[str],
        epochs: tuple[str, bytes] | None,
    ) -> None:
        self.up_to = up_to
        self.generation = generation
        self.directories = list(directories)
        self.epochs = epochs
        self.done = False
        self._files = files
        self._paths = list(side_files)
        self._pooled: list[PooledFile] = []
        self._opened: list[File] = []
        try:
            for segment in segments:
                self._opened.append(segment.file.pin())
                self._pooled.append(segment.file)
        except BaseException:
            self.release()
            raise

    def run(self) -> None:
        """Flush; a StorageError leaves the recovery point where it was."""
        for file in self._opened:
            file.flush()
        for path in self._paths:
            # A side file may be missing: segments without aborted transactions have one less, and
            # a segment may be deleted while this runs.
            self._files.flush_file(path)
        if self.epochs is not None:
            # As write_atomic does it; the name lasts with the directory's flush below. The other
            # name is this thread's alone: a truncation may write the file at the same time.
            path, data = self.epochs
            temporary = path + ".flush.tmp"
            self._files.write(temporary, data)
            self._files.flush_file(temporary)
            self._files.rename(temporary, path)
        for directory in self.directories:
            self._files.flush_dir(directory)
        self.done = True

    def release(self) -> None:
        """Unpin the files."""
        for pooled in self._pooled:
            pooled.unpin()

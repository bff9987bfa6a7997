"""Where lines end: standard error, or Kafka's set of files."""

from __future__ import annotations

import os
import select
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from barnabas.logging.loggers import files_of
from barnabas.logging.queued_handler import Line
from barnabas.logging.rotating_file import RotatingFile


class StreamSink:
    """A stream of the process, which may be a pipe that its reader does not empty."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        try:
            # Past the stream's buffer: a thread that hangs in it would hold its lock, and the
            # interpreter takes that at exit.
            self._descriptor: int | None = stream.fileno()
        except (OSError, ValueError):
            self._descriptor = None
        self._encoding = stream.encoding or "utf-8"

    def write(self, lines: Sequence[Line]) -> None:
        """Write lines, as long as it takes."""
        text = "".join(f"{line.text}\n" for line in lines)
        if self._descriptor is None:
            self._stream.write(text)
            self._stream.flush()
            return
        rest = memoryview(text.encode(self._encoding, "backslashreplace"))
        while rest:
            try:
                rest = rest[os.write(self._descriptor, rest) :]
            except BlockingIOError:  # another process has made the shared pipe non-blocking
                select.select([], [self._descriptor], [])

    def close(self) -> None:
        """Leave the stream open: it is the process's."""


class FileSink:
    """Kafka's set of files in a directory, each rotated when it is large."""

    def __init__(self, directory: str, bytes_max: int, backups: int) -> None:
        self._directory = Path(directory)
        self._bytes_max = bytes_max
        self._backups = backups
        self._files: dict[str, RotatingFile] = {}

    def open(self, names: Sequence[str]) -> None:
        """Create the directory and these files, or raise OSError."""
        self._directory.mkdir(parents=True, exist_ok=True)
        for name in names:
            self._file(name).open()

    def write(self, lines: Sequence[Line]) -> None:
        """Write each line to the files of its logger."""
        texts: dict[str, list[str]] = defaultdict(list)
        for line in lines:
            for name in files_of(line.logger, line.event):
                texts[name].append(f"{line.text}\n")
        failure: OSError | None = None
        for name, parts in texts.items():
            try:
                self._file(name).write("".join(parts).encode("utf-8", "backslashreplace"))
            except OSError as reason:
                failure = reason  # the others may be on another disk
        if failure is not None:
            raise failure

    def close(self) -> None:
        """Close the files."""
        for file in self._files.values():
            file.close()

    def _file(self, name: str) -> RotatingFile:
        file = self._files.get(name)
        if file is None:
            path = self._directory / name
            file = self._files[name] = RotatingFile(path, self._bytes_max, self._backups)
        return file

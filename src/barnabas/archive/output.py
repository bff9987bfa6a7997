"""The output of an export: one file, or a directory with files for each partition.

    orders-00003-00000000000000001500.parquet       topic, partition, first offset

A file is written under a hidden name, and renamed when it is complete: a file under its final name
can be read, and the partial files of a failed export are removed.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from barnabas.archive.csv_file import CsvWriter
from barnabas.archive.formats import Format
from barnabas.archive.jsonl_file import JsonLinesWriter
from barnabas.archive.parquet_file import GROUP_BYTES, ParquetFileWriter
from barnabas.archive.text import ArchiveError
from barnabas.model.ids import TopicPartition

MEMORY_BYTES = 128 * 1024 * 1024
"""Rows that are buffered for their row groups, in all files together."""


class Writer(Protocol):
    """A file that is appended to; its input depends on its format."""

    def write(self, chunk: Any, /) -> None:
        """Append records."""

    def close(self) -> None:
        """Finish the file."""


class _Open:
    """A file that is being written."""

    def __init__(self, path: Path, hidden: Path, writer: Writer) -> None:
        self.path = path
        self.hidden = hidden
        self.writer = writer
        self.rows = 0


class Output:
    """Files of one export; end it with `finish` or `discard`."""

    def __init__(
        self,
        path: Path,
        format: Format,
        *,
        single: bool,
        partitions: int,
        rows_per_file: int | None = None,
        overwrite: bool = False,
    ) -> None:
        self._path = path
        self._format = format
        self._single = single
        self._group_bytes = min(GROUP_BYTES, MEMORY_BYTES // max(1, partitions))
        self._rows_per_file = rows_per_file
        self._overwrite = overwrite
        self._open: dict[TopicPartition | None, _Open] = {}
        self.files: list[Path] = []
        if single:
            self._check(path)
            path.parent.mkdir(parents=True, exist_ok=True)
            self._open[None] = self._begin(path)
        else:
            if path.exists() and not path.is_dir():
                raise ArchiveError(f"{path}: must be a directory")
            path.mkdir(parents=True, exist_ok=True)
            if not overwrite and any(path.glob(f"*.{format.value}")):
                raise ArchiveError(
                    f"{path}: already has {format.value} files; --overwrite replaces them"
                )

    def write(self, partition: TopicPartition, offset: int, chunk: Any, rows: int) -> None:
        """Append a chunk of a partition that begins at an offset."""
        key = None if self._single else partition
        file = self._open.get(key)
        if file is None:
            name = f"{partition.topic}-{partition.partition:05d}-{offset:020d}.{self._format.value}"
            file = self._open[key] = self._begin(self._path / name)
        file.writer.write(chunk)
        file.rows += rows
        if not self._single and self._rows_per_file and file.rows >= self._rows_per_file:
            self._finish(key)

    def room(self, partition: TopicPartition) -> int | None:
        """Return how many rows the current file of a partition still takes; None: any number."""
        if self._single or self._rows_per_file is None:
            return None
        file = self._open.get(partition)
        return self._rows_per_file - (0 if file is None else file.rows)

    def finish_partition(self, partition: TopicPartition) -> None:
        """Finish the file of a complete partition."""
        if not self._single and partition in self._open:
            self._finish(partition)

    def finish(self) -> None:
        """Finish all files."""
        for key in list(self._open):
            self._finish(key)

    def discard(self) -> None:
        """Remove incomplete files."""
        for file in self._open.values():
            with suppress(OSError):  # the disk may be full, and the rest is dropped anyway
                file.writer.close()
            file.hidden.unlink(missing_ok=True)
        self._open.clear()

    def _check(self, path: Path) -> None:
        if path.is_dir():
            raise ArchiveError(f"{path}: is a directory")
        if path.exists() and not self._overwrite:
            raise ArchiveError(f"{path}: already exists; --overwrite replaces it")

    def _begin(self, path: Path) -> _Open:
        hidden = path.with_name(f".{path.name}.part")
        writer: Writer
        if self._format is Format.PARQUET:
            writer = ParquetFileWriter(hidden, self._group_bytes)
        elif self._format is Format.CSV:
            writer = CsvWriter(hidden)
        else:
            writer = JsonLinesWriter(hidden)
        return _Open(path, hidden, writer)

    def _finish(self, key: TopicPartition | None) -> None:
        file = self._open[key]
        file.writer.close()
        os.replace(file.hidden, file.path)
        del self._open[key]
        self.files.append(file.path)

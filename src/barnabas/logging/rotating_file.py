"""A file of lines that is rotated by size: server.log, server.log.1 (the newest before), …"""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO


class RotatingFile:
    """Appends to a file, and renames it before it would exceed a size."""

    def __init__(self, path: Path, bytes_max: int, backups: int) -> None:
        self._path = path
        self._bytes_max = bytes_max
        self._backups = backups
        self._file: BinaryIO | None = None
        self._size = 0

    def open(self) -> None:
        """Open the file, and create it if it does not exist."""
        if self._file is None:
            self._file = self._path.open("ab", buffering=0)
            self._size = os.fstat(self._file.fileno()).st_size

    def write(self, data: bytes) -> None:
        """Append whole lines; raise OSError if that fails, and open the file again next time."""
        try:
            if self._size and self._size + len(data) > self._bytes_max:
                self._rotate()
            self.open()
            assert self._file is not None
            rest = memoryview(data)
            while rest:
                written = self._file.write(rest)
                self._size += written
                rest = rest[written:]
        except OSError:
            self.close()
            raise

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _rotate(self) -> None:
        self.close()
        for number in range(self._backups, 0, -1):
            newer = self._path if number == 1 else self._numbered(number - 1)
            if newer.exists():
                newer.replace(self._numbered(number))
        if not self._backups:
            self._path.unlink(missing_ok=True)
        self._size = 0

    def _numbered(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")

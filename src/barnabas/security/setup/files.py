"""Files that only their owner may read, created whole or not at all, and never overwritten.

A file is written under another name first, and linked to its own: a crash leaves no half of it,
and of two who create it at once one is told that it exists.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from barnabas.model.errors import ConfigError

DIRECTORY_MODE = 0o700
FILE_MODE = 0o600
OTHERS = stat.S_IRWXG | stat.S_IRWXO


def make_private(directory: Path) -> None:
    """Create a directory for its owner alone; raise ConfigError if others may enter one there."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    try:
        directory.mkdir(DIRECTORY_MODE)
    except FileExistsError:
        if not directory.is_dir():
            raise ConfigError(f"{directory}: is not a directory") from None
        mode = stat.S_IMODE(directory.stat().st_mode)
        if mode & OTHERS:
            raise ConfigError(
                f"{directory}: has mode {mode:04o}, but will have secrets: chmod 700 {directory}"
            ) from None


def create(path: Path, content: bytes) -> bool:
    """Create a file; return False if it exists, and leave that as it is."""
    if path.exists():
        return False
    written = _write(path, content)
    try:
        os.link(written, path)
    except FileExistsError:
        return False
    finally:
        written.unlink()
    return True


def replace(path: Path, content: bytes) -> None:
    """Replace a file in one step: its readers see the old content or the new one."""
    _write(path, content).replace(path)


def _write(path: Path, content: bytes) -> Path:
    written = path.with_name(f".{path.name}.{os.getpid()}")
    written.unlink(missing_ok=True)  # of a process that was killed
    descriptor = os.open(written, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    return written

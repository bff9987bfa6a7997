"""Files that belong to two logs: a fork and its source have the same closed segments by hard links.

The rule that keeps them apart: a file with several names never gets other bytes. Files are removed
and renamed by name, which the other log does not notice; appends go to a segment of the log's own;
what must be cut is replaced by a shorter copy. It holds for hard links that others made, too.
"""

from __future__ import annotations

from barnabas.log.files import File, Files

CHUNK_BYTES = 1024 * 1024


def copy_start(files: Files, source: File, path: str, size: int) -> None:
    """Write the first `size` bytes of a file to another one, and flush it."""
    copy_range(files, source, path, 0, size)


def copy_range(files: Files, source: File, path: str, start: int, end: int) -> None:
    """Write the bytes between two positions of a file to another one, and flush it."""
    files.write(path, b"")
    target = files.open(path)
    try:
        position = start
        while position < end:
            data = source.pread(min(CHUNK_BYTES, end - position), position)
            if not data:
                break
            target.pwrite(data, position - start)
            position += len(data)
        target.flush()
    finally:
        target.close()


def cut_shared(files: Files, path: str, size: int) -> bool:
    """Replace a file with several names by a copy of its first `size` bytes; return whether."""
    if files.links(path) <= 1:
        return False
    source = files.open(path)
    try:
        copy_start(files, source, path + ".tmp", size)
    finally:
        source.close()
    files.rename(path + ".tmp", path)
    files.flush_dir(path.rpartition("/")[0])
    return True

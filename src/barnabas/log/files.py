"""The only access of the log to the file system.

`Files` is the contract, `DiskFiles` the real disk. No other module of this package touches `os` or
`open`, so a simulation can substitute its own disk, and lose what was not flushed.

What survives a crash of the machine, which every implementation must honour and every caller may
rely on:

- **Bytes** of a file survive up to the last `File.flush()` or `Files.flush_file()` of it. Later
  writes and truncations may be there in full, in part (torn at any byte, or as zeros) or not at
  all.
- **Names** (a created, renamed or unlinked file, a new directory) survive once `flush_dir()` of
  the directory that holds the name has returned. Before that, each change may be there or not.
- `write_atomic(..., flush=True)` does all of it: after it returns the new content survives, and a
  crash in the middle leaves the old content or the new one, never a mixture. With `flush=False` a
  crash may leave the old content, the new one, an empty file or none.
- A crash of the process alone loses nothing that a call returned from.

Every error of the operating system is a StorageError that names the operation and the path, with
the OSError as its cause. A missing file is None or False if callers can expect it. Paths are `str`
with slashes.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from typing import Protocol, TypeAlias

from barnabas.model.errors import StorageError

Data: TypeAlias = bytes | bytearray | memoryview


class File(Protocol):
    """An open file, read and written at explicit positions; it has no cursor and no buffer of its
    own.
    """

    path: str

    def pread(self, size: int, position: int) -> bytes:
        """Return up to `size` bytes from `position`; fewer only at the end of the file."""
        ...

    def pread_into(self, buffer: bytearray | memoryview, position: int) -> int:
        """Fill `buffer` from `position`; return how much was filled, less only at the end of the
        file.
        """
        ...

    def pwrite(self, data: Data, position: int) -> None:
        """Write all of `data` at `position`; a StorageError may leave any prefix of it in the
        file.
        """
        ...

    def size(self) -> int:
        """Return the current size in bytes."""
        ...

    def truncate(self, size: int) -> None:
        """Cut the file at `size`, or extend it to `size` with zeros."""
        ...

    def flush(self) -> None:
        """Make the bytes survive a crash (not the name: see the module's promises)."""
        ...

    def fileno(self) -> int | None:
        """Return the descriptor for zero-copy sending, or None when there is none."""
        ...

    def close(self) -> None:
        """Close the descriptor; does not flush."""
        ...


class Lock(Protocol):
    """A held lock on a path."""

    def release(self) -> None:
        """Release the lock."""
        ...


class Files(Protocol):
    """A file system."""

    def open(self, path: str, *, create: bool = False) -> File:
        """Open for reading and writing; with `create`, create an empty file if there is none."""
        ...

    def read(self, path: str) -> bytes | None:
        """Return the whole content of a small file, or None when there is no such file."""
        ...

    def write(self, path: str, data: Data) -> None:
        """Replace the whole content, creating the file; neither atomic nor flushed."""
        ...

    def write_atomic(self, path: str, data: Data, *, flush: bool = True) -> None:
        """Replace the whole content through `<path>.tmp` and a rename; with `flush` it survives a
        crash.
        """
        ...

    def exists(self, path: str) -> bool:
        """Return whether a file or directory has this name."""
        ...

    def size(self, path: str) -> int | None:
        """Return a file's size in bytes, or None when there is no such file."""
        ...

    def mtime_ms(self, path: str) -> int | None:
        """Return when the file last changed, in milliseconds since 1970, or None when there is no
        such file.
        """
        ...

    def set_mtime_ms(self, path: str, mtime_ms: int) -> None:
        """Set when an existing file was last changed."""
        ...

    def list(self, path: str) -> list[str]:
        """Return the names in a directory, sorted."""
        ...

    def is_dir(self, path: str) -> bool:
        """Return whether the path is a directory."""
        ...

    def make_dirs(self, path: str) -> None:
        """Create a directory and its missing parents; an existing one is fine."""
        ...

    def rename(self, source: str, target: str) -> None:
        """Give a file or directory a new name, atomically, replacing a file that has it."""
        ...

    def link(self, source: str, target: str) -> None:
        """Give a file a second name; both have the same bytes from then on."""
        ...

    def links(self, path: str) -> int:
        """Return how many names a file has, 0 when there is no such file."""
        ...

    def unlink(self, path: str) -> bool:
        """Remove a file; return False when there was none. Open Files of it stay readable."""
        ...

    def remove_tree(self, path: str) -> None:
        """Remove a directory with all that is in it; a missing one is fine."""
        ...

    def flush_file(self, path: str) -> bool:
        """Make a file's bytes survive a crash without keeping it open; return False when there is
        none.
        """
        ...

    def flush_dir(self, path: str) -> None:
        """Make the names in a directory survive a crash."""
        ...

    def space(self, path: str) -> tuple[int, int]:
        """Return how many bytes the disk of a directory has, and how many are free."""
        ...

    def lock(self, path: str) -> Lock:
        """Take the exclusive lock on a path, creating the file; StorageError when someone holds
        it.
        """
        ...


def _refused(operation: str, path: str, failure: OSError) -> StorageError:
    return StorageError(f"cannot {operation} {path}: {failure.strerror or failure}")


class DiskFile:
    """A File of the operating system."""

    __slots__ = ("_descriptor", "path")

    def __init__(self, path: str, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor

    def pread(self, size: int, position: int) -> bytes:
        try:
            data = os.pread(self._descriptor, size, position)
            if len(data) == size or not data:
                return data
            # A short read is the end of the file, a signal, or a read above the kernel's 2 GiB
            # limit.
            parts = [data]
            missing, position = size - len(data), position + len(data)
            while missing and (data := os.pread(self._descriptor, missing, position)):
                parts.append(data)
                missing, position = missing - len(data), position + len(data)
            return b"".join(parts)
        except OSError as failure:
            raise _refused(f"read {size} bytes at {position} of", self.path, failure) from failure

    def pread_into(self, buffer: bytearray | memoryview, position: int) -> int:
        view = memoryview(buffer)
        filled = 0
        try:
            while filled < len(view):
                count = os.preadv(self._descriptor, [view[filled:]], position + filled)
                if count == 0:
                    break
                filled += count
        except OSError as failure:
            raise _refused(f"read at {position} of", self.path, failure) from failure
        return filled

    def pwrite(self, data: Data, position: int) -> None:
        try:
            written = os.pwrite(self._descriptor, data, position)
            if written != len(data):
                view = memoryview(data)
                while written < len(view):
                    written += os.pwrite(self._descriptor, view[written:], position + written)
        except OSError as failure:
            operation = f"write {len(data)} bytes at {position} of"
            raise _refused(operation, self.path, failure) from failure

    def size(self) -> int:
        try:
            return os.fstat(self._descriptor).st_size
        except OSError as failure:
            raise _refused("get the size of", self.path, failure) from failure

    def truncate(self, size: int) -> None:
        try:
            os.ftruncate(self._descriptor, size)
        except OSError as failure:
            raise _refused(f"truncate to {size} bytes", self.path, failure) from failure

    def flush(self) -> None:
        try:
            _sync_data(self._descriptor)
        except OSError as failure:
            raise _refused("flush", self.path, failure) from failure

    def fileno(self) -> int | None:
        return self._descriptor

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            try:
                os.close(descriptor)
            except OSError as failure:
                raise _refused("close", self.path, failure) from failure


# macOS has no fdatasync.
_sync_data = getattr(os, "fdatasync", os.fsync)


class DiskLock:
    """An advisory lock, held by an open descriptor: the kernel frees it when the process dies."""

    def __init__(self, path: str, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor

    def release(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


class DiskFiles:
    """The file system of the operating system."""

    def open(self, path: str, *, create: bool = False) -> DiskFile:
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        try:
            return DiskFile(path, os.open(path, flags, 0o644))
        except OSError as failure:
            raise _refused("open", path, failure) from failure

    def read(self, path: str) -> bytes | None:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        except OSError as failure:
            raise _refused("open", path, failure) from failure
        file = DiskFile(path, descriptor)
        try:
            return file.pread(file.size(), 0)
        finally:
            file.close()

    def write(self, path: str, data: Data) -> None:
        file = self._replace(path)
        try:
            if data:
                file.pwrite(data, 0)
        finally:
            file.close()

    def _replace(self, path: str) -> DiskFile:
        flags = os.O_RDWR | os.O_CLOEXEC | os.O_CREAT | os.O_TRUNC
        try:
            return DiskFile(path, os.open(path, flags, 0o644))
        except OSError as failure:
            raise _refused("create", path, failure) from failure

    def write_atomic(self, path: str, data: Data, *, flush: bool = True) -> None:
        temporary = path + ".tmp"
        file = self._replace(temporary)
        try:
            file.pwrite(data, 0)
            if flush:
                file.flush()
        finally:
            file.close()
        self.rename(temporary, path)
        if flush:
            self.flush_dir(os.path.dirname(path))

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def size(self, path: str) -> int | None:
        status = self._stat(path)
        return None if status is None else status.st_size

    def mtime_ms(self, path: str) -> int | None:
        status = self._stat(path)
        return None if status is None else status.st_mtime_ns // 1_000_000

    def set_mtime_ms(self, path: str, mtime_ms: int) -> None:
        try:
            os.utime(path, ns=(mtime_ms * 1_000_000, mtime_ms * 1_000_000))
        except OSError as failure:
            raise _refused("set the time of", path, failure) from failure

    def _stat(self, path: str) -> os.stat_result | None:
        try:
            return os.stat(path)
        except FileNotFoundError:
            return None
        except OSError as failure:
            raise _refused("stat", path, failure) from failure

    def list(self, path: str) -> list[str]:
        try:
            return sorted(os.listdir(path))
        except OSError as failure:
            raise _refused("list", path, failure) from failure

    def is_dir(self, path: str) -> bool:
        return os.path.isdir(path)

    def make_dirs(self, path: str) -> None:
        try:
            os.mkdir(path)
        except FileExistsError:
            if not os.path.isdir(path):
                raise StorageError(
                    f"cannot create directory {path}: a file of that name exists"
                ) from None
        except FileNotFoundError:
            try:
                os.makedirs(path, exist_ok=True)
            except OSError as failure:
                raise _refused("create directory", path, failure) from failure
        except OSError as failure:
            raise _refused("create directory", path, failure) from failure

    def rename(self, source: str, target: str) -> None:
        try:
            os.replace(source, target)
        except OSError as failure:
            raise _refused(f"rename {source} to", target, failure) from failure

    def link(self, source: str, target: str) -> None:
        try:
            os.link(source, target)
        except OSError as failure:
            raise _refused(f"link {source} to", target, failure) from failure

    def links(self, path: str) -> int:
        status = self._stat(path)
        return 0 if status is None else status.st_nlink

    def unlink(self, path: str) -> bool:
        try:
            os.unlink(path)
        except FileNotFoundError:
            return False
        except OSError as failure:
            raise _refused("remove", path, failure) from failure
        return True

    def remove_tree(self, path: str) -> None:
        try:
            with contextlib.suppress(FileNotFoundError):
                shutil.rmtree(path)
        except OSError as failure:
            raise _refused("remove directory", path, failure) from failure

    def flush_file(self, path: str) -> bool:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        except OSError as failure:
            raise _refused("open", path, failure) from failure
        try:
            _sync_data(descriptor)
        except OSError as failure:
            raise _refused("flush", path, failure) from failure
        finally:
            os.close(descriptor)
        return True

    def flush_dir(self, path: str) -> None:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as failure:
            raise _refused("flush directory", path, failure) from failure

    def space(self, path: str) -> tuple[int, int]:
        try:
            disk = os.statvfs(path)
        except OSError as failure:
            raise _refused("get the free space of", path, failure) from failure
        return disk.f_frsize * disk.f_blocks, disk.f_frsize * disk.f_bavail

    def lock(self, path: str) -> DiskLock:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as failure:
            raise _refused("open", path, failure) from failure
        try:
            # flock, not lockf: it also keeps two brokers of one process apart.
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as failure:
            os.close(descriptor)
            raise StorageError(f"cannot lock {path}: another broker is using it") from failure
        return DiskLock(path, descriptor)

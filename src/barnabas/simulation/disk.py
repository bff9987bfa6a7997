"""A disk in memory that can lose what was not flushed: `barnabas.log.files.Files` for simulations.

What is written is visible immediately, as through a page cache. `crash()` then does the worst that
the contract of `Files` allows, drawn from the seed:

- A file keeps its bytes as of its last flush. Of the writes and truncations since, all are lost, or
  a prefix of them stays with the last one torn at any byte, or any of them stay (pages are written
  back in any order; a gap reads as zeros).
- A directory keeps its names as of its last `flush_dir`. Of the changes since (create, rename,
  unlink, new directory), all are lost, or a prefix stays, or any of them stay. A rename is one
  change, also between directories.
- A flushed file whose name was not flushed is lost with its name.

`kill()` only ends the process: nothing is lost. After either, locks are free and earlier open files
are dead: they raise StorageError, so that a leaked one cannot write after the restart.

`inject()` makes operations on chosen paths fail, and a disk can be full; a write that fails leaves
a prefix of its bytes. `flip()` flips a bit. `before` is called before every operation.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from random import Random

from barnabas.log.files import Data
from barnabas.model.errors import StorageError
from barnabas.simulation.platter import (
    Directory,
    Edit,
    Entries,
    Inode,
    NameChange,
    Node,
    Truncate,
    Write,
    files_below,
    settle_names,
    surviving_names,
)


@dataclass(eq=False)
class Fault:
    """Makes operations fail while it is in `SimulatedDisk.faults`."""

    pattern: str
    code: int
    operations: frozenset[str]
    """Names of the methods that fail; empty for all."""
    count: int | None
    """How many more times it applies; None for always."""

    def strikes(self, operation: str, path: str) -> bool:
        if self.count == 0 or (self.operations and operation not in self.operations):
            return False
        if not fnmatchcase(path, self.pattern):
            return False
        if self.count is not None:
            self.count -= 1
        return True


class SimulatedFile:
    """An open file of a SimulatedDisk."""

    __slots__ = ("_disk", "_inode", "_life", "path")

    def __init__(self, disk: SimulatedDisk, inode: Inode, path: str) -> None:
        self.path = path
        self._disk = disk
        self._inode = inode
        self._life: int | None = disk.life

    def pread(self, size: int, position: int) -> bytes:
        self._check("pread")
        return bytes(self._inode.data[position : position + size])

    def pread_into(self, buffer: bytearray | memoryview, position: int) -> int:
        self._check("pread")
        view = memoryview(buffer).cast("B")
        data = self._inode.data[position : position + len(view)]
        view[: len(data)] = data
        return len(data)

    def pwrite(self, data: Data, position: int) -> None:
        written = bytes(data)
        try:
            self._check("pwrite")
            growth = max(position + len(written) - len(self._inode.data), 0)
            if self._disk.used_bytes + growth > self._disk.capacity_bytes:
                raise _refused("pwrite", self.path, errno.ENOSPC)
        except StorageError:
            if self._life == self._disk.life:
                self._write(written[: self._disk.random.randint(0, len(written))], position)
            raise
        self._write(written, position)

    def _write(self, data: bytes, position: int) -> None:
        if data:
            self._edit(Write(position, data))

    def _edit(self, edit: Edit) -> None:
        before = len(self._inode.data)
        self._inode.edit(edit)
        self._inode.mtime_ms = self._disk.now_ms()
        self._disk.used_bytes += len(self._inode.data) - before

    def size(self) -> int:
        self._check("size")
        return len(self._inode.data)

    def truncate(self, size: int) -> None:
        self._check("truncate")
        self._edit(Truncate(size))

    def flush(self) -> None:
        self._check("flush")
        self._inode.flush()

    def fileno(self) -> int | None:
        return None

    def close(self) -> None:
        self._life = None

    def _check(self, operation: str) -> None:
        if self._life != self._disk.life:
            raise StorageError(f"cannot {operation} {self.path}: the file is closed")
        self._disk.check(operation, self.path)


class SimulatedLock:
    """A held lock of a SimulatedDisk."""

    def __init__(self, disk: SimulatedDisk, inode: Inode) -> None:
        self._disk = disk
        self._inode = inode
        self._life = disk.life

    def release(self) -> None:
        if self._life == self._disk.life:
            self._disk.locks.pop(self._inode, None)


class SimulatedDisk:
    """The file system of one simulated host; implements `Files`."""

    def __init__(
        self, random: Random, now_ms: Callable[[], int], capacity_bytes: int = 1 << 40
    ) -> None:
        """Create an empty disk; a write beyond `capacity_bytes` finds it full."""
        self.random = random
        self.now_ms = now_ms
        self.capacity_bytes = capacity_bytes
        self.used_bytes = 0
        """Bytes in files with names; unlinked files that are still open are not counted."""
        self.life = 0
        """Counts kills and crashes; open files and locks do not survive them."""
        self.faults: list[Fault] = []
        self.before: Callable[[str, str], None] = lambda operation, path: None
        """Called with the name and path of each operation before it runs: to count, to be slow, or
        to raise as a crash in the middle would.
        """
        self.locks: dict[Inode, None] = {}
        self._root = Directory()
        self._changes: list[NameChange] = []

    # Faults

    def inject(
        self,
        pattern: str,
        code: int = errno.EIO,
        operations: Sequence[str] = (),
        count: int | None = None,
    ) -> Fault:
        """Make operations on paths that match a glob fail with an errno, `count` times or always.

        `operations` are names of methods of Files or File (`pread` stands for both reads).
        """
        fault = Fault(pattern, code, frozenset(operations), count)
        self.faults.append(fault)
        return fault

    def kill(self) -> None:
        """Kill the process that uses the disk: it loses locks and open files, but no bytes."""
        self.life += 1
        self.locks.clear()

    def crash(self) -> None:
        """Lose power: what was not flushed is lost, too."""
        self.kill()
        for change in surviving_names(self._changes, self.random):
            change.apply(durable=True)
        self._changes.clear()
        # In the order of the walk, by name: one seed, one outcome.
        settle_names(self._root)
        for inode in {id(inode): inode for inode in files_below(self._root)}.values():
            inode.crash(self.random)
        self.used_bytes = self._measure()

    def flip(self, path: str, position: int, bit: int = 0) -> None:
        """Flip one bit of a file, on the platter too."""
        inode = self._inode("flip", path)
        if inode is None:
            raise _refused("flip", path, errno.ENOENT)
        inode.flush()
        for data in (inode.data, inode.durable):
            data[position] ^= 1 << bit

    def check(self, operation: str, path: str) -> None:
        """Raise StorageError if a fault applies."""
        self.before(operation, path)
        for fault in self.faults:
            if fault.strikes(operation, path):
                raise _refused(operation, path, fault.code)

    # Files

    def open(self, path: str, *, create: bool = False) -> SimulatedFile:
        """Open for reading and writing; with `create`, create an empty file if there is none."""
        self.check("open", path)
        return self._open(path, create)

    def read(self, path: str) -> bytes | None:
        """Return the contents of a file, or None if there is no such file."""
        self.check("read", path)
        inode = self._inode("read", path)
        return None if inode is None else bytes(inode.data)

    def write(self, path: str, data: Data) -> None:
        """Replace the contents, creating the file; neither atomic nor flushed."""
        self.check("write", path)
        file = self._open(path, create=True)
        file.truncate(0)
        file.pwrite(data, 0)
        file.close()

    def write_atomic(self, path: str, data: Data, *, flush: bool = True) -> None:
        """Replace the contents through `<path>.tmp` and a rename."""
        self.check("write_atomic", path)
        temporary = path + ".tmp"
        file = self._open(temporary, create=True)
        file.truncate(0)
        file.pwrite(data, 0)
        if flush:
            file.flush()
        file.close()
        self.rename(temporary, path)
        if flush:
            self.flush_dir(os.path.dirname(path))

    def size(self, path: str) -> int | None:
        """Return a file's size, or None if there is no such file."""
        self.check("size", path)
        inode = self._inode("size", path)
        return None if inode is None else len(inode.data)

    def mtime_ms(self, path: str) -> int | None:
        """Return when the file last changed, by the host's clock."""
        inode = self._inode("mtime_ms", path)
        return None if inode is None else inode.mtime_ms

    def set_mtime_ms(self, path: str, mtime_ms: int) -> None:
        """Set when a file last changed."""
        self.check("set_mtime_ms", path)
        inode = self._inode("set_mtime_ms", path)
        if inode is None:
            raise _refused("set_mtime_ms", path, errno.ENOENT)
        inode.mtime_ms = mtime_ms

    def flush_file(self, path: str) -> bool:
        """Flush a file's bytes, so that they survive a crash; return False if there is none."""
        self.check("flush_file", path)
        inode = self._inode("flush_file", path)
        if inode is not None:
            inode.flush()
        return inode is not None

    def lock(self, path: str) -> SimulatedLock:
        """Take the exclusive lock on a path, creating the file."""
        self.check("lock", path)
        self._open(path, create=True)
        inode = self._inode("lock", path)
        assert inode is not None
        if inode in self.locks:
            raise StorageError(f"cannot lock {path}: another broker is using it")
        self.locks[inode] = None
        return SimulatedLock(self, inode)

    # Names

    def exists(self, path: str) -> bool:
        """Return whether a file or directory has this name."""
        return self._find(path) is not None

    def is_dir(self, path: str) -> bool:
        """Return whether the path is a directory."""
        return isinstance(self._find(path), Directory)

    def list(self, path: str) -> list[str]:
        """Return the names in a directory, sorted."""
        self.check("list", path)
        return sorted(self._directory("list", path).names)

    def make_dirs(self, path: str) -> None:
        """Create a directory and its missing parents."""
        self.check("make_dirs", path)
        here = self._root
        for name in _names(path):
            node = here.names.get(name)
            if node is None:
                node = Directory()
                self._change([(here, name, node)])
            if not isinstance(node, Directory):
                raise _refused("make_dirs", path, errno.EEXIST)
            here = node

    def rename(self, source: str, target: str) -> None:
        """Give a file or directory a new name, replacing a file or an empty directory."""
        self.check("rename", source)
        self.check("rename", target)
        node = self._find(source)
        if node is None:
            raise _refused("rename", source, errno.ENOENT)
        replaced = self._find(target)
        if isinstance(replaced, Directory):
            if not isinstance(node, Directory):
                raise _refused("rename", target, errno.EISDIR)
            if replaced.names and replaced is not node:
                raise _refused("rename", target, errno.ENOTEMPTY)
        elif replaced is not None and isinstance(node, Directory):
            raise _refused("rename", target, errno.ENOTDIR)
        if replaced is not node:
            old, new = self._parent("rename", source), self._parent("rename", target)
            self._change([(*old, None), (*new, node)])

    def link(self, source: str, target: str) -> None:
        """Give a file a second name."""
        self.check("link", source)
        self.check("link", target)
        inode = self._inode("link", source)
        if inode is None:
            raise _refused("link", source, errno.ENOENT)
        if self._find(target) is not None:
            raise _refused("link", target, errno.EEXIST)
        self._change([(*self._parent("link", target), inode)])

    def links(self, path: str) -> int:
        """Return how many names a file has, 0 if there is no such file."""
        inode = self._inode("links", path)
        if inode is None:
            return 0
        return sum(other is inode for other in files_below(self._root))

    def unlink(self, path: str) -> bool:
        """Remove a file; return False if there was none. Open handles stay readable."""
        self.check("unlink", path)
        if self._inode("unlink", path) is None:
            return False
        self._change([(*self._parent("unlink", path), None)])
        return True

    def remove_tree(self, path: str) -> None:
        """Remove a directory and its contents, name by name; a missing one is fine."""
        self.check("remove_tree", path)
        node = self._find(path)
        if node is None:
            return
        if isinstance(node, Directory):
            for name in sorted(node.names):
                self.remove_tree(f"{path.rstrip('/')}/{name}")
        self._change([(*self._parent("remove_tree", path), None)])

    def flush_dir(self, path: str) -> None:
        """Flush the names in a directory, so that they survive a crash."""
        self.check("flush_dir", path)
        directory = self._directory("flush_dir", path)
        # A change depends on earlier ones of the same names, or a crash could restore an old one.
        needed: set[tuple[int, str]] = set()
        flushed: list[NameChange] = []
        for change in reversed(self._changes):
            keys = change.keys()
            if keys & needed or any(id(directory) == identity for identity, _ in keys):
                needed |= keys
                flushed.append(change)
        for change in reversed(flushed):
            change.apply(durable=True)
        kept = {id(change.entries) for change in flushed}
        self._changes = [change for change in self._changes if id(change.entries) not in kept]

    def space(self, path: str) -> tuple[int, int]:
        """Return the size of the disk and how much of it is free."""
        self.check("space", path)
        self._directory("space", path)
        return self.capacity_bytes, max(self.capacity_bytes - self.used_bytes, 0)

    # Inside

    def _measure(self) -> int:
        inodes = {id(inode): inode for inode in files_below(self._root)}
        return sum(len(inode.data) for inode in inodes.values())

    def _open(self, path: str, create: bool) -> SimulatedFile:
        inode = self._inode("open", path)
        if inode is None:
            if not create:
                raise _refused("open", path, errno.ENOENT)
            inode = Inode(self.now_ms())
            self._change([(*self._parent("open", path), inode)])
        return SimulatedFile(self, inode, path)

    def _find(self, path: str) -> Node | None:
        node: Node | None = self._root
        for name in _names(path):
            if not isinstance(node, Directory):
                return None
            node = node.names.get(name)
        return node

    def _inode(self, operation: str, path: str) -> Inode | None:
        node = self._find(path)
        if isinstance(node, Directory):
            raise _refused(operation, path, errno.EISDIR)
        return node

    def _directory(self, operation: str, path: str) -> Directory:
        node = self._find(path)
        if not isinstance(node, Directory):
            raise _refused(operation, path, errno.ENOENT if node is None else errno.ENOTDIR)
        return node

    def _parent(self, operation: str, path: str) -> tuple[Directory, str]:
        names = _names(path)
        return self._directory(operation, "/".join(names[:-1])), names[-1]

    def _change(self, entries: Entries) -> None:
        change = NameChange(entries)
        change.apply(durable=False)
        self._changes.append(change)
        if any(node is None for _, _, node in entries):
            self.used_bytes = self._measure()


def _names(path: str) -> list[str]:
    return [name for name in path.split("/") if name and name != "."]


def _refused(operation: str, path: str, code: int) -> StorageError:
    failure = OSError(code, os.strerror(code), path)
    refusal = StorageError(f"cannot {operation} {path}: {failure.strerror}")
    refusal.__cause__ = failure
    return refusal

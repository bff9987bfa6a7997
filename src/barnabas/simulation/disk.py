"""A disk in memory that can lose what was not flushed: `barnabas.log.files.Files` for simulations.

What is written is visible at once, as through a page cache. `crash()` then does the worst that
the contract of `Files` allows, drawn from the seed:

- A file keeps its bytes as of its last flush. Of the writes and truncations since, all are lost,
or a prefix of them stays with the last one torn at any byte, or any of them stay (pages are
written back in any order; a gap reads as zeros). - A directory keeps its names as of its last
`flush_dir`. Of the changes since (create, rename, unlink, new directory), all are lost, or a
prefix stays, or any of them stay. A rename is one change, also between directories. - A flushed
file whose name was not flushed is lost with its name.

`kill()` ends the process only: nothing is lost. After either, locks are free and the open files
of the past are dead: they raise StorageError, so that a forgotten one cannot write into the next
life.

`inject()` makes operations on chosen paths fail, and a disk can be full; a write that fails leaves
a prefix of its bytes.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from random import Random
from typing import NamedTuple

from barnabas.log.files import Data
from barnabas.model.errors import StorageError


class _Write(NamedTuple):
    position: int
    data: bytes


class _Truncate(NamedTuple):
    size: int


_Edit = _Write | _Truncate


class _Inode:
    """A file's bytes: as seen now, as on the platter, and the edits between the two."""

    __slots__ = ("data", "durable", "edits", "mtime_ms")

    def __init__(self, mtime_ms: int) -> None:
        self.data = bytearray()
        self.durable = bytearray()
        self.edits: list[_Edit] = []
        self.mtime_ms = mtime_ms

    def edit(self, edit: _Edit) -> None:
        _apply(self.data, edit)
        self.edits.append(edit)

    def flush(self) -> None:
        for edit in self.edits:
            _apply(self.durable, edit)
        self.edits.clear()

    def crash(self, random: Random) -> None:
        for edit in _surviving_edits(self.edits, random):
            _apply(self.durable, edit)
        self.data = bytearray(self.durable)
        self.edits.clear()


class _Directory:
    """Names: as seen now and as on the platter."""

    __slots__ = ("durable", "names")

    def __init__(self) -> None:
        self.names: dict[str, _Node] = {}
        self.durable: dict[str, _Node] = {}


_Node = _Inode | _Directory
_Entries = list[tuple[_Directory, str, _Node | None]]


class _NameChange(NamedTuple):
    """One atomic change of names: (directory, name, what it names now)."""

    entries: _Entries

    def keys(self) -> set[tuple[int, str]]:
        return {(id(directory), name) for directory, name, _ in self.entries}

    def apply(self, *, durable: bool) -> None:
        for directory, name, node in self.entries:
            names = directory.durable if durable else directory.names
            if node is None:
                names.pop(name, None)
            else:
                names[name] = node


@dataclass(eq=False)
class Fault:
    """Makes operations fail while it is in `SimulatedDisk.faults`."""

    pattern: str
    code: int
    operations: frozenset[str]
    """Names of the methods that fail; empty for all."""
    count: int | None
    """How often it still strikes; None for always."""

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

    def __init__(self, disk: SimulatedDisk, inode: _Inode, path: str) -> None:
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
            self._edit(_Write(position, data))

    def _edit(self, edit: _Edit) -> None:
        before = len(self._inode.data)
        self._inode.edit(edit)
        self._inode.mtime_ms = self._disk.now_ms()
        self._disk.used_bytes += len(self._inode.data) - before

    def size(self) -> int:
        self._check("size")
        return len(self._inode.data)

    def truncate(self, size: int) -> None:
        self._check("truncate")
        self._edit(_Truncate(size))

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

    def __init__(self, disk: SimulatedDisk, inode: _Inode) -> None:
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
        """Make an empty disk; a write that would grow it beyond `capacity_bytes` finds it full."""
        self.random = random
        self.now_ms = now_ms
        self.capacity_bytes = capacity_bytes
        self.used_bytes = 0
        """What the files with names hold; what only an open file still holds is not counted."""
        self.life = 0
        """Counts kills and crashes; open files and locks belong to one life."""
        self.faults: list[Fault] = []
        self.locks: dict[_Inode, None] = {}
        self._root = _Directory()
        self._changes: list[_NameChange] = []

    # What goes wrong

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
        """End the process that uses the disk: its locks and open files are gone, all bytes stay."""
        self.life += 1
        self.locks.clear()

    def crash(self) -> None:
        """Lose power: also lose what was not flushed."""
        self.kill()
        for change in _surviving_names(self._changes, self.random):
            change.apply(durable=True)
        self._changes.clear()
        # In the order of the walk, which is that of names: one seed, one outcome.
        _settle_names(self._root)
        for inode in _files_below(self._root):
            inode.crash(self.random)
        self.used_bytes = self._measure()

    def check(self, operation: str, path: str) -> None:
        """Raise StorageError if a fault strikes."""
        for fault in self.faults:
            if fault.strikes(operation, path):
                raise _refused(operation, path, fault.code)

    # Files

    def open(self, path: str, *, create: bool = False) -> SimulatedFile:
        """Open for reading and writing; with `create` make an empty file where there is none."""
        self.check("open", path)
        return self._open(path, create)

    def read(self, path: str) -> bytes | None:
        """Return the whole content of a file, or None when there is no such file."""
        self.check("read", path)
        inode = self._inode("read", path)
        return None if inode is None else bytes(inode.data)

    def write(self, path: str, data: Data) -> None:
        """Replace the whole content, creating the file; neither atomic nor flushed."""
        self.check("write", path)
        file = self._open(path, create=True)
        file.truncate(0)
        file.pwrite(data, 0)
        file.close()

    def write_atomic(self, path: str, data: Data, *, flush: bool = True) -> None:
        """Replace the whole content through `<path>.tmp` and a rename."""
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
        """Return a file's size, or None when there is no such file."""
        self.check("size", path)
        inode = self._inode("size", path)
        return None if inode is None else len(inode.data)

    def mtime_ms(self, path: str) -> int | None:
        """Return when the file last changed, by the host's clock."""
        inode = self._inode("mtime_ms", path)
        return None if inode is None else inode.mtime_ms

    def flush_file(self, path: str) -> bool:
        """Make a file's bytes survive a crash; return False when there is none."""
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
        """Tell whether a file or directory has this name."""
        return self._find(path) is not None

    def is_dir(self, path: str) -> bool:
        """Tell whether the path is a directory."""
        return isinstance(self._find(path), _Directory)

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
                node = _Directory()
                self._change([(here, name, node)])
            if not isinstance(node, _Directory):
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
        if isinstance(replaced, _Directory):
            if not isinstance(node, _Directory):
                raise _refused("rename", target, errno.EISDIR)
            if replaced.names and replaced is not node:
                raise _refused("rename", target, errno.ENOTEMPTY)
        elif replaced is not None and isinstance(node, _Directory):
            raise _refused("rename", target, errno.ENOTDIR)
        if replaced is not node:
            old, new = self._parent("rename", source), self._parent("rename", target)
            self._change([(*old, None), (*new, node)])

    def unlink(self, path: str) -> bool:
        """Remove a file; return False when there was none. Open files of it stay readable."""
        self.check("unlink", path)
        if self._inode("unlink", path) is None:
            return False
        self._change([(*self._parent("unlink", path), None)])
        return True

    def remove_tree(self, path: str) -> None:
        """Remove a directory with all that is in it, name by name; a missing one is fine."""
        self.check("remove_tree", path)
        node = self._find(path)
        if node is None:
            return
        if isinstance(node, _Directory):
            for name in sorted(node.names):
                self.remove_tree(f"{path.rstrip('/')}/{name}")
        self._change([(*self._parent("remove_tree", path), None)])

    def flush_dir(self, path: str) -> None:
        """Make the names in a directory survive a crash."""
        self.check("flush_dir", path)
        directory = self._directory("flush_dir", path)
        # A change needs those before it of the same names, or a crash could bring an old one back.
        needed: set[tuple[int, str]] = set()
        flushed: list[_NameChange] = []
        for change in reversed(self._changes):
            keys = change.keys()
            if keys & needed or any(id(directory) == place for place, _ in keys):
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
        return sum(len(inode.data) for inode in _files_below(self._root))

    def _open(self, path: str, create: bool) -> SimulatedFile:
        inode = self._inode("open", path)
        if inode is None:
            if not create:
                raise _refused("open", path, errno.ENOENT)
            inode = _Inode(self.now_ms())
            self._change([(*self._parent("open", path), inode)])
        return SimulatedFile(self, inode, path)

    def _find(self, path: str) -> _Node | None:
        node: _Node | None = self._root
        for name in _names(path):
            if not isinstance(node, _Directory):
                return None
            node = node.names.get(name)
        return node

    def _inode(self, operation: str, path: str) -> _Inode | None:
        node = self._find(path)
        if isinstance(node, _Directory):
            raise _refused(operation, path, errno.EISDIR)
        return node

    def _directory(self, operation: str, path: str) -> _Directory:
        node = self._find(path)
        if not isinstance(node, _Directory):
            raise _refused(operation, path, errno.ENOENT if node is None else errno.ENOTDIR)
        return node

    def _parent(self, operation: str, path: str) -> tuple[_Directory, str]:
        names = _names(path)
        return self._directory(operation, "/".join(names[:-1])), names[-1]

    def _change(self, entries: _Entries) -> None:
        change = _NameChange(entries)
        change.apply(durable=False)
        self._changes.append(change)
        if any(node is None for _, _, node in entries):
            self.used_bytes = self._measure()


def _apply(data: bytearray, edit: _Edit) -> None:
    if isinstance(edit, _Write):
        if edit.position > len(data):
            data.extend(bytes(edit.position - len(data)))
        data[edit.position : edit.position + len(edit.data)] = edit.data
    elif edit.size < len(data):
        del data[edit.size :]
    else:
        data.extend(bytes(edit.size - len(data)))


def _surviving_edits(edits: Sequence[_Edit], random: Random) -> list[_Edit]:
    """Draw which edits of a file a crash leaves: none, a prefix with a torn end, or any."""
    kind = random.choice(["none", "prefix", "any"])
    if kind == "any":
        return [edit for edit in edits if random.random() < 0.5]
    kept = list(edits[: random.randint(0, len(edits))]) if kind == "prefix" else []
    if kept and isinstance(kept[-1], _Write):
        position, data = kept[-1]
        kept[-1] = _Write(position, data[: random.randint(0, len(data))])
    return kept


def _surviving_names(changes: Sequence[_NameChange], random: Random) -> list[_NameChange]:
    """Draw which changes of names a crash leaves: none, a prefix, or any.

    A change needs those before it of the same names: a lost one takes its followers with it.
    """
    kind = random.choice(["none", "prefix", "any"])
    if kind != "any":
        return list(changes[: random.randint(0, len(changes))]) if kind == "prefix" else []
    kept: list[_NameChange] = []
    lost: set[tuple[int, str]] = set()
    for change in changes:
        if random.random() < 0.5 or change.keys() & lost:
            lost |= change.keys()
        else:
            kept.append(change)
    return kept


def _settle_names(directory: _Directory) -> None:
    """Make the names on the platter the ones that are seen."""
    directory.names = dict(directory.durable)
    for node in directory.names.values():
        if isinstance(node, _Directory):
            _settle_names(node)


def _files_below(directory: _Directory) -> Iterator[_Inode]:
    """Walk the files in the order of their names."""
    for _, node in sorted(directory.names.items()):
        if isinstance(node, _Directory):
            yield from _files_below(node)
        else:
            yield node


def _names(path: str) -> list[str]:
    return [name for name in path.split("/") if name and name != "."]


def _refused(operation: str, path: str, code: int) -> StorageError:
    failure = OSError(code, os.strerror(code), path)
    refusal = StorageError(f"cannot {operation} {path}: {failure.strerror}")
    refusal.__cause__ = failure
    return refusal

"""The contents of a simulated disk: files and directories, as visible and as durable.

Each file and directory has two states: the visible one, and the one on the platter. Edits of bytes
and changes of names apply to the first immediately and to the second when flushed;
`surviving_edits` and `surviving_names` draw which of those in between survive a crash.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import NamedTuple


class Write(NamedTuple):
    position: int
    data: bytes


class Truncate(NamedTuple):
    size: int


Edit = Write | Truncate


class Inode:
    """A file's bytes: visible, on the platter, and the edits between the two."""

    __slots__ = ("data", "durable", "edits", "mtime_ms")

    def __init__(self, mtime_ms: int) -> None:
        self.data = bytearray()
        self.durable = bytearray()
        self.edits: list[Edit] = []
        self.mtime_ms = mtime_ms

    def edit(self, edit: Edit) -> None:
        _apply(self.data, edit)
        self.edits.append(edit)

    def flush(self) -> None:
        for edit in self.edits:
            _apply(self.durable, edit)
        self.edits.clear()

    def crash(self, random: Random) -> None:
        for edit in surviving_edits(self.edits, random):
            _apply(self.durable, edit)
        self.data = bytearray(self.durable)
        self.edits.clear()


class Directory:
    """Names: visible, and on the platter."""

    __slots__ = ("durable", "names")

    def __init__(self) -> None:
        self.names: dict[str, Node] = {}
        self.durable: dict[str, Node] = {}


Node = Inode | Directory
Entries = list[tuple[Directory, str, Node | None]]


class NameChange(NamedTuple):
    """One atomic change of names: (directory, name, its new target)."""

    entries: Entries

    def keys(self) -> set[tuple[int, str]]:
        return {(id(directory), name) for directory, name, _ in self.entries}

    def apply(self, *, durable: bool) -> None:
        for directory, name, node in self.entries:
            names = directory.durable if durable else directory.names
            if node is None:
                names.pop(name, None)
            else:
                names[name] = node


def _apply(data: bytearray, edit: Edit) -> None:
    if isinstance(edit, Write):
        if edit.position > len(data):
            data.extend(bytes(edit.position - len(data)))
        data[edit.position : edit.position + len(edit.data)] = edit.data
    elif edit.size < len(data):
        del data[edit.size :]
    else:
        data.extend(bytes(edit.size - len(data)))


def surviving_edits(edits: Sequence[Edit], random: Random) -> list[Edit]:
    """Draw which edits of a file survive a crash: none, a prefix with a torn end, or any."""
    kind = random.choice(["none", "prefix", "any"])
    if kind == "any":
        return [edit for edit in edits if random.random() < 0.5]
    kept = list(edits[: random.randint(0, len(edits))]) if kind == "prefix" else []
    if kept and isinstance(kept[-1], Write):
        position, data = kept[-1]
        kept[-1] = Write(position, data[: random.randint(0, len(data))])
    return kept


def surviving_names(changes: Sequence[NameChange], random: Random) -> list[NameChange]:
    """Draw which changes of names survive a crash: none, a prefix, or any.

    A change depends on earlier ones of the same names: if one is lost, so are those after it.
    """
    kind = random.choice(["none", "prefix", "any"])
    if kind != "any":
        return list(changes[: random.randint(0, len(changes))]) if kind == "prefix" else []
    kept: list[NameChange] = []
    lost: set[tuple[int, str]] = set()
    for change in changes:
        if random.random() < 0.5 or change.keys() & lost:
            lost |= change.keys()
        else:
            kept.append(change)
    return kept


def settle_names(directory: Directory) -> None:
    """Copy the visible names to the platter."""
    directory.names = dict(directory.durable)
    for node in directory.names.values():
        if isinstance(node, Directory):
            settle_names(node)


def files_below(directory: Directory) -> Iterator[Inode]:
    """Walk the files in the order of their names."""
    for _, node in sorted(directory.names.items()):
        if isinstance(node, Directory):
            yield from files_below(node)
        else:
            yield node

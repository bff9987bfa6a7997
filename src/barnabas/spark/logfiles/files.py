"""Finds the segment files to read, and divides them among tasks.

    <data directory>/<topic>-<partition>/<20 digits>.log

A path is a data directory, the directory of one partition, a segment file, or a pattern (`*`, `?`,
`[…]`) of these. Directories of deleted topics and of moved replicas (`….<32 hex>-delete`) are
read only if they are named explicitly.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from barnabas.model.errors import InvalidValueError
from barnabas.model.ids import TopicPartition
from barnabas.records.offset_index import positions_in
from barnabas.spark.logfiles.options import OFFSET_MAX, LogOptions
from barnabas.spark.logfiles.transactions import Transactions, Uncommitted
from barnabas.spark.logfiles.walk import LogFile, entry_at, walk_headers

_NAME = re.compile(r"(.+)-(\d+)")
_MOVED = re.compile(r"(.+)\.[0-9a-f]{32}-(delete|future|stray)")
_SEGMENT = re.compile(r"(\d{20})\.log")


@dataclass(frozen=True, slots=True)
class Piece:
    """What a task reads of one segment.

    `base` and `bound` are the offsets that the segment can have, `start` and `until` those that
    are wanted. Positions are valid only for the file with this inode: compaction replaces files.
    """

    path: str
    partition: TopicPartition
    base: int
    bound: int
    start: int
    until: int
    position: int
    end: int | None
    size: int
    inode: int
    is_last: bool
    uncommitted: tuple[Uncommitted, ...] = ()


def plan_tasks(options: LogOptions) -> list[tuple[Piece, ...]]:
    """Return what each task reads; raise InvalidValueError if there is nothing to read."""
    partitions = list(_partitions(options.paths))
    if not partitions:
        raise InvalidValueError(
            f"load: no segment files in {', '.join(options.paths)}; must be a data directory (with "
            "<topic>-<partition> directories in it), the directory of a partition, or a .log file"
        )
    wanted = [(path, partition) for path, partition in partitions if options.covers(partition)]
    if not wanted:
        names = ", ".join(map(str, sorted({partition for _, partition in partitions})))
        raise InvalidValueError(f"topics, partitions: match none of {names}")
    pieces: list[Piece] = []
    for path, partition in wanted:
        pieces += _pieces(path, partition, options)
    total = sum(piece.size for piece in pieces)
    tasks = max(options.tasks_min, -(-total // options.bytes_per_task))
    return _grouped(_cut(pieces, max(1, total // tasks)), tasks)


def _partitions(paths: Sequence[str]) -> Iterator[tuple[str, TopicPartition]]:
    """Yield directories or files of segments, each once, with their partitions."""
    seen = set()
    for given in paths:
        plain = os.path.abspath(given.removeprefix("file://").removeprefix("file:"))
        found = sorted(glob.glob(plain)) if glob.has_magic(plain) else [plain]
        if not found or not os.path.exists(found[0]):
            raise InvalidValueError(f"load: {given} does not exist")
        for path in found:
            for each, partition in _partitions_in(path):
                if each not in seen:
                    seen.add(each)
                    yield each, partition


def _partitions_in(path: str) -> Iterator[tuple[str, TopicPartition]]:
    if os.path.isfile(path):
        if _SEGMENT.fullmatch(os.path.basename(path)) is None:
            raise InvalidValueError(f"load: {path} is not a segment file (20 digits and .log)")
        yield path, _partition_of(os.path.dirname(path))
    elif _has_segments(path):
        yield path, _partition_of(path)
    else:
        for name in sorted(os.listdir(path)):
            inside = os.path.join(path, name)
            if _NAME.fullmatch(name) and not _MOVED.fullmatch(name) and os.path.isdir(inside):
                yield inside, _partition_of(inside)


def _has_segments(directory: str) -> bool:
    return any(_SEGMENT.fullmatch(name) for name in os.listdir(directory))


def _partition_of(directory: str) -> TopicPartition:
    """Return the partition of a directory's name; any other name is partition 0."""
    name = os.path.basename(directory)
    moved = _MOVED.fullmatch(name)
    named = _NAME.fullmatch(moved[1] if moved else name)
    return TopicPartition(name, 0) if named is None else TopicPartition(named[1], int(named[2]))


def segments_in(directory: str) -> list[tuple[int, str]]:
    """Return the base offsets and paths of a partition's segments, in order."""
    found = (_SEGMENT.fullmatch(name) for name in os.listdir(directory))
    return sorted((int(each[1]), os.path.join(directory, each[0])) for each in found if each)


def _pieces(path: str, partition: TopicPartition, options: LogOptions) -> list[Piece]:
    """Return the segments of a partition that may have wanted records."""
    alone = os.path.isfile(path)
    segments = segments_in(os.path.dirname(path) if alone else path)
    first, end = options.offsets(partition)
    pieces = []
    for number, (base, each) in enumerate(segments):
        bound = segments[number + 1][0] if number + 1 < len(segments) else OFFSET_MAX
        if (alone and each != path) or bound <= first or base >= end:
            continue
        try:
            status = os.stat(each)
        except FileNotFoundError:
            continue  # retention deleted it since the directory was listed
        pieces.append(
            Piece(
                path=each,
                partition=partition,
                base=base,
                bound=bound,
                start=max(first, base),
                until=min(end, bound),
                position=0,
                end=None,
                size=status.st_size,
                inode=status.st_ino,
                is_last=number + 1 == len(segments),
            )
        )
    if not options.committed:
        return pieces
    uncommitted = _uncommitted([each for _, each in segments])
    return [
        replace(
            piece,
            uncommitted=tuple(
                each for each in uncommitted if each.first < piece.bound and each.last >= piece.base
            ),
        )
        for piece in pieces
    ]


def _uncommitted(paths: Sequence[str]) -> list[Uncommitted]:
    transactions = Transactions()
    for path in paths:
        try:
            with LogFile(path) as file:
                transactions.follow(walk_headers(file, int(os.path.basename(path)[:20])))
        except FileNotFoundError:
            continue
    return transactions.uncommitted()


def _cut(pieces: list[Piece], size: int) -> list[Piece]:
    """Split pieces that are much larger than `size`, at batches in the offset index."""
    cut: list[Piece] = []
    for piece in pieces:
        edges = list(_edges(piece, size)) if piece.size >= 2 * size else []
        ends = [(piece.position, piece.base), *edges, (piece.size, piece.bound)]
        for number, ((position, offset), (end, next_offset)) in enumerate(pairwise(ends)):
            last = number == len(edges)
            part = replace(
                piece,
                start=max(piece.start, offset),
                until=min(piece.until, next_offset),
                position=position,
                end=None if last else end,
                size=end - position,
                is_last=piece.is_last and last,
            )
            if part.start < part.until:
                cut.append(part)
    return cut


def _edges(piece: Piece, size: int) -> Iterator[tuple[int, int]]:
    """Yield positions and base offsets of batches that are about `size` bytes apart."""
    try:
        with open(piece.path.removesuffix(".log") + ".index", "rb") as index:
            data = index.read()
    except FileNotFoundError:
        return
    wanted = size
    with LogFile(piece.path) as file:
        for position in positions_in(data):
            if position < wanted or position > piece.size - size // 2:
                continue
            # An index may be wrong, and must not lose records: check that the batch is there.
            entry = entry_at(file, position, piece.size)
            if entry is not None and entry.header is not None:
                yield position, entry.header.base_offset
                wanted = position + size


def _grouped(pieces: list[Piece], tasks: int) -> list[tuple[Piece, ...]]:
    """Combine neighbours so that tasks read about the same number of bytes."""
    share = sum(piece.size for piece in pieces) / max(1, tasks)
    groups: list[list[Piece]] = []
    total, last = 0, -1
    for piece in pieces:
        # A piece belongs to the task that its middle falls into.
        number = min(tasks - 1, int((total + piece.size / 2) // share)) if share else 0
        total += piece.size
        if number != last:
            groups.append([])
            last = number
        groups[-1].append(piece)
    return [tuple(group) for group in groups]

"""Checks the files of a log without changing them, and reports what is wrong with each.

Every batch's CRC is checked, and everything beside the batches (indexes, snapshots, epochs,
checkpoints) against them: the batches are the truth. A flaw comes with what recovery does about it.
Those that are `damage` are bytes that a stopped broker never leaves; the others are what a crash
may leave and every start repairs. Wrappers of older formats are unpacked: only that shows
which offsets they hold.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple

from barnabas.kernels.batch_header import BatchHeader
from barnabas.kernels.contract import Buffer
from barnabas.log import partition_metadata, producer_snapshot, torn, transaction_index
from barnabas.log.checkpoints import decode_offsets
from barnabas.log.directory import (
    CLEANED,
    HIGH_WATERMARKS,
    LOG_STARTS,
    META,
    RECOVERY_POINTS,
    REMOVED,
    parse_name,
)
from barnabas.log.files import Files
from barnabas.log.leader_epochs import EPOCH_FILE, LeaderEpochs
from barnabas.log.producer_snapshot import SNAPSHOT
from barnabas.log.replay import marker_of
from barnabas.log.scan import CheckedWalk
from barnabas.log.segment import INDEX, LOG, TIME_INDEX, TRANSACTION_INDEX, is_segment_file
from barnabas.log.time_index import TimeIndex
from barnabas.log.transaction_index import AbortedTransaction
from barnabas.model.errors import CorruptFileError, CorruptRecordError
from barnabas.model.ids import NO_EPOCH
from barnabas.records.control import ControlType
from barnabas.records.entry_search import is_zero
from barnabas.records.legacy import iterate_messages
from barnabas.records.offset_index import OFFSET_SPAN_MAX, OffsetIndex

FAR = 2**63 - 1
KEPT_ASIDE = "kept aside"
CHECKPOINTS = (RECOVERY_POINTS, HIGH_WATERMARKS, LOG_STARTS, CLEANED)


class Flaw(NamedTuple):
    """Something that is not as it should be."""

    path: str
    position: int | None
    what: str
    remedy: str
    damage: bool = True


class _Batches:
    """Where the batches of one segment are."""

    def __init__(self) -> None:
        self.positions: list[int] = []
        self.base_offsets: list[int] = []
        self.last_offsets: list[int] = []
        self.max_timestamps: list[int] = []
        self.epochs: list[int] = []
        self.old: set[int] = set()  # which of them are of an older format
        self.unreadable: list[tuple[int, str]] = []  # positions, and what is wrong
        self.transactional: dict[int, int] = {}  # producers by the base offset of their batches
        self.aborts: dict[int, int] = {}  # producers by the offset of the marker

    def note(self, position: int, header: BatchHeader, buffer: Buffer, start: int) -> None:
        """Record the batch at a position, whose bytes begin at `buffer[start]`."""
        if header.is_message:
            self.old.add(len(self.positions))
            header = self._unpacked(position, header, buffer, start)
        self.positions.append(position)
        self.base_offsets.append(header.base_offset)
        self.last_offsets.append(header.last_offset)
        self.max_timestamps.append(header.max_timestamp)
        self.epochs.append(header.leader_epoch)
        marker = marker_of(buffer, start, header)
        if marker is not None and marker.type is ControlType.ABORT:
            self.aborts[header.base_offset] = header.producer_id
        elif header.is_transactional:
            self.transactional[header.base_offset] = header.producer_id

    def _unpacked(
        self, position: int, header: BatchHeader, buffer: Buffer, start: int
    ) -> BatchHeader:
        """Return the header of a message, or of a wrapper with the offset at which it begins."""
        if not header.is_compressed:
            return header
        last_offset = header.last_offset
        try:
            offsets = [
                record.offset
                for record in iterate_messages(memoryview(buffer)[start : start + header.size])
            ]
        except CorruptRecordError as failure:
            self.unreadable.append((position, str(failure)))
            return header
        if offsets != sorted(set(offsets)) or offsets[-1] > last_offset:
            what = (
                f"a compressed message up to offset {last_offset} has offsets {offsets[0]} to "
                f"{offsets[-1]}"
            )
            self.unreadable.append((position, what))
            return header
        return header.starting_at(offsets[0])

    def bears_out(self, transaction: AbortedTransaction) -> bool:
        """Return whether there is the marker, and nothing else where the transaction began.

        Compaction takes what was aborted, and retention what is old: nothing may be left there.
        """
        producer_id, first_offset, last_offset, _ = transaction
        slot = self.slot_of(first_offset)
        return self.aborts.get(last_offset) == producer_id and (
            slot is None or self.transactional.get(first_offset) == producer_id
        )

    def starts_at(self, position: int) -> bool:
        slot = bisect_left(self.positions, position)
        return slot < len(self.positions) and self.positions[slot] == position

    def slot_of(self, offset: int) -> int | None:
        """Return which batch holds an offset."""
        slot = bisect_left(self.last_offsets, offset)
        if slot == len(self.positions) or self.base_offsets[slot] > offset:
            return None
        return slot


def is_partition(files: Files, path: str) -> bool:
    """Return whether a directory holds the files of one partition."""
    if not files.is_dir(path):
        return False
    names = files.list(path)
    named = parse_name(path.rstrip("/").rpartition("/")[2]) is not None
    return any(is_segment_file(name) for name in names) or (
        named and partition_metadata.NAME in names
    )


def partitions_in(files: Files, directory: str) -> list[str]:
    """Return the paths of the partitions in use in a data directory."""
    return [
        f"{directory}/{name}"
        for name in files.list(directory)
        if parse_name(name) is not None and files.is_dir(f"{directory}/{name}")
    ]


def inspect_directory(files: Files, directory: str) -> Iterator[Flaw]:
    """Check a data directory and all partitions in it."""
    if files.read(f"{directory}/{META}") is None:
        yield Flaw(f"{directory}/{META}", None, "is missing", "written at the next start", False)
    for name in CHECKPOINTS:
        path = f"{directory}/{name}"
        try:
            decode_offsets(files.read(path) or b"", path)
        except CorruptFileError as failure:
            yield Flaw(path, None, str(failure), "ignored, and replaced")
    for name in files.list(directory):
        if name.endswith(REMOVED):
            yield Flaw(f"{directory}/{name}", None, "is no longer in use", "deleted", False)
    for path in partitions_in(files, directory):
        yield from inspect_partition(files, path)


def inspect_partition(files: Files, directory: str) -> Iterator[Flaw]:
    """Check the files of one partition."""
    names = [name for name in files.list(directory) if is_segment_file(name)]
    bases = sorted(int(name[:20]) for name in names if name.endswith(LOG))
    flaws: list[Flaw] = []
    epochs: list[tuple[int, int]] = []
    end = 0
    for index, base in enumerate(bases):
        path = f"{directory}/{base:020d}{LOG}"
        if index and base < end:
            flaws.append(
                Flaw(path, 0, f"base offset {base} lies inside the segment before", "removed")
            )
            break
        batches = _Batches()
        later = (n for n in bases[index + 1 :] if files.size(f"{directory}/{n:020d}{LOG}"))
        following = next(later, FAR)
        followed = following != FAR
        bound = min(following, base + OFFSET_SPAN_MAX + 1)
        flaw = _walk(
            files, path, base, bound, epochs[-1][0] if epochs else NO_EPOCH, batches, followed
        )
        for position, what in batches.unreadable:
            flaws.append(Flaw(path, position, what, "kept as it is; readers get an error"))
        flaws += _gaps(path, end if index else base, batches)
        for slot, epoch in enumerate(batches.epochs):
            if slot not in batches.old and (not epochs or epoch > epochs[-1][0]):
                if epochs:
                    epochs.append((epochs[-1][0], end - 1))
                epochs.append((epoch, batches.base_offsets[slot]))
            end = batches.last_offsets[slot] + 1
        if epochs:
            epochs.append((epochs[-1][0], end - 1))
        end = max(end, base)
        is_last = index + 1 == len(bases)
        flaws += _inspect_indexes(files, directory, base, batches, flaw is not None, is_last)
        if flaw is not None:
            flaws.append(flaw)
            remedy = KEPT_ASIDE if KEPT_ASIDE in flaw.remedy else "removed"
            for dropped in bases[index + 1 :]:
                after = f"{directory}/{dropped:020d}{LOG}"
                flaws.append(Flaw(after, 0, "follows a damaged segment", remedy))
            break
    yield from flaws
    yield from _inspect_rest(files, directory, names, set(bases), epochs)


def _gaps(path: str, end: int, batches: _Batches) -> Iterator[Flaw]:
    """Report missing offsets: compaction leaves such gaps, nothing else should."""
    missing = 0
    gap_at: int | None = None
    for position, first, last in zip(
        batches.positions, batches.base_offsets, batches.last_offsets, strict=True
    ):
        if first != end and gap_at is None:
            gap_at = position
        missing += first - end
        end = last + 1
    if missing:
        yield Flaw(path, gap_at, f"{missing} offsets are missing", "kept as it is", damage=False)


def _walk(
    files: Files, path: str, base: int, bound: int, epoch: int, batches: _Batches, followed: bool
) -> Flaw | None:
    """Check every batch of a segment; return what stops the walk before the end."""
    file = files.open(path)
    try:
        size = file.size()
        walk = CheckedWalk(file, 0, size, next_offset=base)
        good, end = 0, base
        found: str | None = None
        for position, header in walk:
            if header.base_offset < end:
                walk.flaw = f"offset {header.base_offset} after offset {end - 1}"
                break
            if header.last_offset >= bound:
                walk.flaw = f"offset {header.last_offset} before offset {bound}"
                break
            if not header.is_message:
                if header.leader_epoch < epoch:
                    walk.flaw = f"leader epoch {header.leader_epoch} after leader epoch {epoch}"
                    break
                epoch = header.leader_epoch
            try:
                batches.note(position, header, walk.buffer, walk.start)
            except CorruptRecordError as failure:
                walk.flaw = found = str(failure)
                break
            end = header.next_offset
            good = position + header.size
        if good == size:
            return None
        zeros = is_zero(file.pread, good, size)
        found = found or torn.contradiction(file, good, size, end, followed=followed)
    finally:
        file.close()
    what = walk.flaw or "bytes after the last batch"
    remedy = f"{size - good} bytes cut, from offset {end} on"
    if found is not None:
        what = what if what == found else f"{what}; {found}"
        remedy = f"offline until a repair; then {size - good} bytes {KEPT_ASIDE}, from {end} on"
    return Flaw(path, good, what, remedy, damage=not zeros)


def _inspect_indexes(
    files: Files, directory: str, base: int, batches: _Batches, cut: bool, is_last: bool
) -> Iterator[Flaw]:
    stem = f"{directory}/{base:020d}"
    size = files.size(stem + LOG) or 0
    data = files.read(stem + INDEX)
    if data is None:
        if size:
            yield Flaw(stem + INDEX, None, "is missing", "rebuilt", not (is_last or cut))
    else:
        try:
            offsets = OffsetIndex.decode(base, data, size)
            for number, (offset, position) in enumerate(offsets.entries()):
                slot = batches.slot_of(offset)
                # Releases of Kafka that wrote older formats entered the first offset of a wrapper.
                known = slot is not None and (
                    batches.last_offsets[slot] == offset or slot in batches.old
                )
                if not (known and batches.starts_at(position)) and not cut:
                    what = f"entry offset={offset} position={position} matches no batch"
                    yield Flaw(stem + INDEX, number * 8, what, "rebuilt")
                    break
        except CorruptFileError as failure:
            yield Flaw(stem + INDEX, None, str(failure), "rebuilt")
    data = files.read(stem + TIME_INDEX)
    if data is None:
        if size:
            yield Flaw(stem + TIME_INDEX, None, "is missing", "rebuilt", not (is_last or cut))
    else:
        try:
            times = TimeIndex.decode(base, data)
            for number, (timestamp, offset) in enumerate(times.entries()):
                slot = batches.slot_of(offset)
                if (slot is None or batches.max_timestamps[slot] != timestamp) and not cut:
                    what = f"entry offset={offset} timestamp={timestamp} matches no batch"
                    yield Flaw(stem + TIME_INDEX, number * 12, what, "rebuilt")
                    break
        except CorruptFileError as failure:
            yield Flaw(stem + TIME_INDEX, None, str(failure), "rebuilt")
    try:
        for entry in transaction_index.decode(files.read(stem + TRANSACTION_INDEX) or b"", base):
            if not cut and not batches.bears_out(entry):
                what = f"entry {entry} matches no batch"
                yield Flaw(stem + TRANSACTION_INDEX, None, what, "rebuilt")
                break
    except CorruptFileError as failure:
        yield Flaw(stem + TRANSACTION_INDEX, None, str(failure), "rebuilt")


def _inspect_rest(
    files: Files, directory: str, names: list[str], bases: set[int], epochs: list[tuple[int, int]]
) -> Iterator[Flaw]:
    for name in names:
        path = f"{directory}/{name}"
        if name.endswith(SNAPSHOT):
            try:
                producer_snapshot.decode(files.read(path) or b"")
            except CorruptFileError as failure:
                yield Flaw(path, None, str(failure), "deleted, and rebuilt from the batches")
        elif name.endswith((INDEX, TIME_INDEX, TRANSACTION_INDEX)):
            if int(name[:20]) not in bases:
                yield Flaw(path, None, "has no segment", "deleted", False)
        elif not name.endswith(LOG):
            yield Flaw(
                path,
                None,
                "is left over from an interrupted operation",
                "finished or deleted",
                False,
            )
    path = f"{directory}/{EPOCH_FILE}"
    try:
        known = LeaderEpochs.decode(files.read(path) or b"", path)
        for epoch, offset in epochs:
            claimed = known.epoch_of(offset)
            if claimed != epoch:
                what = f"gives offset {offset} leader epoch {claimed}, its batch has {epoch}"
                yield Flaw(path, None, what, "rebuilt from the batches", claimed > epoch)
                break
    except CorruptFileError as failure:
        yield Flaw(path, None, str(failure), "rebuilt from the batches")
    path = f"{directory}/{partition_metadata.NAME}"
    data = files.read(path)
    if not data:
        what, remedy = "is missing", "written when the topic is opened"
        yield Flaw(path, None, what, remedy, damage=False)
        return
    try:
        partition_metadata.decode(data, path)
    except CorruptFileError as failure:
        yield Flaw(path, None, str(failure), "written when the topic is opened")

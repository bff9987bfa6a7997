"""Brings a partition's directory back to a consistent log when a broker starts.

After a clean stop only the end of the last segment is checked. After a crash every segment from the
recovery point on is read batch by batch: a torn tail is truncated after the last whole batch,
indexes, leader epochs and producer state are rebuilt. What a crash can leave behind of a compaction
or a deletion is finished or undone first. One line in the log says what was done.

Only a torn tail is ever cut (see `torn`), and only where nothing was flushed. Anything else that is
not a batch, of any format, raises DamagedLogError, and the files are not changed. A repair, which
an operator requested, continues, and keeps what it cuts in files that end in `.cut`.

Index files are right for every segment below the recovery point, and for all after a clean stop.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from operator import attrgetter

from barnabas.log import torn
from barnabas.log.file_pool import FilePool
from barnabas.log.files import File, Files
from barnabas.log.leader_epochs import EPOCH_FILE, LeaderEpochs
from barnabas.log.producer_snapshot import (
    remove_damaged,
    snapshot_offsets,
    snapshot_path,
    write_snapshot,
)
from barnabas.log.producer_state import ProducerStates
from barnabas.log.replacements import base_of, finish_replacements
from barnabas.log.replay import apply_batch, rebuild_producers
from barnabas.log.scan import CheckedWalk, headers
from barnabas.log.segment import (
    INDEX,
    LOG,
    SUFFIXES,
    TIME_INDEX,
    Segment,
)
from barnabas.log.sharing import copy_range, cut_shared
from barnabas.model.errors import CorruptFileError, CorruptRecordError, DamagedLogError
from barnabas.records.entry_search import is_zero
from barnabas.records.offset_index import OFFSET_SPAN_MAX

CUT = ".cut"

_logger = logging.getLogger("barnabas.logs")


@dataclass
class Found:
    """The log that was found in a directory."""

    segments: list[Segment]
    log_start_offset: int
    log_end_offset: int
    recovery_point: int
    leader_epochs: LeaderEpochs
    producers: ProducerStates


@dataclass
class _Work:
    """What recovery did, for the line it leaves in the log."""

    segments: int = 0
    batches: int = 0
    bytes_walked: int = 0
    bytes_cut: int = 0
    dropped: list[int] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    flaws: list[str] = field(default_factory=list)


class Recovery:
    """Loads one partition directory; used once."""

    def __init__(
        self,
        files: Files,
        directory: str,
        *,
        clean: bool,
        recovery_point: int,
        log_start_offset: int,
        cleaned_offset: int,
        index_interval_bytes: int,
        now_ms: int,
        repair: bool = False,
    ) -> None:
        """Describe the task; below `cleaned_offset` compaction may have left gaps.

        A `repair` also cuts what is damaged, and keeps it aside.
        """
        # A pool of its own: logs are recovered on several threads, the shared pool is for one.
        self._pool = FilePool(files, limit=4)
        self._files = files
        self._directory = directory
        self._clean = clean
        self._recovery_point = recovery_point
        self._log_start_offset = log_start_offset
        self._cleaned_offset = cleaned_offset
        self._index_interval_bytes = index_interval_bytes
        self._now_ms = now_ms
        self._repair = repair
        # What the last broker is known to have flushed, however much is walked again.
        self._was_closed, self._was_flushed = clean, recovery_point
        self._work = _Work()
        self._segments: list[Segment] = []
        self._epochs = LeaderEpochs()
        self._producers = ProducerStates()
        # How far `_producers` follows the log; None while nothing is in it.
        self._producers_end: int | None = None

    def create(self, preallocate_bytes: int = 0) -> Found:
        """Start a log in an empty directory."""
        start = self._log_start_offset
        segment = self._segment(start)
        segment.create(preallocate_bytes, in_new_directory=True)
        return Found([segment], start, start, start, self._epochs, self._producers)

    def load(self) -> Found:
        """Load the log, repairing what a crash left; DamagedLogError for any other damage."""
        try:
            return self._load()
        except (CorruptRecordError, CorruptFileError) as failure:
            raise DamagedLogError(f"{self._directory}: {failure}") from failure

    def _load(self) -> Found:
        names = finish_replacements(self._files, self._directory)
        self._epochs = self._read_epochs()
        bases = sorted(base_of(name) for name in names if name.endswith(LOG))
        self._remove_orphans(names, set(bases))
        for base in bases:
            self._segments.append(self._attach(base))
        end = self._recover_segments()
        if end < self._log_start_offset:
            self._drop_from(0)
            end = self._log_start_offset
        start = self._log_start_offset
        if self._segments:
            start = max(start, self._segments[0].base_offset)
        if not self._segments:
            end = start
            segment = self._segment(start)
            segment.create()
            self._segments.append(segment)
        self._epochs.truncate_end(end)
        self._epochs.truncate_start(start)
        self._load_producers(end)
        self._report(end)
        point = end if self._clean else min(self._recovery_point, end)
        return Found(self._segments, start, end, point, self._epochs, self._producers)

    # -- segments -----------------------------------------------------------------------------

    def _segment(self, base: int) -> Segment:
        return Segment(
            self._pool,
            self._directory,
            base,
            created_ms=self._now_ms,
            index_interval_bytes=self._index_interval_bytes,
        )

    def _attach(self, base: int) -> Segment:
        segment = self._segment(base)
        segment.attach(self._files.size(segment.path(LOG)) or 0)
        return segment

    def _recover_segments(self) -> int:
        """Check what may be torn, and truncate it; return the log end offset."""
        if not self._segments:
            return self._log_start_offset
        first = len(self._segments) if self._clean else self._first_unflushed()
        if not self._clean:
            # What the file says of later epochs may be about batches that are lost.
            self._epochs.truncate_end(self._segments[first].base_offset)
        end: int | None = None  # of the segment before, where it is known
        index = 0
        while index < len(self._segments):
            segment = self._segments[index]
            if index and self._is_unused(segment, self._segments[index - 1], end):
                segment.remove()
                del self._segments[index]
                first -= index < first
                continue
            if index > first and end is not None and self._is_gap(end, segment):
                self._check_lost(end, segment)
                self._work.flaws.append(f"offsets {end} to {segment.base_offset - 1} are lost")
                self._drop_from(index)
                return end
            end = None
            if index >= first or (segment.size_bytes and not self._indexes_are_sane(segment)):
                end, cut = self._recover(segment)
                if index < first or end <= self._recovery_point:
                    # Below the recovery point no flush will come to these indexes.
                    segment.flush_side_files()
                if cut:
                    self._drop_from(index + 1)
                    return end
            index += 1
        return self._find_end(self._segments[-1]) if end is None else end

    def _is_unused(self, segment: Segment, before: Segment, end: int | None) -> bool:
        """Return whether a segment is an empty file that begins inside the one before it.

        A failed roll left it, and the log continued in the old segment.
        """
        if segment.size_bytes:
            return False
        return segment.base_offset < (self._find_end(before) if end is None else end)

    def _is_gap(self, end: int, segment: Segment) -> bool:
        """Return whether batches were lost between the end of a segment and the next one.

        A segment starts where the one before it ends, until compaction thins them out. A crash can
        take the end of a file at a batch's boundary, or the file itself, and leave the next one.
        """
        return segment.base_offset != end and segment.base_offset > self._cleaned_offset

    def _check_lost(self, end: int, segment: Segment) -> None:
        """Refuse to drop a segment behind a gap unless a crash can have left the gap.

        A broker that compacts remembers how far; files that came here without its checkpoints do
        not tell, except by offsets that are also missing inside of their segments.
        """
        why: str | None = None
        if end < self._was_flushed:
            why = f"everything below offset {self._was_flushed} was flushed"
        elif not self._was_flushed and any(map(self._is_thinned, self._segments)):
            why = "no checkpoint says whether a crash lost the offsets between or compaction did"
        if why is not None:
            base = segment.base_offset
            raise DamagedLogError(f"{segment.path(LOG)} at 0: offset {base} after {end - 1}; {why}")

    def _is_thinned(self, segment: Segment) -> bool:
        """Return whether offsets are missing inside of a segment, which no crash takes away."""
        file = self._files.open(segment.path(LOG))
        try:
            return torn.is_thinned(file, segment.size_bytes)
        finally:
            file.close()

    def _first_unflushed(self) -> int:
        """Return the index of the segment that holds the recovery point."""
        for index in range(len(self._segments) - 1, 0, -1):
            segment = self._segments[index]
            if segment.size_bytes and segment.base_offset <= self._recovery_point:
                return index
        return 0

    def _indexes_are_sane(self, segment: Segment) -> bool:
        """Check cheaply: files are there with possible sizes; contents are checked when used."""
        sizes = [self._files.size(segment.path(suffix)) for suffix in (INDEX, TIME_INDEX)]
        if sizes[0] is None or sizes[1] is None or sizes[0] % 8 or sizes[1] % 12:
            return False
        try:
            segment.aborted  # noqa: B018  # reading it checks it
        except CorruptFileError as failure:
            self._work.flaws.append(f"{segment.path(LOG)}: {failure}")
            return False
        return True

    def _recover(self, segment: Segment) -> tuple[int, bool]:
        """Walk a segment and rebuild its indexes; return its end offset and whether it was cut."""
        base, work = segment.base_offset, self._work
        self._advance_producers(base)
        segment.reset_indexes()
        end = base
        epoch = self._epochs.epoch_of(base - 1)
        bound = self._bound_of(segment)
        file = self._files.open(segment.path(LOG))
        try:
            walk = CheckedWalk(file, 0, segment.size_bytes, next_offset=base)
            good = 0
            for position, header in walk:
                if header.base_offset < end:
                    walk.flaw = f"offset {header.base_offset} after offset {end - 1}"
                    break
                if header.last_offset >= bound:
                    walk.flaw = f"offset {header.last_offset} before offset {bound}"
                    break
                if header.leader_epoch < epoch:
                    if not header.is_message:  # older formats have no epochs
                        walk.flaw = f"leader epoch {header.leader_epoch} after leader epoch {epoch}"
                        break
                else:
                    epoch = header.leader_epoch
                    if epoch > self._epochs.latest:
                        self._epochs.assign(header.leader_epoch, header.base_offset)
                if header.producer_id >= 0:
                    try:
                        aborted = apply_batch(self._producers, walk.buffer, walk.start, header)
                    except CorruptRecordError as failure:  # a marker that no broker writes
                        walk.flaw = str(failure)
                        self._handle_damage(file, segment, good, walk.flaw)
                        break
                    if aborted is not None:
                        segment.add_aborted(aborted)
                segment.index_batch(position, header)
                end = header.next_offset
                good = position + header.size
                work.batches += 1
            cut = segment.size_bytes - good
            if cut:
                self._check_torn(file, segment, good, end, str(walk.flaw))
                # The cut must last: what is cut could come back between batches written next.
                if not cut_shared(self._files, segment.path(LOG), good):
                    file.truncate(good)
                    file.flush()
                segment.size_bytes = good
                work.bytes_cut += cut
                work.flaws.append(f"{segment.path(LOG)} at {good}: {walk.flaw}")
        finally:
            file.close()
        self._producers_end = end
        segment.forget_tail(end - 1)
        if segment is not self._segments[-1]:
            # Those of the last one change with the next append and are written when it is closed.
            segment.save_indexes()
            segment.drop_indexes()
        work.segments += 1
        work.bytes_walked += good
        return end, cut > 0

    def _check_torn(self, file: File, segment: Segment, good: int, end: int, flaw: str) -> None:
        """Refuse to cut a segment at a position unless a crash can have left what follows."""
        size = segment.size_bytes
        followed = any(each.size_bytes for each in self._segments_after(segment))
        if not followed and is_zero(file.pread, good, size):
            return  # the file was given its size before it was filled: no record is in there
        why: str | None
        if self._was_closed:
            why = "the log was closed cleanly"
        elif end < self._was_flushed:
            why = f"everything below offset {self._was_flushed} was flushed"
        else:
            why = torn.contradiction(file, good, size, end, followed=followed)
        if why is not None:
            self._handle_damage(file, segment, good, f"{flaw}; {why}")

    def _handle_damage(self, file: File, segment: Segment, position: int, what: str) -> None:
        """Raise DamagedLogError; a repair keeps the bytes from a position on, and continues."""
        path = segment.path(LOG)
        if not self._repair:
            raise DamagedLogError(f"{path} at {position}: {what}")
        target = f"{self._directory}/{segment.base_offset:020d}-{position}{CUT}"
        if target in self._work.kept:
            return
        copy_range(self._files, file, target, position, segment.size_bytes)
        self._work.kept.append(target)

    def _segments_after(self, segment: Segment) -> Iterator[Segment]:
        later = bisect_right(self._segments, segment.base_offset, key=attrgetter("base_offset"))
        return islice(self._segments, later, None)

    def _bound_of(self, segment: Segment) -> int:
        """Return the offset that all of a segment are below: its CRCs do not cover offsets."""
        bound = segment.base_offset + OFFSET_SPAN_MAX + 1
        for each in self._segments_after(segment):
            if each.size_bytes:
                return min(each.base_offset, bound)
        return bound

    def _find_end(self, segment: Segment) -> int:
        """Return the offset after the last batch of a segment, reading only its unindexed end."""
        try:
            end = self._scan_end(segment)
        except (CorruptRecordError, CorruptFileError) as failure:
            self._work.flaws.append(f"{segment.path(LOG)}: {failure}")
            end, _ = self._recover(segment)
        return end

    def _scan_end(self, segment: Segment) -> int:
        if not segment.size_bytes:
            return segment.base_offset
        end = position = segment.offset_index.last_position()
        next_offset = segment.base_offset
        segment.newest()
        file = self._files.open(segment.path(LOG))
        try:
            for at, header in headers(file, position, segment.size_bytes):
                next_offset, end = header.next_offset, at + header.size
                segment.note_scanned(header)
        finally:
            file.close()
        if end != segment.size_bytes:
            raise CorruptRecordError(f"{segment.size_bytes - end} bytes after the last batch")
        segment.forget_tail(next_offset - 1)
        return next_offset

    def _drop_from(self, index: int) -> None:
        for segment in self._segments[index:]:
            self._work.dropped.append(segment.base_offset)
            if self._work.kept and segment.size_bytes:
                target = f"{self._directory}/{segment.base_offset:020d}-0{CUT}"
                self._files.rename(segment.path(LOG), target)
                self._work.kept.append(target)
            segment.remove()
        if self._segments[index:]:
            self._files.flush_dir(self._directory)
        del self._segments[index:]

    # -- what is beside the segments ----------------------------------------------------------

    def _remove_orphans(self, names: list[str], bases: set[int]) -> None:
        """Remove index files whose segment is gone."""
        for name in names:
            if name.endswith(SUFFIXES[1:]) and base_of(name) not in bases:
                self._files.unlink(f"{self._directory}/{name}")

    def _read_epochs(self) -> LeaderEpochs:
        path = f"{self._directory}/{EPOCH_FILE}"
        try:
            return LeaderEpochs.decode(self._files.read(path) or b"", path)
        except CorruptFileError as failure:
            # The epochs of flushed segments are lost with it: walk everything to get them back.
            self._work.flaws.append(str(failure))
            self._clean, self._recovery_point = False, 0
            return LeaderEpochs()

    def _advance_producers(self, offset: int) -> None:
        """Bring the producer state to an offset, from where it is or from a snapshot."""
        if self._producers_end == offset:
            return
        try:
            self._work.batches += rebuild_producers(
                self._files, self._directory, self._producers, self._segments, offset
            )
        except CorruptRecordError as failure:
            # What lies below the recovery point is not cut; readers get an error there.
            self._work.flaws.append(f"producer state is incomplete: {failure}")
        self._producers_end = offset

    def _load_producers(self, end: int) -> None:
        """Drop snapshots that fit no segment, and bring the producer state to the log end."""
        bases = {segment.base_offset for segment in self._segments}
        offsets = snapshot_offsets(self._files, self._directory)
        usable = [offset for offset in offsets if offset <= end]
        for offset in offsets:
            if offset > end or (offset not in bases and offset != usable[-1]):
                self._files.unlink(snapshot_path(self._directory, offset))
        if not self._clean:
            # They are flushed with the segments before them: a crash can leave them damaged.
            doubtful = [offset for offset in usable if offset >= self._recovery_point]
            remove_damaged(self._files, self._directory, doubtful)
        self._advance_producers(end)
        if len(self._producers) and (not usable or usable[-1] != end):
            write_snapshot(self._files, self._directory, self._producers, end)

    def _report(self, end: int) -> None:
        work = self._work
        if work.segments or work.dropped or work.flaws:
            _logger.log(
                logging.WARNING if work.flaws or work.dropped else logging.INFO,
                "log %s: recovered up to offset %d: %d segments, %d batches and %d bytes checked, "
                "%d bytes truncated, %d segments dropped%s%s",
                self._directory,
                end,
                work.segments,
                work.batches,
                work.bytes_walked,
                work.bytes_cut,
                len(work.dropped),
                "".join(f"; {flaw}" for flaw in work.flaws),
                f"; kept in {', '.join(work.kept)}" if work.kept else "",
            )

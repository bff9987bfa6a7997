"""Looking for offsets by time: what ListOffsets asks of a log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from barnabas.kernels.batch_header import BatchHeader
from barnabas.log.segment import LOG, Segment
from barnabas.model.errors import CorruptFileError, CorruptRecordError
from barnabas.model.ids import EARLIEST, LATEST
from barnabas.records.batch import Record, read_batch
from barnabas.records.compression import TooLargeError
from barnabas.records.legacy import iterate_messages


class FoundRecord(NamedTuple):
    """A record by its time."""

    timestamp: int
    offset: int
    leader_epoch: int


def find_timestamp(
    segments: Sequence[Segment], timestamp: int, log_start_offset: int
) -> FoundRecord | None:
    """Return the first record with that timestamp or a later one, at or after the log start."""
    for segment in segments:
        if segment.newest()[0] < timestamp:
            continue
        try:
            found = _find_in(segment, timestamp, log_start_offset)
        except (CorruptFileError, CorruptRecordError) as failure:
            segment.rebuild_indexes(failure)
            found = _find_in(segment, timestamp, log_start_offset)
        if found is not None:
            return found
    return None


def _find_in(segment: Segment, timestamp: int, log_start_offset: int) -> FoundRecord | None:
    """Look into one segment; CorruptFileError where its time index contradicts the batches.

    The file has no checksum: a batch from which on to search is believed when it has the time that
    is said of it, and when none before it that is met is as late.
    """
    time, offset = segment.time_index.floor(timestamp)
    doubted = time >= 0 and offset >= log_start_offset
    start = segment.offset_index.position_of(max(offset, log_start_offset))
    for position, header in segment.headers(start):
        last_offset = header.last_offset
        if doubted and last_offset >= offset:
            doubted = header.base_offset > offset or header.max_timestamp != time
        if header.max_timestamp >= timestamp and last_offset >= log_start_offset:
            if doubted:
                break
            found = _first_record(segment, position, header, timestamp, log_start_offset)
            if found is not None:
                return found
    if doubted:
        raise CorruptFileError(
            f"time index entry offset={offset} timestamp={time} matches no batch"
        )
    return None


def find_max_timestamp(segments: Sequence[Segment], log_start_offset: int) -> FoundRecord | None:
    """Return the first record with the greatest timestamp of the log."""
    newest = max((segment.newest()[0] for segment in segments), default=-1)
    return None if newest < 0 else find_timestamp(segments, newest, log_start_offset)


def _first_record(
    segment: Segment, position: int, header: BatchHeader, timestamp: int, log_start_offset: int
) -> FoundRecord | None:
    data = segment.file.get().pread(header.size, position)
    seen = max(header.base_offset, log_start_offset)
    records: Iterable[Record]
    if header.is_message:
        records = iterate_messages(data)
    else:
        records = read_batch(data, header)
    try:
        for record in records:
            if record.timestamp >= timestamp and record.offset >= log_start_offset:
                return FoundRecord(record.timestamp, record.offset, header.leader_epoch)
            seen = max(seen, record.offset + 1)
    except TooLargeError:
        # A record that is too large to unpack may have that time: a reader that starts there
        # misses none.
        return FoundRecord(header.max_timestamp, seen, header.leader_epoch)
    return None


def legacy_segment_offsets(
    segments: Sequence[Segment],
    timestamp: int,
    count_max: int,
    *,
    log_start_offset: int,
    log_end_offset: int,
    now_ms: int,
) -> list[int]:
    """Return offsets of segment starts by file time, newest first: the answer of ListOffsets v0."""
    entries = []
    for segment in segments:
        modified_ms = segment.pool.files.mtime_ms(segment.path(LOG)) or 0
        entries.append((max(segment.base_offset, log_start_offset), modified_ms))
    if segments[-1].size_bytes:
        entries.append((log_end_offset, now_ms))
    if timestamp == LATEST:
        last = len(entries) - 1
    elif timestamp == EARLIEST:
        last = 0
    else:
        last = len(entries) - 1
        while last >= 0 and entries[last][1] > timestamp:
            last -= 1
    offsets = [offset for offset, _ in entries[: last + 1]]
    return sorted(offsets, reverse=True)[:count_max]

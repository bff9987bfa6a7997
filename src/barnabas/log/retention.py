"""Which segments of a log retention deletes: below the log start, too many bytes, too old.

Pure decisions; the oldest segments first, and none after the first that must stay. A segment is
deleted only when everything in it is below the limit, which is at most the high watermark: what
some in-sync replica lacks is never removed.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.config.topic import TopicOptions
from barnabas.log.segment import LOG, Segment

UNLIMITED = -1


def expired_before(
    segments: Sequence[Segment],
    options: TopicOptions,
    *,
    log_start_offset: int,
    log_end_offset: int,
    bound: int,
    now_ms: int,
) -> int:
    """Return the offset below which every segment may be removed (the first one's: none may).

    At the log's end all of them may: then a new segment must be begun first.
    """
    excess = sum(segment.size_bytes for segment in segments) - options.retention_bytes
    limited = options.delete and options.retention_bytes != UNLIMITED
    timed = options.delete and options.retention_ms != UNLIMITED
    for index, segment in enumerate(segments):
        is_active = index == len(segments) - 1
        end = log_end_offset if is_active else segments[index + 1].base_offset
        if end > bound or (is_active and not segment.size_bytes):
            return segment.base_offset
        too_large = limited and excess >= segment.size_bytes
        if not (
            (end <= log_start_offset and not is_active)
            or too_large
            or (timed and now_ms - newest_ms(segment) > options.retention_ms)
        ):
            return segment.base_offset
        excess -= segment.size_bytes
    return log_end_offset


def newest_ms(segment: Segment) -> int:
    """Return the time of the segment's newest record; of the file's last change without one."""
    timestamp = segment.newest()[0]
    if timestamp >= 0:
        return timestamp
    return segment.pool.files.mtime_ms(segment.path(LOG)) or 0


def expiry_cause(
    segments: Sequence[Segment], options: TopicOptions, *, log_start_offset: int
) -> str:
    """Return the rule by which the oldest segment goes: `start-offset`, `size` or `time`."""
    first = segments[0]
    if len(segments) > 1 and segments[1].base_offset <= log_start_offset:
        return "start-offset"
    excess = sum(segment.size_bytes for segment in segments) - options.retention_bytes
    limited = options.delete and options.retention_bytes != UNLIMITED
    return "size" if limited and excess >= first.size_bytes else "time"

"""Compaction of one log: of each key only the newest record stays, at its offset.

First the keys of the dirty part go into a map, as many as fit. Then all closed segments up to there
are rewritten through the map, several small ones into one, and take their place. Those that
have become small by that are put together at the end, until no neighbours fit into one segment.

What a reader may rely on, whenever it reads: offsets and order never change; the newest record of
every key is there; a tombstone stays for `delete.retention.ms` after the older records of its key
went; every batch of an open transaction is there. What the log needs: the last batch of an active
producer stays (its sequence goes on from there), a marker stays while a batch of its transaction
does, and the last batch of every segment stays, if only as an empty header, so that no hole opens
between segments and the log's end can always be found.

`compact` is a generator: it runs on the log's own thread and yields the work that may run on
another one, which touches only files that are pinned or not yet part of the log. Names change in
steps that a crash can interrupt anywhere:

    .cleaned      written, flushed, named    a start throws them away
    .swap         renamed, flushed           a start puts them in place
    in the log    the old files are renamed .deleted, flushed, then .swap loses its suffix
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import NamedTuple, TypeAlias

from barnabas.config.topic import TopicOptions
from barnabas.kernels import HEADER_SIZE
from barnabas.log.compaction.dirty_keys import fill_map
from barnabas.log.compaction.offset_map import OffsetMap
from barnabas.log.compaction.rewriting import rewrite
from barnabas.log.compaction.survivors import Filtering
from barnabas.log.compaction.work import Aborted, Means, Work
from barnabas.log.partition_log import PartitionLog
from barnabas.log.replacements import CLEANED, SWAP
from barnabas.log.segment import SUFFIXES, Segment
from barnabas.model.errors import ConfigError
from barnabas.records.offset_index import OFFSET_SPAN_MAX

GROUP_SEGMENTS_MAX = 100
"""The files of a group are all open while it is written."""

__all__ = ["Aborted", "Compacted", "Means", "Steps", "compact", "group_segments", "run"]


class Compacted(NamedTuple):
    """What a compaction did."""

    end_offset: int  # below it, the log is clean
    bytes_before: int
    bytes_after: int
    map_share: float  # of the map's capacity that was used


Steps: TypeAlias = Generator[Work, None, Compacted]


def compact(
    log: PartitionLog,
    first_dirty: int,
    end: int,
    means: Means,
    now_ms: int,
    *,
    unlink_later: Callable[[list[str]], None],
    is_aborted: Callable[[], bool] = lambda: False,
) -> Steps:
    """Compact the segments below `end`, which is the base of a later one.

    `first_dirty` is where the last compaction ended. The caller runs each piece of work, throws
    its failure into the generator, and never drops it half way. Old files are renamed as deleted
    and handed to `unlink_later`, because readers may still be sent from them.
    """
    offset_map = OffsetMap(means.map_bytes, means.load_factor, end - first_dirty)
    reached = yield from fill_map(log, offset_map, first_dirty, end, means, is_aborted)
    if reached == first_dirty:
        raise ConfigError(
            f"{log.topic_partition}: no key from offset {first_dirty} on fits into the offset "
            f"map of {means.map_bytes} bytes; raise log.cleaner.dedupe.buffer.size"
        )
    segments = log.segments_between(0, reached)
    before = sum(segment.size_bytes for segment in segments)
    filtering = Filtering(log, offset_map, reached, end, now_ms)
    for group in group_segments(segments, end, log.options):
        new = yield from rewrite(log, group, filtering, means, is_aborted)
        if new is not None:
            yield from _swap(log, group, new, unlink_later)
    while neighbours := _mergeable(log, reached, end):
        for group in neighbours:
            new = yield from rewrite(log, group, filtering, means, is_aborted, merging=True)
            assert new is not None, group[0].base_offset
            yield from _swap(log, group, new, unlink_later)
    after = sum(segment.size_bytes for segment in log.segments_between(0, reached))
    share = len(offset_map) / offset_map.capacity
    yield offset_map.release
    return Compacted(reached, before, after, share)


def _mergeable(log: PartitionLog, reached: int, end: int) -> list[list[Segment]]:
    """Return the neighbours that have become small enough to be one segment."""
    groups = group_segments(log.segments_between(0, reached), end, log.options)
    return [group for group in groups if len(group) > 1]


def run(steps: Steps) -> Compacted:
    """Do all the work here and now."""
    try:
        work = next(steps)
        while True:
            try:
                work()
            except BaseException as failure:  # noqa: BLE001  # goes on to the generator
                work = steps.throw(failure)
            else:
                work = next(steps)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


def group_segments(
    segments: Sequence[Segment], end: int, options: TopicOptions
) -> list[list[Segment]]:
    """Put neighbours together that fit into one segment by bytes, index entries and offsets.

    Not too many at a time: of a great number the next compaction makes fewer again.
    """
    groups: list[list[Segment]] = []
    size = 0
    # An index entry stands for more than so many bytes; the larger ones have 12 bytes.
    entries_max = options.segment_index_bytes // 12 - 1
    bytes_max = min(
        options.segment_bytes, entries_max * max(options.index_interval_bytes, HEADER_SIZE)
    )
    bases = [segment.base_offset for segment in segments[1:]]
    for segment, following in zip(segments, [*bases, end], strict=True):
        size += segment.size_bytes
        start = groups[-1][0].base_offset if groups else segment.base_offset
        if (
            groups
            and size <= bytes_max
            and following - 1 - start <= OFFSET_SPAN_MAX
            and len(groups[-1]) < GROUP_SEGMENTS_MAX
        ):
            groups[-1].append(segment)
        else:
            groups.append([segment])
            size = segment.size_bytes
    return groups


# -- swapping segments ---------------------------------------------------------------------------


def _discard(new: Segment) -> None:
    """Remove a new segment that is not used, whichever of its two names each file has by now."""
    new.let_go()
    for kind in SUFFIXES:
        path = new.path(kind).removesuffix(CLEANED).removesuffix(SWAP)
        new.pool.files.unlink(path + SWAP)
        new.pool.files.unlink(path + CLEANED)


def _swap(
    log: PartitionLog,
    group: list[Segment],
    new: Segment,
    unlink_later: Callable[[list[str]], None],
) -> Generator[Work, None, None]:
    """Put the new segment where the old ones are."""
    files, directory = new.pool.files, log.directory

    def flush_names() -> int:
        files.flush_dir(directory)
        return 0

    try:
        if not log.holds(group):
            raise Aborted
        new.move(SWAP)
        yield flush_names
        if not log.holds(group):
            raise Aborted
    except BaseException:
        _discard(new)
        raise
    # From here on a failure leaves the new segment in use under its other name: putting it in
    # place before the old names are surely gone could leave both after a crash.
    unlink_later(log.replace(group, new))
    yield flush_names
    new.move("")
    yield flush_names

"""When a log rolls a new segment, by its topic's options, and how the segment is created."""

from __future__ import annotations

from collections.abc import Callable

from barnabas.config.topic import TopicOptions
from barnabas.log.file_pool import FilePool
from barnabas.log.segment import Segment


class Rolling:
    """The limits of one log's segments, which `Segment.needs_roll` looks at with every append."""

    __slots__ = (
        "_index_interval_bytes",
        "_jitter_ms_max",
        "_preallocated_bytes",
        "_random",
        "index_bytes",
        "segment_bytes",
        "segment_ms",
    )

    def __init__(self, options: TopicOptions, random: Callable[[], float]) -> None:
        self.segment_bytes = options.segment_bytes
        self.segment_ms = options.segment_ms_max
        self.index_bytes = options.segment_index_bytes
        self._index_interval_bytes = options.index_interval_bytes
        self._preallocated_bytes = options.segment_bytes if options.preallocate else 0
        self._jitter_ms_max = min(options.segment_jitter_ms, options.segment_ms_max)
        self._random = random

    def create(self, pool: FilePool, directory: str, base_offset: int, now_ms: int) -> Segment:
        """Create a segment that begins at an offset; its name is not flushed."""
        segment = Segment(
            pool,
            directory,
            base_offset,
            created_ms=now_ms,
            index_interval_bytes=self._index_interval_bytes,
            jitter_ms=self.draw_jitter_ms(),
        )
        segment.create(self._preallocated_bytes)
        return segment

    def draw_jitter_ms(self) -> int:
        """Return how much sooner a segment rolls by time, so that not all logs roll at once."""
        return int(self._random() * self._jitter_ms_max) if self._jitter_ms_max else 0

"""What retention and compaction have made of the logs of a topic, from memory."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from barnabas.model.errors import StorageError
from barnabas.model.observations import LogState
from barnabas.replication.partition import Partition

PARTITIONS_MAX = 500


def log_states(partitions: Mapping[tuple[str, int], Partition], topic: str) -> list[LogState]:
    """Return the state of each log that this broker has of a topic, at most some hundreds."""
    mine = sorted(key for key in partitions if key[0] == topic)
    return [_state(partitions[key], key[1]) for key in mine[:PARTITIONS_MAX]]


def _state(partition: Partition, number: int) -> LogState:
    log = partition.log
    segments = log.segments
    oldest_ms = None
    if segments and log.log_end_offset > log.log_start_offset:
        with suppress(StorageError):  # its index has to be read, and its disk may have failed
            newest = segments[0].newest()[0]
            oldest_ms = newest if newest >= 0 else None
    compacts = log.options.compact
    ends = [*(each.base_offset for each in segments[1:]), log.log_end_offset]
    dirty = [each for each, end in zip(segments, ends, strict=True) if end > log.cleaned_offset]
    return LogState(
        number,
        len(segments),
        log.size_bytes,
        log.log_start_offset,
        log.log_end_offset,
        oldest_ms,
        log.cleaned_offset if compacts else None,
        sum(each.size_bytes for each in dirty) if compacts else None,
        log.compacting,
    )

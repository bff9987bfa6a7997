"""Batches of the log, applied again to producer state and leader epochs.

Used wherever state is rebuilt from what is written: after a crash, after a truncation, on a
follower. The caller starts from a snapshot at or below the first batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from barnabas.kernels.batch_header import CONTROL_BIT, BatchHeader
from barnabas.kernels.contract import Buffer
from barnabas.log.files import Files
from barnabas.log.producer_snapshot import restore_snapshot, snapshot_offsets
from barnabas.log.producer_state import ProducerStates
from barnabas.log.segment import Segment
from barnabas.log.transaction_index import AbortedTransaction
from barnabas.records.batch import read_batch
from barnabas.records.control import ControlType, Marker, read_marker


def marker_of(buffer: Buffer, start: int, header: BatchHeader) -> Marker | None:
    """Return the transaction marker in the batch at `start`, None for data and other control."""
    if not header.attributes & CONTROL_BIT:
        return None
    for record in read_batch(buffer, header, start):
        return read_marker(record)
    return None


def check_markers(buffer: Buffer, batches: Sequence[BatchHeader]) -> None:
    """Raise CorruptRecordError unless `apply_batch` can follow every one of these batches."""
    position = 0
    for header in batches:
        marker_of(buffer, position, header)
        position += header.size


def apply_batch(
    producers: ProducerStates, buffer: Buffer, start: int, header: BatchHeader
) -> AbortedTransaction | None:
    """Let the producer state follow a batch that is in the log; return an aborted transaction."""
    if header.producer_id < 0:
        return None
    if not header.attributes & CONTROL_BIT:
        producers.append_data(header, header.base_offset)
        return None
    marker = marker_of(buffer, start, header)
    if marker is None:
        return None
    return producers.append_marker(
        header,
        header.base_offset,
        committed=marker.type is ControlType.COMMIT,
        coordinator_epoch=marker.coordinator_epoch,
    )


def rebuild_producers(
    files: Files,
    directory: str,
    producers: ProducerStates,
    segments: Sequence[Segment],
    end_offset: int,
) -> int:
    """Bring the state to an offset: newest usable snapshot, then later batches; return their
    count.
    """
    offsets = snapshot_offsets(files, directory)
    start = restore_snapshot(files, directory, producers, offsets, end_offset)
    if start is None:
        producers.restore([])
        start = 0
    return replay_producers(producers, segments, start, end_offset)


def replay_producers(
    producers: ProducerStates, segments: Sequence[Segment], start_offset: int, end_offset: int
) -> int:
    """Apply the batches of [start_offset, end_offset) to the state; return how many there were."""
    count = 0
    for segment, following in zip_longest(segments, segments[1:]):
        if following is not None and following.base_offset <= start_offset:
            continue
        if segment.base_offset >= end_offset:
            break
        located = segment.locate(max(start_offset, segment.base_offset))
        if located is None:
            continue
        for position, header in segment.headers(located[0]):
            if header.base_offset >= end_offset:
                return count
            count += 1
            if header.producer_id >= 0:
                control = header.attributes & CONTROL_BIT
                data = segment.file.get().pread(header.size, position) if control else b""
                apply_batch(producers, data, 0, header)
    return count

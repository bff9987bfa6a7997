"""Producer state on disk (`<offset>.snapshot`): what the entries were just before that offset.

    version int16 = 1 | crc uint32 (CRC-32C of what follows) | count int32 | entries of 46 bytes:
    producer id int64 | epoch int16 | last sequence int32 | last offset int64 | offset delta int32
    | timestamp int64 | coordinator epoch int32 | first offset of the open transaction int64 (-1
    none)

Only the newest batch of each producer is kept, so the duplicate window restarts with one batch.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Iterable

from barnabas.kernels import crc32c
from barnabas.log.files import Files
from barnabas.log.producer_state import (
    NO_SEQUENCE,
    SEQUENCE_COUNT,
    ProducerEntry,
    ProducerStates,
    SentBatch,
)
from barnabas.log.segment import DELETED, is_segment_file, segment_name
from barnabas.model.errors import CorruptFileError

VERSION = 1
SNAPSHOT = ".snapshot"
_PREFIX = struct.Struct(">hI")
_COUNT = struct.Struct(">i")
_ENTRY = struct.Struct(">qhiqiqiq")
_logger = logging.getLogger("barnabas.logs")
_NO_BATCH = SentBatch(NO_SEQUENCE, NO_SEQUENCE, -1, 0, -1)


def encode(entries: Iterable[ProducerEntry]) -> bytes:
    """Return the content of a snapshot."""
    packed = []
    for entry in entries:
        batch = entry.batches[-1] if entry.batches else _NO_BATCH
        packed.append(
            _ENTRY.pack(
                entry.producer_id,
                entry.epoch,
                batch.last_sequence,
                batch.last_offset,
                batch.offset_delta,
                entry.last_timestamp,
                entry.coordinator_epoch,
                entry.transaction_first_offset,
            )
        )
    body = b"".join([_COUNT.pack(len(packed)), *packed])
    return _PREFIX.pack(VERSION, crc32c(body)) + body


def decode(data: bytes) -> list[ProducerEntry]:
    """Read a snapshot; raise CorruptFileError when it cannot be trusted."""
    start = _PREFIX.size + _COUNT.size
    if len(data) < start:
        raise CorruptFileError(f"snapshot of {len(data)} bytes, must have at least {start}")
    version, crc = _PREFIX.unpack_from(data)
    if version != VERSION:
        raise CorruptFileError(f"snapshot of version {version}, must be {VERSION}")
    body = data[_PREFIX.size :]
    if crc32c(body) != crc:
        raise CorruptFileError("snapshot CRC does not match its content")
    (count,) = _COUNT.unpack_from(body)
    if count * _ENTRY.size != len(data) - start:
        raise CorruptFileError(f"snapshot claims {count} producers in {len(data)} bytes")
    return [_entry(*fields) for fields in _ENTRY.iter_unpack(data[start:])]


def _entry(
    producer_id: int,
    epoch: int,
    last_sequence: int,
    last_offset: int,
    offset_delta: int,
    timestamp: int,
    coordinator_epoch: int,
    transaction_first_offset: int,
) -> ProducerEntry:
    entry = ProducerEntry(producer_id, epoch)
    entry.last_timestamp = timestamp
    entry.coordinator_epoch = coordinator_epoch
    entry.transaction_first_offset = transaction_first_offset
    if last_offset >= 0:
        first_sequence = (
            (last_sequence - offset_delta) % SEQUENCE_COUNT if last_sequence >= 0 else NO_SEQUENCE
        )
        entry.batches.append(
            SentBatch(first_sequence, last_sequence, last_offset, offset_delta, timestamp)
        )
    return entry


def snapshot_path(directory: str, offset: int) -> str:
    """Return the path of the snapshot at an offset."""
    return f"{directory}/{segment_name(offset)}{SNAPSHOT}"


def snapshot_offsets(files: Files, directory: str) -> list[int]:
    """Return the offsets of the snapshots in a directory, ascending."""
    names = [name for name in files.list(directory) if is_segment_file(name)]
    return [int(name[:20]) for name in names if name.endswith(SNAPSHOT)]


def write_snapshot(files: Files, directory: str, producers: ProducerStates, offset: int) -> None:
    """Write the state as of an offset; it is flushed before the recovery point passes it."""
    files.write_atomic(snapshot_path(directory, offset), encode(producers), flush=False)


def remove_damaged(files: Files, directory: str, offsets: Iterable[int]) -> None:
    """Remove those of the snapshots that cannot be read."""
    for offset in offsets:
        path = snapshot_path(directory, offset)
        data = files.read(path)
        try:
            if data is not None:
                decode(data)
        except CorruptFileError:
            files.unlink(path)


def restore_snapshot(
    files: Files, directory: str, producers: ProducerStates, offsets: list[int], up_to: int
) -> int | None:
    """Load the newest usable snapshot at or below an offset and return its offset, if there is one.

    Snapshots that cannot be trusted are deleted.
    """
    for offset in reversed(offsets):
        if offset > up_to:
            continue
        path = snapshot_path(directory, offset)
        try:
            producers.restore(decode(files.read(path) or b""))
        except CorruptFileError as failure:
            _logger.warning(
                "producer snapshot %s: unreadable, deleted; state comes from batches: %s",
                path,
                failure,
            )
            files.unlink(path)
            continue
        return offset
    return None


def take_out_snapshots(files: Files, directory: str, start: int, end: int) -> list[str]:
    """Rename the snapshots of [start, end) as deleted; return the paths, to unlink later."""
    paths = []
    for offset in snapshot_offsets(files, directory):
        if start <= offset < end:
            path = snapshot_path(directory, offset)
            files.rename(path, path + DELETED)
            paths.append(path + DELETED)
    return paths

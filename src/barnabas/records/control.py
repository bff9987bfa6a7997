"""Control batches: the markers that end a transaction in each of its partitions.

    key    version int16 | type int16: 0 abort, 1 commit (others belong to other logs)
    value  version int16 | coordinatorEpoch int32

Readers accept higher versions and longer data, and read the part they know.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import NamedTuple

from barnabas.kernels import Record
from barnabas.model.errors import CorruptRecordError
from barnabas.model.ids import NO_EPOCH
from barnabas.records.builder import build_batch

_KEY = struct.Struct(">hh")
_VALUE = struct.Struct(">hi")


class ControlType(IntEnum):
    """How the transaction ended."""

    ABORT = 0
    COMMIT = 1


class Marker(NamedTuple):
    """The end of a transaction, as its coordinator wrote it."""

    type: ControlType
    coordinator_epoch: int


def build_control_batch(
    control_type: ControlType,
    *,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    now_ms: int,
    base_offset: int = 0,
    leader_epoch: int = NO_EPOCH,
) -> bytes:
    """Return the batch of one marker; it has one offset and no sequence."""
    return build_batch(
        [(now_ms, _KEY.pack(0, control_type), _VALUE.pack(0, coordinator_epoch))],
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
    )


def read_marker(record: Record) -> Marker | None:
    """Return the marker in a control batch's record, or None if it is of another kind."""
    if record.key is None or len(record.key) < _KEY.size:
        raise CorruptRecordError("the key of a control record is shorter than 4 bytes")
    version, number = _KEY.unpack_from(record.key)
    if version < 0:
        raise CorruptRecordError(f"the key of a control record has version {version}")
    if number not in (ControlType.ABORT, ControlType.COMMIT):
        return None
    if record.value is None or len(record.value) < _VALUE.size:
        raise CorruptRecordError("the value of a transaction marker is shorter than 6 bytes")
    version, coordinator_epoch = _VALUE.unpack_from(record.value)
    if version < 0:
        raise CorruptRecordError(f"the value of a transaction marker has version {version}")
    return Marker(ControlType(number), coordinator_epoch)

"""The aborted transactions that end in one segment (`.txnindex`).

    entry = version int16 = 0 | producer id int64 | first offset int64 | last offset int64 | LSO
    int64

34 bytes, big-endian, ordered by last offset (the abort marker's). LSO is the last stable offset
just after the marker: no transaction that ends later can start below it, so a search may stop
there.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import NamedTuple

from barnabas.model.errors import CorruptFileError

_ENTRY = struct.Struct(">hqqqq")
ENTRY_SIZE = _ENTRY.size


class AbortedTransaction(NamedTuple):
    """A transaction whose records read_committed consumers must skip."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


def encode(entries: Iterable[AbortedTransaction]) -> bytes:
    """Return the content of the file."""
    return b"".join(_ENTRY.pack(0, *entry) for entry in entries)


def decode(data: bytes, base_offset: int) -> list[AbortedTransaction]:
    """Read a file; raise CorruptFileError when it cannot belong to the segment of that base
    offset.
    """
    if len(data) % ENTRY_SIZE:
        raise CorruptFileError(
            f"transaction index of {len(data)} bytes, must be a multiple of {ENTRY_SIZE}"
        )
    entries = []
    floor = base_offset
    for version, *fields in _ENTRY.iter_unpack(data):
        entry = AbortedTransaction(*fields)
        if version != 0:
            raise CorruptFileError(f"transaction index entry of version {version}, must be 0")
        if entry.last_offset < floor:
            raise CorruptFileError(f"transaction index entry {entry} below offset {floor}")
        if not 0 <= entry.first_offset <= entry.last_offset:
            raise CorruptFileError(f"transaction index entry {entry} begins after its end")
        if not 0 <= entry.last_stable_offset <= entry.last_offset + 1:
            raise CorruptFileError(
                f"transaction index entry {entry} has a last stable offset after its end"
            )
        floor = entry.last_offset
        entries.append(entry)
    return entries

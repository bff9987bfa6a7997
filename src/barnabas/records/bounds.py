"""Limits on what compressed records may unpack to, and the errors for those that exceed them."""

from __future__ import annotations

from typing import NamedTuple

from barnabas.records.compression import TooLargeError

RECORD_OPTION = "barnabas.unpacked.record.max.bytes"
BATCH_OPTION = "barnabas.unpacked.batch.max.bytes"
RECORD_MAX = 16 * 1024 * 1024
BATCH_MAX = 256 * 1024 * 1024
_FAIR_RATIO = 4
"""A record that is this many times as large as its packed batch is legitimate: a process that
holds the batch can hold the record."""


class Bounds(NamedTuple):
    """Maximum bytes of one record, and of all records of a batch."""

    record: int = RECORD_MAX
    batch: int = 2**63 - 1

    def held_max(self, packed: int) -> int:
        """Return how much of a batch of this compressed size may be in memory at a time."""
        return max(self.record, _FAIR_RATIO * packed)


READING = Bounds()
"""The limits of a reader that accepts any batch, and keeps one large record in memory."""

WHOLE = Bounds(batch=BATCH_MAX)
"""The limits of a reader that keeps all records of a batch in memory."""


def record_too_large(size: int, bound: int) -> TooLargeError:
    """Describe a record of a compressed batch by the length that it states."""
    return TooLargeError(
        f"record of {size} bytes in a compressed batch: must be at most {bound}, "
        f"see {RECORD_OPTION}"
    )


def batch_too_large(bound: int) -> TooLargeError:
    """Describe a batch that unpacks to too many bytes in total."""
    return TooLargeError(f"compressed batch unpacks to more than {bound} bytes, see {BATCH_OPTION}")


def whole_too_large(bound: int, why: str) -> TooLargeError:
    """Describe a batch that would have to be in memory as a whole."""
    return TooLargeError(
        f"compressed batch unpacks to more than {bound} bytes and is needed whole, because "
        f"{why}, see {RECORD_OPTION}"
    )

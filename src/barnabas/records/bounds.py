"""What compressed records may unpack to, and what is said when they unpack to more."""

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
    """The most bytes of one record, and of all records of a batch."""

    record: int = RECORD_MAX
    batch: int = 2**63 - 1

    def held_max(self, packed: int) -> int:
        """Return how much may be held at once of a batch that came in so many bytes."""
        return max(self.record, _FAIR_RATIO * packed)


READING = Bounds()
"""Those of a reader, who takes whatever is there and holds no more than one large record."""

WHOLE = Bounds(batch=BATCH_MAX)
"""Those of a reader who holds all records of a batch."""


def record_too_large(size: int, bound: int) -> TooLargeError:
    """Describe a record of a compressed batch by the length that it states."""
    return TooLargeError(
        f"record of {size} bytes in a compressed batch: must be at most {bound}, "
        f"see {RECORD_OPTION}"
    )


def batch_too_large(bound: int) -> TooLargeError:
    """Describe a batch that unpacks to too much in all."""
    return TooLargeError(f"compressed batch unpacks to more than {bound} bytes, see {BATCH_OPTION}")


def whole_too_large(bound: int, why: str) -> TooLargeError:
    """Describe a batch that would have to be held as a whole."""
    return TooLargeError(
        f"compressed batch unpacks to more than {bound} bytes and is needed whole, because "
        f"{why}, see {RECORD_OPTION}"
    )

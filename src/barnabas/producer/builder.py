"""A batch that the program fills itself, as in aiokafka: `create_batch`, `append`, `send_batch`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from barnabas.kernels import BatchBuilder as RecordsBuilder
from barnabas.model.errors import InvalidValueError
from barnabas.producer.preparation import Preparation


class Appended(NamedTuple):
    """Where a record is in its batch; records no longer have a checksum of their own."""

    offset: int
    size: int
    timestamp: int
    crc: int | None = None


class BatchBuilder:
    """Records for one partition that are sent as one batch."""

    def __init__(self, builder: RecordsBuilder, preparation: Preparation) -> None:
        self._builder = builder
        self._preparation = preparation
        self._closed = False
        self._count = 0
        self._records: bytearray | None = None

    def append(
        self,
        *,
        timestamp: int | None,
        key: Any,
        value: Any,
        headers: Sequence[tuple[str, bytes | None]] | None = (),
    ) -> Appended | None:
        """Add a record; None when the batch is full or closed."""
        if self._closed:
            return None
        _, value, key, _, _, _ = self._preparation.serialize(
            ("", value, key, headers, -1, timestamp)
        )
        stamp = time.time_ns() // 1_000_000 if timestamp is None else timestamp
        before = self._builder.size
        offset = self._builder.append(stamp, key, value, tuple(headers or ()))
        if offset < 0:
            self.close()
            return None
        self._count += 1
        return Appended(offset, self._builder.size - before, stamp)

    def close(self) -> None:
        """Accept no more records."""
        self._closed = True

    def closed(self) -> bool:
        """Return whether the batch accepts no more records."""
        return self._closed

    def size(self) -> int:
        """Return the bytes of the batch so far."""
        return self._builder.size if self._records is None else len(self._records)

    def record_count(self) -> int:
        """Return how many records there are."""
        return self._count

    def build(self) -> bytearray:
        """Return the batch, uncompressed; it accepts no more records."""
        self.close()
        if self._records is None:
            if not self._count:
                raise InvalidValueError("an empty batch cannot be sent")
            self._records = self._builder.finish()
        return self._records

"""Arrow's buffers for records of many batches and partitions, as a consumer collects them."""

from __future__ import annotations

from array import array

from barnabas.kernels.contract import Column, ConsumerColumns
from barnabas.kernels.python.consumer_record import ConsumerRecord


class ColumnStore:
    """Columns that grow batch by batch; `finish` returns them and starts new ones."""

    def __init__(self) -> None:
        self._records: list[ConsumerRecord] = []

    @property
    def count(self) -> int:
        """How many rows there are."""
        return len(self._records)

    def append(self, records: list[ConsumerRecord]) -> None:
        self._records += records

    def finish(self) -> ConsumerColumns:
        """Return the columns, and start over."""
        records, self._records = self._records, []
        topics = tuple(dict.fromkeys(record.topic for record in records))
        indexes = {topic: index for index, topic in enumerate(topics)}
        headers = [header for record in records for header in record.headers]
        positions = array("i", [0])
        for record in records:
            positions.append(positions[-1] + len(record.headers))
        return ConsumerColumns(
            len(records),
            topics,
            bytes(array("i", [indexes[record.topic] for record in records])),
            bytes(array("i", [record.partition for record in records])),
            bytes(array("q", [record.offset for record in records])),
            bytes(array("q", [record.timestamp for record in records])),
            bytes(array("b", [record.timestamp_type for record in records])),
            column([record.key for record in records]),
            column([record.value for record in records]),
            bytes(positions),
            column([name.encode("utf-8") for name, _ in headers]),
            column([value for _, value in headers]),
        )


def column(cells: list[bytes | None]) -> Column:
    """Return validity bits (None when no cell is null), int32 offsets and data."""
    positions = array("i", [0])
    validity = bytearray((len(cells) + 7) // 8)
    for index, cell in enumerate(cells):
        positions.append(positions[-1] + len(cell or b""))
        if cell is not None:
            validity[index >> 3] |= 1 << (index & 7)
    data = b"".join(cell for cell in cells if cell is not None)
    return None if None not in cells else bytes(validity), bytes(positions), data

"""One batch in the sender: the encoded records, their state, and the bytes to send."""

from __future__ import annotations

from barnabas.config.clients.producer import ProducerOptions
from barnabas.kernels import (
    HEADER_SIZE,
    TRANSACTIONAL_BIT,
    BatchBuilder,
    read_records,
    stamp_producer,
)
from barnabas.model.ids import TopicPartition
from barnabas.producer.accumulator import PendingBatch
from barnabas.producer.identity import NOBODY, Identity
from barnabas.records.compression import Codec, compress


class ProducerBatch:
    """A closed batch with its attempts, its sequence number and its payload."""

    __slots__ = (
        "attempts",
        "created_ms",
        "failure",
        "identity",
        "not_before_ms",
        "order",
        "partition",
        "payload",
        "records",
        "sequence",
        "stamped",
    )

    def __init__(
        self, records: PendingBatch, created_ms: float, order: tuple[int, ...] = (0,)
    ) -> None:
        self.records = records
        self.partition: TopicPartition = records.partition
        self.created_ms = created_ms
        self.order = order
        """Its position in the queue; the parts of a split batch append their own numbers."""
        self.attempts = 0
        self.not_before_ms = 0.0
        self.identity: Identity = NOBODY
        self.sequence = -1
        self.payload: memoryview | None = None
        self.stamped = False
        """Whether the payload carries the current identity and sequence."""
        self.failure: BaseException | None = None
        """Why the last attempt failed."""

    @property
    def size(self) -> int:
        """Bytes of the batch in a request; before it is packed, an upper bound."""
        return self.records.size if self.payload is None else len(self.payload)


def describe_progress(
    attempts: int, failure: BaseException | None, elapsed_ms: float | None = None
) -> str:
    """Return how long a batch has waited, how often it was sent, and the last error."""
    tries = f"{attempts} attempt{'s' if attempts != 1 else ''}"
    story = tries if elapsed_ms is None else f"{elapsed_ms:.0f} ms, {tries}"
    return f" ({story})" + (f": {failure}" if failure is not None else "")


class Packing:
    """How the batches of one producer are packed."""

    __slots__ = ("codec", "level", "transactional")

    def __init__(
        self, codec: Codec = Codec.NONE, level: int | None = None, *, transactional: bool = False
    ) -> None:
        self.codec = codec
        self.level = level
        self.transactional = transactional

    @classmethod
    def of(cls, options: ProducerOptions) -> Packing:
        """Return the packing that the options describe."""
        codec = Codec.of(options.compression_type or "none")
        levels = {
            Codec.GZIP: options.compression_gzip_level,
            Codec.LZ4: options.compression_lz4_level,
            Codec.ZSTD: options.compression_zstd_level,
        }
        return cls(codec, levels.get(codec), transactional=options.transactional_id is not None)

    def pack(self, batch: ProducerBatch) -> memoryview:
        """Return the bytes of a batch with its current identity and sequence.

        Records are compressed once (codecs let other threads run meanwhile); when the batch is sent
        again under another number, only the header changes.
        """
        payload = batch.payload
        producer_id, epoch = batch.identity
        if payload is None:
            records = batch.records
            packed = None
            if self.codec is not Codec.NONE:
                packed = compress(self.codec, records.view()[HEADER_SIZE:], self.level)
            payload = batch.payload = records.finish(
                self.codec,
                packed,
                producer_id,
                epoch,
                batch.sequence,
                TRANSACTIONAL_BIT if self.transactional else 0,
            )
        elif not batch.stamped:
            stamp_producer(payload, 0, producer_id, epoch, batch.sequence, self.transactional)
        batch.stamped = True
        return payload


def split(batch: ProducerBatch) -> list[ProducerBatch]:
    """Split a batch into two or more smaller ones, which replace it."""
    records = batch.records
    view = records.view()
    rows = [
        (record.timestamp, record.key, record.value, record.headers)
        for record in read_records(
            view, HEADER_SIZE, len(view), records.count, 0, records.base_timestamp
        )
    ]
    middle = (len(rows) + 1) // 2
    halves = []
    for half in (rows[:middle], rows[middle:]):
        builder = BatchBuilder()
        builder.append_many(half)
        halves.append(builder.finish())
    return [
        ProducerBatch(part, batch.created_ms, (*batch.order, number))
        for number, part in enumerate(records.split(halves))
    ]

"""Batches as they go on the wire: compressed, stamped, and cut into smaller ones."""

from __future__ import annotations

from barnabas.config.clients.producer import ProducerOptions
from barnabas.kernels import (
    HEADER_SIZE,
    TRANSACTIONAL_BIT,
    BatchBuilder,
    read_records,
    stamp_producer,
)
from barnabas.producer.batch import SendingBatch
from barnabas.records.compression import Codec, compress


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
        """Return what the options say."""
        codec = Codec.of(options.compression_type or "none")
        levels = {
            Codec.GZIP: options.compression_gzip_level,
            Codec.LZ4: options.compression_lz4_level,
            Codec.ZSTD: options.compression_zstd_level,
        }
        return cls(codec, levels.get(codec), transactional=options.transactional_id is not None)

    def pack(self, batch: SendingBatch) -> memoryview:
        """Return the bytes of a batch with its present identity and sequence.

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


def split(batch: SendingBatch) -> list[SendingBatch]:
    """Cut a batch into two or more smaller ones, which stand for it from now on."""
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
        SendingBatch(part, batch.created_ms, (*batch.order, number))
        for number, part in enumerate(records.split(halves))
    ]

"""The accumulator in Python: the reference, always importable."""

from barnabas.producer.accumulator.python.accumulator import Accumulator, PendingPartition
from barnabas.producer.accumulator.python.batch import PendingBatch, RecordFuture, Segment
from barnabas.producer.accumulator.python.buffer_pool import BufferPool
from barnabas.producer.accumulator.python.record_sender import RecordSender

__all__ = [
    "Accumulator",
    "BufferPool",
    "PendingBatch",
    "PendingPartition",
    "RecordFuture",
    "RecordSender",
    "Segment",
]

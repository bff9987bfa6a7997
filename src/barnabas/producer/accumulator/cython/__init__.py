"""The compiled accumulator: the names and answers of the Python one, many times faster."""

# ruff: noqa: F401  the names are those of the Python twin, and typed there

from barnabas.producer.accumulator.cython.accumulator import Accumulator, PendingPartition
from barnabas.producer.accumulator.cython.batch import PendingBatch, RecordFuture, Segment
from barnabas.producer.accumulator.cython.buffer_pool import BufferPool
from barnabas.producer.accumulator.cython.record_sender import RecordSender

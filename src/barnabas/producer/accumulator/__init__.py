"""Where a producer's records wait, encoded, until they are sent.

    KafkaProducer.send ──▶ Accumulator.append ──▶ PendingPartition.open: PendingBatch ──▶ sender
                                  │                                          │
                                  └──▶ RecordFuture ─── asks its batch ──────┘

A record is encoded straight into the open batch of its partition; nothing else is kept of it but a
small future, if the caller wants one, that refers to the batch. The outcome is recorded once, in
the batch, and futures derive theirs from it.

Any thread may append, while another one takes batches. The compiled twin changes a batch while it
holds the interpreter's lock; the Python one has its own lock. Neither calls user code while it does
so: keys, values and headers are converted to bytes before, sender and waiters are woken after.

Nothing waits here. A record that cannot be appended now returns a `Refusal`; the caller waits for
what is missing and retries. While `BufferPool.waiting` is set, only calls with `in_turn` get
memory: another caller came first.

Like the kernels, the classes exist in Python and in Cython, and are chosen the same way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.kernels.choice import choose
from barnabas.producer.accumulator.refusal import Refusal as Refusal

if TYPE_CHECKING:
    from barnabas.producer.accumulator.python import *  # noqa: F403

globals().update(choose(__name__)[1])

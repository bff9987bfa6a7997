"""Where a producer's records wait, encoded, until they are sent.

    KafkaProducer.send ──▶ Accumulator.append ──▶ PendingPartition.open: PendingBatch ──▶ sender
                                  │                                          │
                                  └──▶ RecordFuture ─── asks its batch ──────┘

A record is encoded straight into the open batch of its partition; nothing is kept for it but those
bytes and, where the caller wants it, a small future that points at the batch. The outcome is noted
once, in the batch; a future works its own answer out when it is asked.

Any thread may append, while one other takes batches away. In the compiled twin the part that
touches a batch runs without a pause under the interpreter's lock; the Python one has a lock of its
own. Neither calls back into foreign code meanwhile: keys, values and headers are turned to bytes
before, sender and waiters are woken after.

Waiting is not done here. What cannot be done at once returns a `Refusal`, and the caller
waits for what is missing and tries again. While `BufferPool.waiting` is set, memory is given to
calls with `in_turn` alone: another caller came first.

The classes are written twice, as the kernels are, and chosen in the same way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.kernels.choice import choose
from barnabas.producer.accumulator.refusal import Refusal as Refusal

if TYPE_CHECKING:
    from barnabas.producer.accumulator.python import *  # noqa: F403

globals().update(choose(__name__)[1])

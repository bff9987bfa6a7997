"""One batch on its way: the encoded records and what the sender notes about them."""

from __future__ import annotations

from barnabas.model.ids import TopicPartition
from barnabas.producer.accumulator import PendingBatch
from barnabas.producer.identity import NOBODY, Identity


class SendingBatch:
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
        """Its place in the queue; the parts of a batch that was split add numbers of their own."""
        self.attempts = 0
        self.not_before_ms = 0.0
        self.identity: Identity = NOBODY
        self.sequence = -1
        self.payload: memoryview | None = None
        self.stamped = False
        """Whether the payload carries the present identity and sequence."""
        self.failure: BaseException | None = None
        """Why the last attempt failed."""

    @property
    def size(self) -> int:
        """Bytes that the batch takes in a request, or may take before it is packed."""
        return self.records.size if self.payload is None else len(self.payload)


def plight(attempts: int, failure: BaseException | None, elapsed_ms: float | None = None) -> str:
    """Say how long a batch has waited, how often it was sent, and what went wrong."""
    tries = f"{attempts} attempt{'s' if attempts != 1 else ''}"
    story = tries if elapsed_ms is None else f"{elapsed_ms:.0f} ms, {tries}"
    return f" ({story})" + (f": {failure}" if failure is not None else "")

"""What both accumulators promise: where a producer's records wait, encoded, until they are sent.

    KafkaProducer.send ──▶ Accumulator.send ──▶ PendingPartition.open: PendingBatch ──▶ sender
                                  │                                        │
                                  └──▶ RecordFuture ── asks its batch ─────┘

A record is encoded straight into the open batch of its partition; nothing is kept for it but those
bytes and, where the caller wants it, a small future that points at the batch. What becomes of the
batch is told once, to the batch; a future works its own answer out when it is asked.

Any thread may append, while one other takes batches away. In the compiled kernel the part that
touches a batch runs without a pause under the interpreter's lock; the Python one has a lock of its
own. Neither calls back into foreign code meanwhile: keys, values and headers are turned to bytes
before, sender and waiters are woken after.

Waiting is not done here. What cannot be done at once is refused with a `Refusal`, and the caller's
`detour` (or the caller itself) waits for what is missing and tries again. While `waiting` is set,
memory is given to calls with `in_turn` alone: somebody came before all others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any, Protocol, TypeAlias

from barnabas.kernels.contract import Buffer
from barnabas.model.errors import InvalidValueError
from barnabas.model.ids import TopicPartition


class Refusal(IntEnum):
    """Why a record was not taken."""

    TOPIC = 1  # its partitions are not known
    PARTITION = 2  # there is no such partition
    MEMORY = 3  # all memory is in use
    SIZE = 4  # it is larger than a record may be
    TYPE = 5  # topic, key, value or headers are not of the right types
    EMPTY = 6  # neither key nor value
    CLOSED = 7  # no records are taken now


class Outcome(IntEnum):
    """Which calls a watcher of a batch wants."""

    EITHER = 0  # called without arguments when the batch is done
    SUCCESS = 1  # called with the record's metadata
    FAILURE = 2  # called with the exception
    FUTURE = 3  # an asyncio future, to be set


Detour: TypeAlias = Callable[..., Any]
"""Called with the refusal and the arguments of `send`; answers in its place."""


def wrong_memory(memory: int, batch_size: int) -> InvalidValueError:
    return InvalidValueError(
        f"buffer.memory={memory} must have room for one batch (batch.size={batch_size})"
    )


class BatchContract(Protocol):
    """Records of one partition that are sent together, and what became of them."""

    partition: TopicPartition

    @property
    def count(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def base_timestamp(self) -> int: ...
    @property
    def max_timestamp(self) -> int: ...
    @property
    def done(self) -> bool: ...
    @property
    def exception(self) -> BaseException | None: ...
    @property
    def base_offset(self) -> int: ...
    def view(self) -> memoryview: ...
    def finish(
        self,
        codec: int = 0,
        packed: Buffer | None = None,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
        attributes: int = 0,
    ) -> memoryview: ...
    def complete(
        self, base_offset: int, append_time_ms: int = -1, log_start_offset: int = -1
    ) -> None: ...
    def fail(
        self, failure: BaseException, by_record: dict[int, BaseException] | None = None
    ) -> None: ...
    def become(self, parts: Sequence[Any]) -> None: ...
    def watch(self, callback: Callable[[], object]) -> None: ...


class AccumulatorContract(Protocol):
    """The open batches of all partitions."""

    def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        headers: Any = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> Any: ...
    def append(
        self,
        topic: str,
        value: Buffer | None = None,
        key: Buffer | None = None,
        headers: Sequence[tuple[str, Buffer | None]] | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        in_turn: bool = False,
    ) -> Any: ...
    def collect(self) -> list[Any]: ...

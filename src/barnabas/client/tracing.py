"""Where a tracer hooks into producers and consumers.

`barnabas.opentelemetry` installs one; a client asks for it once, when it is created. Without one, a
client keeps None, and its records go the same way as if this module did not exist.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from barnabas.model.ids import TopicPartition


class SendTrace(Protocol):
    """The trace of a record, or of the records of one call, that is being sent."""

    def written(self, metadata: Any) -> None:
        """End it: the record was written here."""

    def failed(self, failure: BaseException) -> None:
        """End it: the records were not written, or not all."""

    def all_written(self) -> None:
        """End it: all records of the call were written."""


class ProducerTracer(Protocol):
    """The tracer of one producer; it returns None for what it does not trace."""

    def send(self, arguments: tuple[Any, ...]) -> tuple[tuple[Any, ...], SendTrace | None]:
        """Begin with one record: return the arguments of `send` with headers for its context."""

    async def send_async(
        self, arguments: tuple[Any, ...]
    ) -> tuple[tuple[Any, ...], SendTrace | None]:
        """Begin with one record in a coroutine, which user hooks may need."""

    def send_rows(
        self, topic: str, rows: Sequence[tuple[Any, ...]]
    ) -> tuple[Sequence[tuple[Any, ...]], SendTrace | None]:
        """Begin with many records: return them with headers for the context of all."""

    def send_packed(self, topic: str, count: int) -> SendTrace | None:
        """Begin with records that cannot get headers: columns, or a batch that is complete."""


class ConsumerTracer(Protocol):
    """The tracer of one consumer."""

    def now(self) -> int:
        """Return when a call began, for `polled` and `polled_columns`."""

    def each(self, records: Generator[Any, None, None]) -> Generator[Any, None, None]:
        """Pass on records of an iteration, tracing each when it is handed out."""

    async def one(self, record: Any) -> None:
        """Trace a record that is handed out to a coroutine."""

    def polled(self, found: Mapping[TopicPartition, Sequence[Any]], began: int) -> None:
        """Trace the records of one call."""

    async def polled_async(self, found: Mapping[TopicPartition, Sequence[Any]], began: int) -> None:
        """Trace the records of one call of a coroutine."""

    def polled_columns(self, batch: Any, began: int) -> None:
        """Trace an Arrow record batch."""

    def commit(self, topics: Iterable[str]) -> AbstractContextManager[None]:
        """Trace a commit while the context lasts."""


class Tracing(Protocol):
    """Makes the tracers of clients."""

    def of_producer(
        self, client_id: str, servers: Sequence[str], cluster_id: Callable[[], str | None]
    ) -> ProducerTracer:
        """Return the tracer of a new producer."""

    def of_consumer(
        self,
        client_id: str,
        group_id: str | None,
        servers: Sequence[str],
        cluster_id: Callable[[], str | None],
    ) -> ConsumerTracer:
        """Return the tracer of a new consumer."""


_installed: Tracing | None = None


def install(tracing: Tracing | None) -> None:
    """Trace the clients that are created from now on; None: no longer."""
    global _installed
    _installed = tracing


def installed() -> Tracing | None:
    """Return what traces new clients."""
    return _installed

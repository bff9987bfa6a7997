"""`send` of a producer: called for each record, so its compiled twin has no Python on its way.

A subclass says where records go (`_direct`) and what to do where that is not all there is to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from barnabas.producer.accumulator.python.accumulator import Accumulator
from barnabas.producer.accumulator.python.batch import RecordFuture
from barnabas.producer.accumulator.refusal import Refusal


class RecordSender:
    """What a producer for plain programs inherits `send` from."""

    _direct: Accumulator | None = None
    """Where records go as they are; None if they are to be prepared first."""

    def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        headers: Sequence[tuple[str, bytes | None]] | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> RecordFuture:
        """Queue a record and return a future of its `RecordMetadata`.

        Blocks for at most max_block_ms while the topic's partitions are unknown or all memory is
        taken, then raises KafkaTimeoutError.

            producer.send("orders", b"two teapots", key=b"customer-7", headers=[("v", b"1")])
            producer.send("orders", b"a cup").add_callback(lambda place: print(place.offset))
        """
        arguments = (topic, value, key, headers, partition, timestamp_ms)
        if self._direct is None:
            return self._prepare_and_send(arguments)
        taken = self._direct.append(*arguments)
        if isinstance(taken, RecordFuture):
            return taken
        return self._wait_and_send(taken, arguments)

    def _prepare_and_send(self, arguments: tuple[Any, ...]) -> RecordFuture:
        """Send a record that is intercepted, serialized or partitioned by code of the user's."""
        raise NotImplementedError

    def _wait_and_send(self, refusal: Refusal, arguments: tuple[Any, ...]) -> RecordFuture:
        """Wait for what a record lacks and send it, or raise what stands against it."""
        raise NotImplementedError

"""`send` of a producer: called for each record, so its compiled twin runs no Python code.

A subclass sets where records go (`_direct`), and handles those that need more than that.
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
    """Where records go unchanged; None if they must be prepared first."""

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

        Blocks for at most max_block_ms while the topic's partitions are unknown or buffer.memory is
        exhausted, then raises KafkaTimeoutError.

            producer.send("orders", b"two teapots", key=b"customer-7", headers=[("v", b"1")])
            producer.send("orders", b"a cup").add_callback(lambda written: print(written.offset))
        """
        arguments = (topic, value, key, headers, partition, timestamp_ms)
        if self._direct is None:
            return self._prepare_and_send(arguments)
        taken = self._direct.append(*arguments)
        if isinstance(taken, RecordFuture):
            return taken
        return self._wait_and_send(taken, arguments)

    def _prepare_and_send(self, arguments: tuple[Any, ...]) -> RecordFuture:
        """Send a record that the user's code intercepts, serializes or partitions."""
        raise NotImplementedError

    def _wait_and_send(self, refusal: Refusal, arguments: tuple[Any, ...]) -> RecordFuture:
        """Wait for what a record needs and send it, or raise why it cannot be sent."""
        raise NotImplementedError

"""What a consumer returns in place of a message: ends of partitions, and errors."""

from __future__ import annotations

import time
from math import inf
from typing import Any

from barnabas.client.errors import NoOffsetForPartitionError
from barnabas.compat.confluent_kafka.error import KafkaError
from barnabas.compat.confluent_kafka.error_codes import text_of
from barnabas.compat.confluent_kafka.failures import error_of
from barnabas.compat.confluent_kafka.message import Message, error_message
from barnabas.compat.confluent_kafka.reading import RecordReader
from barnabas.config.clients.consumer import ConsumerOptions
from barnabas.consumer.group.callbacks import RebalanceListenerError
from barnabas.model import ids
from barnabas.model.errors import BarnabasError
from barnabas.model.isolation import IsolationLevel
from barnabas.model.request_errors import FencedInstanceIdError, OffsetOutOfRangeError

_REPEAT_S = 10.0
"""How long a failure that each poll meets again is not reported again."""


class Notes:
    """Finds what is reported once, in place of a message."""

    def __init__(
        self, reader: RecordReader, options: ConsumerOptions, *, partition_eof: bool
    ) -> None:
        self._reader = reader
        self._interval_ms = options.max_poll_interval_ms
        self._committed = options.isolation_level == IsolationLevel.READ_COMMITTED
        self._partition_eof = partition_eof
        self._ends_told: dict[ids.TopicPartition, tuple[int, int]] = {}
        self._missing_told: set[str] = set()
        self._unpolled_told = False
        self._failure = ""
        self._repeat_s = 0.0

    def exceeded(self) -> Message[Any, Any] | None:
        """Return an error if the consumer left its group because it was not polled."""
        unpolled, told = self._reader.is_unpolled, self._unpolled_told
        self._unpolled_told = unpolled
        if not unpolled or told:
            return None
        reason = (
            f"Application maximum poll interval ({self._interval_ms:g}ms) exceeded: the consumer "
            "left its group, and the next poll rejoins"
        )
        return error_message(KafkaError(KafkaError._MAX_POLL_EXCEEDED, reason))

    def failed(self, failure: BarnabasError) -> Message[Any, Any] | None:
        """Return the failure of a poll as a message; None if it was reported just now.

        What a callback of the program has raised is raised again.
        """
        if isinstance(failure, RebalanceListenerError) and failure.__cause__ is not None:
            raise failure.__cause__
        fatal = isinstance(failure, FencedInstanceIdError)
        now_s, text = time.monotonic(), str(failure)
        if text == self._failure and now_s < self._repeat_s:
            return None
        self._failure, self._repeat_s = text, inf if fatal else now_s + _REPEAT_S
        if fatal:
            code = KafkaError._FATAL
            reason = f"{text_of(code)}: {error_of(failure).str()}"
            return error_message(KafkaError(code, reason, fatal=True))
        return _of_failure(failure)

    def next(self) -> Message[Any, Any] | None:
        """Return an end or an error that was not reported yet."""
        end = self._end() if self._partition_eof else None
        return self._missing() if end is None else end

    def _end(self) -> Message[Any, Any] | None:
        for state in self._reader.states:
            end = state.last_stable_offset if self._committed else state.high_watermark
            offset = state.position
            if offset is None or end is None or offset < end or state.paused:
                continue
            mark = (state.version, offset)
            if self._ends_told.get(state.partition) != mark:
                self._ends_told[state.partition] = mark
                reason = f"reached the end of {state.partition} at offset {offset}"
                error = KafkaError(KafkaError._PARTITION_EOF, reason)
                return error_message(error, *state.partition, offset)
        return None

    def _missing(self) -> Message[Any, Any] | None:
        missing = self._reader.missing_topics()
        self._missing_told.intersection_update(missing)
        for topic in missing:
            if topic not in self._missing_told:
                self._missing_told.add(topic)
                code = KafkaError.UNKNOWN_TOPIC_OR_PART
                reason = f"Subscribed topic not available: {topic}: {text_of(code)}"
                return error_message(KafkaError(code, reason), topic, 0)
        return None


def _of_failure(failure: BarnabasError) -> Message[Any, Any]:
    """Return a failure as a message."""
    if isinstance(failure, OffsetOutOfRangeError) and isinstance(failure.args[0], dict):
        ((partition, offset),) = failure.args[0].items()
        code = KafkaError._AUTO_OFFSET_RESET
        reason = f"{text_of(code)}: offset {offset} of {partition} is out of range"
        error = KafkaError(code, reason)
        return error_message(error, partition.topic, partition.partition, offset)
    if isinstance(failure, NoOffsetForPartitionError) and failure.partition is not None:
        return error_message(error_of(failure), *failure.partition)
    return error_message(error_of(failure))

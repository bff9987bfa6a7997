"""Consumers that are kept between the tasks of one worker process.

Spark gives a Python worker one task after another, and a small batch has little time: a consumer
that is connected and knows the cluster saves a task the way there. It is given out to one task at a
time. One that saw an error, or whose task ended early, is closed and never given out again. What is
kept reads nothing: its partitions are paused.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from barnabas.blocking.consumer import KafkaConsumer

IDLE_MAX = 4
"""Of one process: a worker serves the tasks of few clusters."""


class Consumers:
    """The consumers of one process, by their options."""

    def __init__(self) -> None:
        self._idle: dict[tuple[object, ...], KafkaConsumer] = {}

    @contextmanager
    def lend(self, client: Mapping[str, str]) -> Iterator[KafkaConsumer]:
        """Give out a consumer with these options; it may still have paused partitions."""
        # A process that was forked cannot use its parent's connections.
        key = (os.getpid(), *sorted(client.items()))
        consumer = self._idle.pop(key, None) or KafkaConsumer(**client)
        try:
            yield consumer
            consumer.pause(*consumer.assignment())
        except BaseException:
            consumer.close()
            raise
        other = self._idle.pop(key, None)  # of a task that ran at the same time
        self._idle[key] = consumer
        if other is None and len(self._idle) > IDLE_MAX:
            other = self._idle.pop(next(iter(self._idle)))
        if other is not None:
            other.close()

    def close(self) -> None:
        """Close what is kept."""
        while self._idle:
            self._idle.popitem()[1].close()

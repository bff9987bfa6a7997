"""What a worker process of Spark keeps from one task to the next.

Spark runs one task after another in a Python worker, and has no place for what a data source would
keep between them, so the functions here remember it: the only state in `spark` that outlives a
call.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache

from pyspark import TaskContext

from barnabas.blocking.consumer import KafkaConsumer

IDLE_MAX = 4
"""The maximum of idle consumers of one process: a worker serves the tasks of few clusters."""


class ConsumerPool:
    """The idle consumers of one process, by their options.

    A micro-batch is short, and a consumer that is connected and has metadata saves a task the
    connecting. It is lent to one task at a time. One that raised, or whose task ended early, is
    closed and never lent again. An idle consumer fetches nothing: its partitions are paused.
    """

    def __init__(self) -> None:
        self._idle: dict[tuple[object, ...], KafkaConsumer] = {}

    @contextmanager
    def acquire(self, client: Mapping[str, str]) -> Iterator[KafkaConsumer]:
        """Lend a consumer with these options; it may still have paused partitions."""
        # A forked process cannot use its parent's connections.
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
        """Close the idle consumers."""
        while self._idle:
            self._idle.popitem()[1].close()


@cache
def consumer_pool() -> ConsumerPool:
    """Return the consumers of this process."""
    return ConsumerPool()


def freeze_modules() -> None:
    """Make the garbage collection after later tasks cheap; called at the end of one.

    PySpark collects garbage after every task, which visits all objects: some fifty
    milliseconds for modules that stay anyway. From here on they are skipped.
    """
    if TaskContext.get() is not None:
        _freeze()


@cache
def _freeze() -> None:
    gc.collect()
    gc.freeze()

"""Sends the lines of `barnabas produce` with the package's producer, and reports each outcome.

A command promises other things than a producer in a program: a line is as large as the topic takes
it, so that the producer's own limits are lifted and `room` holds a fast source back instead; and
Ctrl-C drops what waits instead of delivering it.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import time
from collections.abc import Sequence
from functools import partial
from typing import Protocol

from barnabas.client.cluster_client import ClusterClient
from barnabas.client.errors import ProducerClosed
from barnabas.config.clients.options import parse_client_options
from barnabas.config.clients.producer import ProducerOptions
from barnabas.model.errors import InvalidValueError
from barnabas.model.ids import TopicPartition
from barnabas.producer.accumulator import PendingBatch, Refusal
from barnabas.producer.core import ProducerCore
from barnabas.records.builder import build_batch

BATCHES_MAX = 16
"""How many batches may wait before the source is held back: about 4 MiB of short lines."""

_NO_LIMIT = 2**31 - 1
_EMPTY_MAX = 1000

Headers = Sequence[tuple[str, bytes | None]]
Row = tuple[bytes | None, bytes | None, Headers, int | None]
"""Key, value, headers, timestamp (None: now)."""


class Outcomes(Protocol):
    """Is notified of what became of each batch, with the numbers of the lines in it."""

    def acknowledged(self, partition: int, lines: list[int], base_offset: int | None) -> None:
        """Handle a batch that the broker has; its offset is None with acks=0."""

    def failed(
        self, lines: list[int], failure: BaseException, rejected: dict[int, BaseException]
    ) -> None:
        """Handle a batch that was given up; `rejected` has the lines to blame, if that is known."""


def producer_core(client: ClusterClient, arguments: argparse.Namespace) -> ProducerCore:
    """Return the producer that the arguments describe, on the running loop; `client` is its own."""
    timeout_ms = max(1, int(arguments.timeout * 1000))
    options = {
        "acks": arguments.acks,
        "compression.type": arguments.codec,
        "enable.idempotence": False,
        "max.in.flight.requests.per.connection": 1,  # of a partition: order holds through retries
        "max.request.size": _NO_LIMIT,
        "buffer.memory": 2 * _NO_LIMIT,
        "metadata.max.idle.ms": _NO_LIMIT,  # a line may be typed an hour after the one before
        "request.timeout.ms": timeout_ms,
        "delivery.timeout.ms": timeout_ms,
    }
    return ProducerCore(
        parse_client_options(ProducerOptions, options),
        post=asyncio.get_running_loop().call_soon,
        wait=lambda *_: None,
        cluster_client=client,
    )


class LineSender:
    """Sends the lines that it is given; `room` holds back a source that is too fast."""

    def __init__(
        self, core: ProducerCore, topic: str, partition: int | None, outcomes: Outcomes
    ) -> None:
        """Send to one partition, or to those that keys ask for; `core` knows the topic."""
        self._core = core
        self._topic = topic
        self._partition = partition
        self._outcomes = outcomes
        self._lines: dict[PendingBatch, list[int]] = {}
        self._empty: list[tuple[Row, int]] = []
        self._settled = asyncio.Event()
        self._failure: Exception | None = None

    def add(self, row: Row, line: int) -> None:
        """Queue a record, with the number of its line."""
        key, value, headers, timestamp_ms = row
        if key is None and value is None:
            self._empty.append((row, line))
            if len(self._empty) == _EMPTY_MAX:
                self._adopt_empty()
            return
        if self._empty:
            self._adopt_empty()
        taken = self._core.accumulator.append(
            self._topic, value, key, headers, self._partition, timestamp_ms
        )
        if isinstance(taken, Refusal):
            raise InvalidValueError(f"line {line} cannot be queued: {taken.value}")
        lines = self._lines.get(taken.batch)
        if lines is None:
            lines = self._follow(taken.batch)
        lines.append(line)

    async def room(self, batches_max: int = BATCHES_MAX) -> None:
        """Let batches leave; wait while too many are queued. Raise if reporting has failed."""
        if self._empty:
            self._adopt_empty()
        await asyncio.sleep(0)
        while self._failure is None and len(self._lines) > batches_max:
            self._settled.clear()
            await self._settled.wait()
        if self._failure is not None:
            raise self._failure

    async def finish(self) -> None:
        """Wait until every line was acknowledged or given up."""
        await self.room(0)

    def drop(self) -> None:
        """Give up what waits and what is on its way, without a report."""
        self._lines.clear()
        self._empty.clear()
        self._core.sender.collect(self._core.now_ms())
        self._core.sender.abandon(ProducerClosed("the command was interrupted"), in_flight=True)

    def _adopt_empty(self) -> None:
        """Queue records of neither key nor value: producers take them as a whole batch alone."""
        now_ms = int(time.time() * 1000)
        records = build_batch(
            [
                (now_ms if timestamp_ms is None else timestamp_ms, None, None, headers)
                for (_, _, headers, timestamp_ms), _ in self._empty
            ]
        )
        accumulator = self._core.accumulator
        partition = self._partition
        if partition is None:
            partition = random.randrange(accumulator.partition_count(self._topic))
        batch = accumulator.adopt(TopicPartition(self._topic, partition), records)
        assert isinstance(batch, PendingBatch), batch
        self._follow(batch).extend(line for _, line in self._empty)
        self._empty.clear()

    def _follow(self, batch: PendingBatch) -> list[int]:
        """Have a new batch reported when it is done; return the list of its lines."""
        lines = self._lines[batch] = []
        batch.watch(partial(self._report, batch))
        return lines

    def _report(self, batch: PendingBatch) -> None:
        """Report a batch that is done, or the batches that it was split into."""
        lines = self._lines.pop(batch, [])
        try:
            while lines:
                part, _ = batch.find(batch.count - len(lines))
                self._report_part(part, lines[: part.count])
                lines = lines[part.count :]
        except Exception as failure:  # noqa: BLE001  # a closed pipe: `room` raises it
            self._failure = failure
        self._settled.set()

    def _report_part(self, part: PendingBatch, lines: list[int]) -> None:
        failure = part.exception
        if failure is None:
            offset = part.base_offset if part.base_offset >= 0 else None
            self._outcomes.acknowledged(part.partition.partition, lines, offset)
            return
        rejected = {}
        for index, line in enumerate(lines):
            own = part.future(index).exception
            if own is not None and own is not failure:
                rejected[line] = own
        self._outcomes.failed(lines, failure, rejected)

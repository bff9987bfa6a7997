"""Sends rows to a partition, those without key and value included.

A producer rejects a record that has neither, as that is usually a mistake of the program. Topics
may contain such records all the same, and a copy needs them: they are sent in batches that are
built here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from barnabas.aio import AIOKafkaProducer

Row = Sequence[Any]
"""Key, value, headers, timestamp."""


async def send_rows(
    producer: AIOKafkaProducer, topic: str, partition: int, rows: Iterable[Row]
) -> None:
    """Queue rows in order; the transaction or a flush reports failures."""
    for empty, run in groupby(rows, _is_empty):
        if empty:
            await _send_empty(producer, topic, partition, run)
        else:
            await producer.send_many(topic, list(run), partition=partition)


def _is_empty(row: Row) -> bool:
    return row[0] is None and row[1] is None


async def _send_empty(
    producer: AIOKafkaProducer, topic: str, partition: int, rows: Iterable[Row]
) -> None:
    batch = producer.create_batch()
    for key, value, headers, timestamp in rows:
        fields = {"key": key, "value": value, "headers": headers, "timestamp": timestamp}
        if batch.append(**fields) is None:  # full
            _ignore(await producer.send_batch(batch, topic, partition=partition))
            batch = producer.create_batch()
            batch.append(**fields)
    _ignore(await producer.send_batch(batch, topic, partition=partition))


def _ignore(sent: asyncio.Future[Any]) -> None:
    """Retrieve a failure, so that only the transaction reports it, and not the loop as well."""
    sent.add_done_callback(lambda done: done.cancelled() or done.exception())

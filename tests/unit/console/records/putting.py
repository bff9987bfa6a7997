"""Writes records to the broker of a console under test."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tests.unit.console.site import Site

from barnabas.records.builder import build_batch
from barnabas.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)


def put(site: Site, topic: str, rows: Iterable[Any], partition: int = 0, **header: Any) -> None:
    """Append one batch to a partition."""
    batch = build_batch(rows, **header)
    data = PartitionProduceData(index=partition, records=batch)
    request = ProduceRequest(
        acks=1, timeout_ms=60_000, topic_data=[TopicProduceData(name=topic, partition_data=[data])]
    )
    with site.serving.connect() as wire:
        answer = wire.ask(request, 9).responses[0].partition_responses[0]
    assert answer.error_code == 0, answer

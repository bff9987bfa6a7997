"""Proposed ISRs, and what is noted once the controller has answered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest
from tests.unit.replication.test_partition_leader import LAG_MS, World, append, fetch, make, world

from barnabas.broker.replication.isr_metrics import IsrMetrics
from barnabas.broker.replication.isr_proposals import REFUSALS, IsrProposals
from barnabas.diary.catalogue import EVENTS
from barnabas.metrics.catalogue.replication import FAILED_ISR_UPDATES, ISR_CHANGES, ISR_SHRINKS
from barnabas.metrics.registry import Registry
from barnabas.model.error_codes import ErrorCode
from barnabas.model.note import Note
from barnabas.replication.partition import Partition
from barnabas.wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    ResponsePartitionData,
    ResponseTopicData,
)
from barnabas.wire.schema import Message

__all__ = ["make", "world"]


class Hosted(dict[tuple[str, int], Partition]):
    """Partitions that nobody waits for."""

    def watermark_rose(self, partition: Partition) -> None:
        """Wake nobody."""

    @property
    def produce_purgatory(self) -> Any:
        return self

    def check(self, key: object) -> None:
        """Complete nothing."""


def answered(partition: Partition, code: ErrorCode, registry: Registry | None = None) -> list[Note]:
    """Return what is noted when the controller answers with a code; it is counted, too."""
    notes: list[Note] = []

    async def ask(request: Message, timeout_ms: int) -> Message:
        assert isinstance(request, AlterPartitionRequest)
        [asked] = request.topics[0].partitions
        result = ResponsePartitionData(
            partition_index=0,
            error_code=code,
            leader_id=0,
            leader_epoch=asked.leader_epoch,
            isr=[each.broker_id for each in asked.new_isr_with_epochs],
            partition_epoch=asked.partition_epoch + 1,
        )
        topic = ResponseTopicData(topic_name="t", topic_id=partition.topic_id, partitions=[result])
        return AlterPartitionResponse(topics=[topic])

    async def shrink() -> None:
        hosted = cast(Any, Hosted({("t", 0): partition}))
        metrics = IsrMetrics(registry or Registry())
        keeper = IsrProposals(0, lambda: 7, hosted, metrics, ask_controller=ask, note=notes.append)
        keeper.shrink()
        assert keeper._task is not None
        await keeper._task
        await keeper.stop()

    asyncio.run(shrink())
    return notes


@pytest.fixture
def lagging(make: Callable[..., Partition], world: World) -> Partition:
    partition = make()
    append(partition, 3)
    fetch(partition, 1, 3)
    world.now_ms += LAG_MS + 1
    fetch(partition, 1, 3)
    return partition


def test_an_accepted_change_is_noted_with_its_version(lagging: Partition) -> None:
    [note] = answered(lagging, ErrorCode.NONE)
    assert (note.event, note.cause) == ("isr.shrink", "lag-time")
    assert (note.data["to"], note.data["version"]) == ([0, 1], 1)
    assert lagging.isr == (0, 1)


@pytest.mark.parametrize("code", [*REFUSALS, ErrorCode.INVALID_REQUEST])
def test_each_refusal_has_its_cause(lagging: Partition, code: ErrorCode) -> None:
    [note] = answered(lagging, code)
    assert note.event == "isr.refused"
    assert note.cause == REFUSALS.get(code, "invalid")
    assert note.cause in EVENTS["isr.refused"].causes
    assert note.data["code"] == code.name
    assert (note.data["from"], note.data["to"]) == ([0, 1, 2], [0, 1])


def test_an_accepted_change_is_counted_by_its_cause(lagging: Partition) -> None:
    registry = Registry()
    answered(lagging, ErrorCode.NONE, registry)
    assert registry.value(ISR_SHRINKS) == 1
    assert registry.value(ISR_CHANGES, "shrink", "lag-time") == 1
    assert registry.value(FAILED_ISR_UPDATES) == 0


def test_a_rejected_change_is_counted_as_failed(lagging: Partition) -> None:
    registry = Registry()
    answered(lagging, ErrorCode.INVALID_UPDATE_VERSION, registry)
    assert registry.value(FAILED_ISR_UPDATES) == 1
    assert registry.value(ISR_SHRINKS) == 0

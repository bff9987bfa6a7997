"""ISR changes that leaders propose: what the controller answers is applied, and counted."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from barnabas.broker.replication.isr_metrics import IsrMetrics
from barnabas.broker.replication.isr_proposals import IsrProposals
from barnabas.metrics.catalogue.replication import FAILED_ISR_UPDATES, ISR_CHANGES, ISR_SHRINKS
from barnabas.metrics.registry import Registry
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.ids import TopicPartition
from barnabas.replication.isr_state import IsrState, Proposal
from barnabas.wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    ResponsePartitionData,
    ResponseTopicData,
)

KEY = TopicPartition("t", 0)


class Led:
    """A partition that has lost a follower."""

    topic_partition, topic_id, is_leader, leader_epoch = KEY, b"t" * 16, True, 3

    def __init__(self) -> None:
        self.state = IsrState()
        self.state.decided((0, 1, 2), 5)

    @property
    def isr(self) -> tuple[int, ...]:
        return self.state.committed

    def propose_shrink(self) -> Proposal | None:
        return self.state.propose(KEY, 3, (0, 1), (-1, -1)) if self.state.settled else None

    def proposal_accepted(self, proposal: Proposal, isr: tuple[int, ...], epoch: int) -> bool:
        self.state.decided(isr, epoch, proposal)
        return True

    def proposal_refused(self, proposal: Proposal, code: ErrorCode) -> Proposal | None:
        return self.state.refused(proposal, code)


class Controller:
    """Answers each request with the next of some error codes."""

    def __init__(self, *answers: ErrorCode | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[AlterPartitionRequest] = []

    async def __call__(self, request: Any, timeout_ms: int) -> AlterPartitionResponse:
        self.asked.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        data = ResponsePartitionData(
            partition_index=0, error_code=answer, leader_epoch=3, isr=[0, 1], partition_epoch=6
        )
        topic = ResponseTopicData(topic_name="t", topic_id=b"t" * 16, partitions=[data])
        return AlterPartitionResponse(topics=[topic])


def propose(controller: Controller) -> tuple[Led, Registry, list[object]]:
    """Let a leader propose to shrink the ISR; return what came of it."""
    led, registry, risen = Led(), Registry(), []
    partitions: Any = SimpleNamespace(
        values=lambda: [led],
        watermark_rose=risen.append,
        produce_purgatory=SimpleNamespace(check=lambda key: None),
    )

    async def story() -> None:
        metrics = IsrMetrics(registry)
        proposals = IsrProposals(0, lambda: 9, partitions, metrics, ask_controller=controller)
        proposals.shrink()
        task = proposals._task
        assert task is not None
        await asyncio.wait_for(task, 60)

    asyncio.run(story())
    return led, registry, risen


def test_an_accepted_change_is_applied_and_counted() -> None:
    controller = Controller(ErrorCode.NONE)
    led, registry, risen = propose(controller)
    assert led.isr == (0, 1)
    assert risen == [led]
    assert registry.value(ISR_SHRINKS) == 1
    assert registry.value(ISR_CHANGES, "shrink", "lag-time") == 1
    ((topic,),) = [each.topics for each in controller.asked]
    assert [each.broker_id for each in topic.partitions[0].new_isr_with_epochs] == [0, 1]


def test_a_rejected_change_is_counted_as_failed() -> None:
    led, registry, risen = propose(Controller(ErrorCode.INVALID_UPDATE_VERSION))
    assert (led.isr, risen) == ((0, 1, 2), [])
    assert registry.value(FAILED_ISR_UPDATES) == 1
    assert registry.value(ISR_SHRINKS) == 0


def test_a_controller_that_cannot_be_reached_is_asked_again() -> None:
    controller = Controller(RequestError(ErrorCode.BROKER_NOT_AVAILABLE), ErrorCode.NONE)
    led, registry, _ = propose(controller)
    assert led.isr == (0, 1)
    assert len(controller.asked) == 2
    assert registry.value(FAILED_ISR_UPDATES) == 0
    assert registry.value(ISR_SHRINKS) == 1

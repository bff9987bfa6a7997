"""What leaders ask of a controller under test."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from tests.unit.controller.office import Office

from barnabas.controller.isr_changes import Wish
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition

T0 = TopicPartition("t", 0)


def runs(test: Callable[[], Awaitable[None]]) -> Callable[[], None]:
    """Run an async test."""

    def run() -> None:
        asyncio.run(test())  # type: ignore[arg-type]

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


def wish(office: Office, key: TopicPartition, *isr: int, **changes: Any) -> Wish:
    held = office.knowledge.leaderships[key]
    made = Wish(key, held.leader_epoch, isr, (-1,) * len(isr), held.partition_epoch, False)
    return made._replace(**changes)


async def grant(office: Office, key: TopicPartition, *isr: int) -> None:
    """The leader of a partition asks for these in-sync replicas, and gets them."""
    leader = office.knowledge.leaderships[key].leader
    answers = await office.term.alter_partitions(leader, -1, [wish(office, key, *isr)])
    assert isinstance(answers, dict)
    assert answers[key].error is ErrorCode.NONE
    office.deliver()
    await office.settle()

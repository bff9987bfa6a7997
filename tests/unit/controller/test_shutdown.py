"""Brokers that leave in order: others lead first, and who stays alone in sync is told so."""

from __future__ import annotations

import pytest
from tests.unit.controller.asking import T0, grant, runs
from tests.unit.controller.office import Office

from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.ids import TopicPartition
from barnabas.wire.messages.stop_replica import StopReplicaRequest


async def leave(office: Office, broker: int) -> list[TopicPartition]:
    left = await office.term.controlled_shutdown(broker, office.knowledge.brokers[broker].epoch)
    office.deliver()
    await office.settle()
    return left


@runs
async def test_what_it_follows_is_stopped_and_not_deleted() -> None:
    office = await Office().open(0, 1, 2)
    await office.create("t", (1, 0, 2))
    office.letters.clear()
    assert await leave(office, 0) == []
    assert (await office.node("t")).isr == (1, 2)
    stops = [
        (letter.broker_id, state.delete_partition)
        for letter in office.letters
        if isinstance(letter.request, StopReplicaRequest)
        for topic in letter.request.topic_states
        for state in topic.partition_states
    ]
    assert stops == [(0, False)]


@runs
async def test_asking_again_changes_nothing() -> None:
    office = await Office().open(0, 1, 2)
    await office.create("t", (0, 1, 2), (1, 0, 2))
    await leave(office, 0)
    before = await office.node("t", 0), await office.node("t", 1)
    assert await leave(office, 0) == []
    assert (await office.node("t", 0), await office.node("t", 1)) == before


@runs
async def test_who_was_stuck_may_leave_when_another_has_caught_up() -> None:
    """Meanwhile it leads on, and followers join it."""
    office = await Office().open(0, 1)
    await office.create("t", (0, 1))
    await grant(office, T0, 0)
    assert await leave(office, 0) == [T0]
    await grant(office, T0, 0, 1)
    assert await leave(office, 0) == []
    assert (await office.node("t")).leader == 1


@runs
async def test_who_leaves_is_not_elected() -> None:
    office = await Office().open(0, 1, 2)
    await office.create("t", (0, 1, 2))
    await leave(office, 1)
    await office.die(0)
    assert (await office.node("t")).leader == 2


@runs
async def test_who_is_back_after_a_shutdown_may_lead_again() -> None:
    office = await Office().open(0, 1)
    await office.create("t", (0, 1))
    await leave(office, 0)
    await office.die(0)
    await office.come(0)
    await grant(office, T0, 1, 0)
    await office.die(1)
    assert (await office.node("t")).leader == 0
    await office.check()


@runs
async def test_an_unknown_broker() -> None:
    office = await Office().open(0)
    with pytest.raises(RequestError, match="7") as refusal:
        await office.term.controlled_shutdown(7, -1)
    assert refusal.value.code is ErrorCode.BROKER_NOT_AVAILABLE

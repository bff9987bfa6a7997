"""Which partitions the controller has to speak for."""

from __future__ import annotations

from tests.unit.controller.asking import runs
from tests.unit.controller.office import Office

from barnabas.broker.monitoring.leaderless import Leaderless, leaderless


@runs
async def test_those_whose_last_replica_left() -> None:
    office = await Office().open(0, 1)
    await office.create("t", (0, 1), (0,))
    assert leaderless(office.knowledge) == []
    await office.die(0)
    assert leaderless(office.knowledge) == [Leaderless("t", 1, 1, 1)]
    await office.die(1)
    assert leaderless(office.knowledge) == [Leaderless("t", 0, 2, 1), Leaderless("t", 1, 1, 1)]


@runs
async def test_those_that_never_had_one() -> None:
    office = await Office().open(0)
    await office.create("t", (5, 6))
    assert leaderless(office.knowledge) == [Leaderless("t", 0, 2, 0)]


@runs
async def test_not_those_that_are_being_deleted() -> None:
    office = await Office().open(0, 1)
    await office.create("t", (1,))
    await office.die(1)
    await office.delete("t")
    assert leaderless(office.knowledge) == []

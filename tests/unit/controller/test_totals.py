"""What the controller's gauges say of a cluster."""

from __future__ import annotations

import asyncio

import pytest
from tests.unit.controller.asking import runs
from tests.unit.controller.office import Office
from tests.unit.generators import returned

from barnabas.controller import totals
from barnabas.controller.totals import ClusterTotals, count_cluster


def counted(office: Office) -> ClusterTotals:
    return returned(count_cluster(office.knowledge))


@runs
async def test_brokers_that_leave_take_leaders_away() -> None:
    office = await Office().open(0, 1)
    await office.create("t", (0, 1), (1, 0), (0,))
    whole = ClusterTotals(topics=1, partitions=3, brokers=2)
    assert counted(office) == whole
    await office.die(0)
    assert counted(office) == whole._replace(
        brokers=1,
        offline=1,  # the one that was on broker 0 only
        not_preferred=2,
    )
    await office.come(0)
    assert counted(office) == whole._replace(not_preferred=1)


@runs
async def test_a_deletion_that_waits_is_seen_until_it_is_done() -> None:
    office = await Office().open(0, 1)
    await office.create("t", (0, 1), (1, 0))
    await office.create("kept", (0, 1))
    await office.die(1)
    await office.delete("t")
    waiting = counted(office)
    assert (waiting.topics, waiting.partitions) == (2, 3)
    assert (waiting.topics_to_delete, waiting.replicas_to_delete) == (1, 4)
    assert (waiting.topics_ineligible, waiting.replicas_ineligible) == (1, 0)
    await office.come(1)
    assert counted(office) == ClusterTotals(topics=1, partitions=1, brokers=2)


@runs
async def test_replicas_that_could_not_be_deleted_are_seen() -> None:
    office = await Office().open(0, 1)
    await office.create("t", (0, 1))
    office.brokers[1].refuses_deletion = True
    await office.delete("t")
    found = counted(office)
    assert (found.topics_to_delete, found.replicas_to_delete) == (1, 1)
    assert (found.topics_ineligible, found.replicas_ineligible) == (1, 1)


def test_many_partitions_are_counted_in_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(totals, "RUN", 2)

    async def story() -> None:
        office = await Office().open(0, 1)
        await office.create("t", *[(0, 1)] * 5)
        counting = count_cluster(office.knowledge)
        next(counting)
        await office.delete("t")  # while it counts
        assert len(list(counting)) >= 1
        assert counted(office) == ClusterTotals(brokers=2)

    asyncio.run(story())

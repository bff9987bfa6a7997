"""Elections and ISR changes are counted once each, by cause."""

from __future__ import annotations

from tests.unit.controller.asking import T0, runs
from tests.unit.controller.office import Office

from barnabas.controller.causes import Cause
from barnabas.controller.counts import ControllerCounts
from barnabas.controller.leadership import Leadership
from barnabas.metrics.catalogue.controller import ELECTIONS, UNCLEAN_ELECTIONS
from barnabas.metrics.catalogue.replication import ISR_CHANGES
from barnabas.metrics.registry import Registry

HELD = Leadership(1, 4, (1, 2, 3), 7)


def counted(registry: Registry) -> dict[tuple[str, ...], float]:
    """Return all counters by the values of their labels; `unclean` without any."""
    return {
        values or ("unclean",): instrument.value
        for _, family in registry.families()
        for values, instrument in family
        if instrument.value
    }


def led(
    former: Leadership | None, present: Leadership, cause: Cause
) -> dict[tuple[str, ...], float]:
    registry = Registry()
    ControllerCounts(registry).led(former, present, cause)
    return counted(registry)


def test_a_first_leader_is_an_election_and_no_change() -> None:
    assert led(None, Leadership(1, 0, (1, 2), 0), Cause.FIRST) == {("first",): 1}


def test_a_leader_that_is_replaced_leaves_the_isr_too() -> None:
    assert led(HELD, HELD.led_by(2, (2, 3)), Cause.BROKER_GONE) == {
        ("broker-gone",): 1,
        ("shrink", "broker-gone"): 1,
    }


def test_a_follower_that_leaves_is_no_election() -> None:
    present = HELD.led_by(1, (1, 2))
    assert led(HELD, present, Cause.CONTROLLED_SHUTDOWN) == {("shrink", "controlled-shutdown"): 1}


def test_a_partition_without_a_leader_is_no_election() -> None:
    assert led(HELD, HELD.led_by(-1, (1, 2, 3)), Cause.BROKER_GONE) == {}


def test_a_leader_that_was_not_in_sync_is_unclean_whatever_the_cause() -> None:
    last = Leadership(-1, 4, (1,), 7)
    registry = Registry()
    ControllerCounts(registry).led(last, last.led_by(2, (2,)), Cause.BROKER_GONE)
    assert registry.value(UNCLEAN_ELECTIONS) == 1
    assert registry.value(ELECTIONS, "unclean") == 1


@runs
async def test_a_term_gives_each_decision_its_cause() -> None:
    office = await Office().open(0, 1, 2)
    registry = Registry()
    office.term._partitions._counts = ControllerCounts(registry)
    await office.create("t", (0, 1, 2))
    assert registry.value(ELECTIONS, "first") == 1
    await office.term.controlled_shutdown(0, -1)
    office.deliver()
    await office.settle()
    assert registry.value(ELECTIONS, "controlled-shutdown") == 1
    assert registry.value(ISR_CHANGES, "shrink", "controlled-shutdown") == 1
    await office.die(0)
    await office.die(1)
    assert office.knowledge.leaderships[T0].leader == 2
    assert registry.value(ELECTIONS, "broker-gone") == 1
    await office.die(2)
    assert registry.value(ELECTIONS, "broker-gone") == 1
    office.unclean.add("t")
    await office.come(1)
    assert office.knowledge.leaderships[T0].leader == 1
    assert registry.value(ELECTIONS, "unclean") == 1
    assert registry.value(UNCLEAN_ELECTIONS) == 1

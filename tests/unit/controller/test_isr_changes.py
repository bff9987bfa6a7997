"""AlterPartition: which rule speaks first, and what another's write does to a wish."""

from __future__ import annotations

import pytest
from tests.unit.controller.asking import T0, grant, runs, wish
from tests.unit.controller.office import Office

from barnabas.controller.isr_changes import Wish
from barnabas.metadata import tree_schema as nodes
from barnabas.model.error_codes import ErrorCode


async def answer(office: Office, asked: Wish, by: int = 0, **how: bool) -> ErrorCode:
    answers = await office.term.alter_partitions(by, -1, [asked], **how)
    assert isinstance(answers, dict)
    return answers[asked.key].error


@runs
async def test_a_granted_wish_is_of_the_same_leader_epoch() -> None:
    """Only the version of the node grows, and that is the partition's epoch."""
    office = await Office().open(0, 1, 2)
    await office.create("t", (0, 1, 2))
    before = office.knowledge.leaderships[T0]
    office.letters.clear()
    await grant(office, T0, 0, 2)
    after = office.knowledge.leaderships[T0]
    assert after == before._replace(isr=(0, 2), partition_epoch=before.partition_epoch + 1)
    _, stat = await office.tree.get(nodes.state_path("t", 0))
    assert stat.version == after.partition_epoch
    assert (await office.node("t")).controller_epoch == office.epoch
    kinds = {type(letter.request).__name__ for letter in office.letters}
    assert kinds == {"UpdateMetadataRequest"}, "the leader hears it as its answer"
    assert all(broker.metadata[T0].isr == [0, 2] for broker in office.brokers.values())


@runs
async def test_who_is_fenced_hears_that_first() -> None:
    """Then that its picture is old, then that what it asks for is wrong."""
    office = await Office().open(0, 1, 2)
    await office.create("t", (0, 1))
    await grant(office, T0, 0)
    await office.die(1)
    wrong = wish(office, T0, 0, 1, 9, partition_epoch=0)
    fenced = wrong._replace(leader_epoch=-1)
    assert await answer(office, fenced) is ErrorCode.FENCED_LEADER_EPOCH
    assert await answer(office, wrong) is ErrorCode.INVALID_UPDATE_VERSION
    assert await answer(office, wish(office, T0, 0, 1, 9)) is ErrorCode.INVALID_REQUEST
    assert await answer(office, wish(office, T0, 0, 1)) is ErrorCode.INELIGIBLE_REPLICA


@runs
async def test_older_versions_have_another_word_for_who_may_not_join() -> None:
    office = await Office().open(0, 1)
    await office.create("t", (0, 1))
    await grant(office, T0, 0)
    await office.die(1)
    code = await answer(office, wish(office, T0, 0, 1), names_old_error=True)
    assert code is ErrorCode.OPERATION_NOT_ATTEMPTED


@runs
async def test_who_shuts_down_does_not_join_again() -> None:
    office = await Office().open(0, 1)
    await office.create("t", (0, 1))
    await office.term.controlled_shutdown(1, -1)
    office.deliver()
    assert await answer(office, wish(office, T0, 0, 1)) is ErrorCode.INELIGIBLE_REPLICA


@pytest.mark.parametrize(
    ("isr", "recovering", "code"),
    [
        ((2,), True, ErrorCode.NONE),
        ((2, 1), True, ErrorCode.INVALID_REQUEST),
        ((2, 1), False, ErrorCode.NONE),
        ((2,), False, ErrorCode.NONE),
    ],
)
def test_a_leader_that_recovers_is_alone(
    isr: tuple[int, ...], recovering: bool, code: ErrorCode
) -> None:
    @runs
    async def story() -> None:
        office = await Office().open(0, 1, 2)
        office.unclean.add("t")
        await office.create("t", (1, 2))
        await office.die(2)
        await office.die(1)
        await office.come(2)
        await office.come(1)
        assert (await office.node("t")).recovering
        assert await answer(office, wish(office, T0, *isr, recovering=recovering), by=2) is code
        if code is ErrorCode.NONE:
            assert (await office.node("t")).recovering is recovering

    story()


@runs
async def test_a_node_that_another_has_written_is_read_again() -> None:
    """As brokers before 2.7 did by themselves: the wish was made without that knowledge."""
    office = await Office().open(0, 1, 2)
    await office.create("t", (0, 1, 2))
    path = nodes.state_path("t", 0)
    theirs = nodes.PartitionState(0, 0, (0, 1), office.epoch)
    await office.tree.set(path, theirs.encode())
    assert await answer(office, wish(office, T0, 0, 2)) is ErrorCode.INVALID_UPDATE_VERSION
    assert office.knowledge.leaderships[T0].isr == (0, 1)
    assert await answer(office, wish(office, T0, 0)) is ErrorCode.NONE


@runs
async def test_notices_of_brokers_that_write_by_themselves() -> None:
    """The node is read anew and everyone is told; the notice goes."""
    office = await Office().open(0, 1, 2)
    await office.create("t", (0, 1, 2))
    theirs = nodes.PartitionState(0, 0, (0, 1), office.epoch)
    await office.tree.set(nodes.state_path("t", 0), theirs.encode())
    listed = {"version": 1, "partitions": [{"topic": t, "partition": 0} for t in ("t", "none")]}
    for data in (nodes.compact(listed), b"no json"):
        await office.tree.create(f"{nodes.ISR_CHANGES}/isr_change_", data, sequence=True)
    await office.settle()
    assert office.knowledge.leaderships[T0].isr == (0, 1)
    assert all(broker.metadata[T0].isr == [0, 1] for broker in office.brokers.values())
    assert await office.tree.children(nodes.ISR_CHANGES) == []


@runs
async def test_an_unknown_broker_asks_for_nothing() -> None:
    office = await Office().open(0, 1)
    await office.create("t", (0, 1))
    epoch = office.knowledge.brokers[0].epoch
    alter = office.term.alter_partitions
    assert await alter(7, -1, [wish(office, T0, 0)]) is ErrorCode.STALE_BROKER_EPOCH
    assert await alter(0, epoch - 1, [wish(office, T0, 0)]) is ErrorCode.STALE_BROKER_EPOCH
    answers = await alter(0, epoch, [wish(office, T0, 0)])
    assert isinstance(answers, dict)
    assert answers[T0].error is ErrorCode.NONE

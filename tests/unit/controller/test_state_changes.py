"""Why leaders were elected and ISRs changed, as the controller notes it."""

from __future__ import annotations

from tests.unit.controller.asking import T0, grant, runs
from tests.unit.controller.office import Office
from tests.unit.controller.test_shutdown import leave

from barnabas.model.error_codes import ErrorCode
from barnabas.model.note import Note


def taken(office: Office) -> list[Note]:
    notes = list(office.notes)
    office.notes.clear()
    return notes


def causes(notes: list[Note]) -> list[tuple[str, str, str]]:
    return [(note.event, note.subject, note.cause) for note in notes]


async def opened(*replicas: int) -> Office:
    office = await Office().open(*sorted(replicas))
    await office.create("t", replicas)
    office.notes.clear()
    return office


@runs
async def test_a_new_partition() -> None:
    office = await Office().open(0, 1)
    await office.create("t", (1, 0))
    [note] = taken(office)
    assert causes([note]) == [("leader.elected", "t-0", "first")]
    assert note.data["leader"] == 1
    assert note.data["previous"] == -1
    assert note.data["isr"] == [1, 0]
    assert note.data["from_state"] == "NewPartition"
    assert note.data["controller_epoch"] == 1


@runs
async def test_a_dead_leader() -> None:
    office = await opened(0, 1, 2)
    await office.die(0)
    elected, *shrinks = taken(office)
    assert causes([elected]) == [("leader.elected", "t-0", "broker-gone")]
    assert (elected.data["leader"], elected.data["previous"]) == (1, 0)
    assert elected.data["leader_epoch"] == 1
    assert elected.data["isr_before"] == [0, 1, 2]
    assert elected.data["from_state"] == "OfflinePartition"
    assert causes(shrinks) == [("isr.shrink", "t-0", "broker-gone")]
    assert shrinks[0].data["removed"] == [0]


@runs
async def test_a_dead_follower() -> None:
    office = await opened(0, 1, 2)
    await office.die(2)
    [note] = taken(office)
    assert causes([note]) == [("isr.shrink", "t-0", "broker-gone")]
    assert (note.data["from"], note.data["to"]) == ([0, 1, 2], [0, 1])


@runs
async def test_no_replica_in_sync_is_left_and_one_comes_back() -> None:
    office = await opened(1, 2)
    await grant(office, T0, 1)
    office.notes.clear()
    await office.die(1)
    offline = [note for note in taken(office) if note.event == "partition.offline"]
    assert causes(offline) == [("partition.offline", "t-0", "broker-gone")]
    assert offline[0].data["isr"] == [1]
    assert offline[0].data["dead"] == [1]
    assert offline[0].data["replicas"] == [1, 2]
    await office.come(0)
    assert "partition.offline" not in [note.event for note in taken(office)], "noted once"
    await office.come(1)
    elected = [note for note in taken(office) if note.event == "leader.elected"]
    assert [note.cause for note in elected] == ["replica-back"]


@runs
async def test_an_unclean_election() -> None:
    office = await Office().open(0, 1, 2)
    office.unclean.add("t")
    await office.create("t", (1, 2))
    await grant(office, T0, 1)
    office.notes.clear()
    await office.die(1)
    elected = [note for note in taken(office) if note.event == "leader.elected"]
    assert [note.cause for note in elected] == ["unclean"]
    assert (elected[0].data["leader"], elected[0].data["isr_before"]) == (2, [1])


@runs
async def test_a_broker_that_shuts_down() -> None:
    office = await opened(0, 1, 2)
    assert await leave(office, 0) == []
    assert causes(taken(office)) == [
        ("leader.elected", "t-0", "controlled-shutdown"),
        ("isr.shrink", "t-0", "controlled-shutdown"),
    ]


@runs
async def test_the_preferred_replica() -> None:
    office = await opened(0, 1)
    await office.die(0)
    await office.come(0)
    await grant(office, T0, 1, 0)
    office.notes.clear()
    await office.term.balance.elect_preferred([T0])
    office.deliver()
    await office.settle()
    [note] = taken(office)
    assert causes([note]) == [("leader.elected", "t-0", "preferred")]
    assert (note.data["leader"], note.data["previous"]) == (0, 1)


@runs
async def test_a_reassignment() -> None:
    office = await opened(0, 1)
    await office.register(2)
    await office.settle()
    await office.term.reassignment.begin(T0, (2, 1))
    office.deliver()
    await office.settle()
    await grant(office, T0, 0, 1, 2)
    await office.settle()
    noted = causes(taken(office))
    assert ("leader.elected", "t-0", "reassignment") in noted
    assert ("isr.shrink", "t-0", "reassigned") in noted


@runs
async def test_a_failed_disk() -> None:
    office = await opened(0, 1)
    office.brokers[0].failed_disk.add(T0)
    await office.term.roles_answered(0, {T0: ErrorCode.KAFKA_STORAGE_ERROR})
    office.deliver()
    await office.settle()
    noted = causes(taken(office))
    assert noted[0] == ("leader.elected", "t-0", "directory-failed")
    assert ("isr.shrink", "t-0", "directory-failed") in noted


@runs
async def test_a_restart_that_no_controller_saw() -> None:
    office = await opened(0, 1)
    session = office.brokers.pop(0).session
    office.epoch = -1  # nobody is in office
    await session.close()
    await office.register(0)
    await office.take_office(1)
    noted = causes(taken(office))
    assert ("leader.elected", "t-0", "restarted") in noted
    assert ("isr.shrink", "t-0", "restarted") in noted

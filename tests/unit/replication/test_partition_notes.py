"""What a leader notes of a change of its ISR: who is how far behind."""

from __future__ import annotations

from collections.abc import Callable

from tests.unit.replication.test_partition_leader import LAG_MS, World, append, fetch, make, world

from barnabas.replication.partition import Partition

__all__ = ["make", "world"]


def test_a_follower_that_lags(make: Callable[..., Partition], world: World) -> None:
    partition = make()
    append(partition, 3)
    fetch(partition, 1, 3)
    fetch(partition, 2, 1)
    world.now_ms += LAG_MS + 1
    fetch(partition, 1, 3)
    proposal = partition.propose_shrink()
    assert proposal is not None
    note = partition.explained(proposal)
    assert (note.event, note.subject, note.cause) == ("isr.shrink", "t-0", "lag-time")
    assert (note.data["from"], note.data["to"]) == ([0, 1, 2], [0, 1])
    assert (note.data["high_watermark"], note.data["end_offset"]) == (1, 3)
    assert note.data["lag_ms_max"] == LAG_MS
    [replica] = note.data["replicas"]
    assert replica == {
        "id": 2,
        "end_offset": 1,
        "behind": 2,
        "caught_up_ms_ago": LAG_MS + 1,
        "alive": True,
    }


def test_a_follower_that_joins(make: Callable[..., Partition]) -> None:
    partition = make(isr=(0, 1))
    append(partition, 2)
    fetch(partition, 1, 2)
    fetch(partition, 2, 2)
    proposal = partition.propose_expansion(2)
    assert proposal is not None
    note = partition.explained(proposal)
    assert (note.event, note.cause) == ("isr.expand", "caught-up")
    assert (note.data["from"], note.data["to"]) == ([0, 1], [0, 1, 2])
    assert [replica["id"] for replica in note.data["replicas"]] == [2]

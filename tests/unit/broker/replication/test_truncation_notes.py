"""A follower that truncates its log notes from where to where, and why."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.unit.replication.test_partition_leader import World, append, make, world

from barnabas.broker.replication.fetcher import Fetcher
from barnabas.replication.follower_fetch import Action, Step
from barnabas.replication.partition import Partition

__all__ = ["World", "make", "world"]


@pytest.mark.parametrize(
    ("action", "offset", "cause"),
    [(Action.TRUNCATE, 2, "diverged"), (Action.RESTART, 9, "out-of-range")],
)
def test_each_truncation_has_its_cause(
    make: Callable[..., Partition], action: Action, offset: int, cause: str
) -> None:
    partition = make()
    for _ in range(5):
        append(partition)
    noted: list[tuple[str, Any, str, dict[str, Any]]] = []

    async def nothing(*_: object) -> None:
        """Wait for nobody."""

    context = SimpleNamespace(
        stop_compaction=nothing,
        write_checkpoints=nothing,
        now_ms=lambda: 1_000,
        note=lambda *given: noted.append(given),
    )
    follower = SimpleNamespace(
        _context=context, _source=1, _follows=lambda *_: True, resume=lambda key: None
    )
    asyncio.run(Fetcher._truncate(cast(Any, follower), partition, Step(action, offset=offset), 7))
    assert partition.log.log_end_offset == offset
    [(event, key, why, data)] = noted
    assert (event, key, why) == ("log.truncated", ("t", 0), cause)
    assert data == {"from": 5, "to": offset, "leader": 1, "leader_epoch": 7}

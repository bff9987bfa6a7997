"""Producer ids come one by one, each once, from as few blocks as can be."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.broker.coordinators.producer_ids import ProducerIds
from barnabas.coordination.contract import SessionExpired
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError


def test_ids_are_handed_out_once() -> None:
    async def story() -> None:
        blocks = iter([range(3), range(10, 13)])
        asked = 0

        async def allocate() -> range:
            nonlocal asked
            asked += 1
            await asyncio.sleep(0)  # others ask meanwhile
            return next(blocks)

        ids = ProducerIds(allocate)
        taken = await asyncio.gather(*(ids.next_id() for _ in range(6)))
        assert sorted(taken) == [0, 1, 2, 10, 11, 12]
        assert asked == 2

    asyncio.run(story())


def test_a_failure_is_not_remembered() -> None:
    async def story() -> None:
        outcomes = iter([OSError("no tree"), range(5, 6)])

        async def allocate() -> range:
            outcome = next(outcomes)
            if isinstance(outcome, OSError):
                raise outcome
            return outcome

        ids = ProducerIds(allocate)
        with pytest.raises(OSError, match="no tree"):
            await ids.next_id()
        assert await ids.next_id() == 5

    asyncio.run(story())


def test_a_broker_without_a_session_says_try_again() -> None:
    async def story() -> None:
        async def allocate() -> range:
            raise SessionExpired(7)

        with pytest.raises(RequestError) as refused:
            await ProducerIds(allocate).next_id()
        assert refused.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert refused.value.code.retriable

    asyncio.run(story())

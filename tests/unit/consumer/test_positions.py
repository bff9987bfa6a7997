"""Looking for positions: what is refused for good is told once, and looked for again."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.unit.consumer.scripted import P, simulate

from barnabas.client.retry import Backoff
from barnabas.consumer.offsets import FoundOffset
from barnabas.consumer.position_events import PartitionFailed, PositionEvent, PositionFound
from barnabas.consumer.positions import Positions
from barnabas.consumer.reset import ResetPolicy
from barnabas.consumer.subscription import Subscription
from barnabas.errors import TopicAuthorizationFailedError
from barnabas.model.ids import TopicPartition


class Lookups:
    """Leaders that refuse to tell offsets until they are told otherwise."""

    denied = True

    def __init__(self) -> None:
        self.asked = 0

    async def list_offsets(
        self, timestamps: dict[TopicPartition, int]
    ) -> dict[TopicPartition, FoundOffset]:
        self.asked += bool(timestamps)
        if self.denied:
            raise TopicAuthorizationFailedError("not yours")
        return {place: FoundOffset(7, -1, 3) for place in timestamps}


def test_a_refusal_is_told_once_for_each_wish_of_the_user() -> None:
    """However often leaders are asked: nobody takes the news while the user does not poll."""

    async def story() -> None:
        subscription, lookups, news = Subscription(), Lookups(), list[PositionEvent]()
        loop = asyncio.get_running_loop()
        positions: Any = Positions(
            subscription,
            lookups,  # type: ignore[arg-type]
            deliver=news.append,
            schedule_fetch=lambda: loop.call_soon(positions.look),  # type: ignore[arg-type, return-value]
            backoff=Backoff(lambda: 0.5),
            wall_ms=lambda: 0.0,
        )
        subscription.assign([P])
        for wish in (1, 2):
            subscription.request_reset(P, ResetPolicy.EARLIEST)
            positions.look()
            await asyncio.sleep(20)
            assert [type(each) for each in news] == [PartitionFailed] * wish
        assert lookups.asked > 20
        lookups.denied = False
        await asyncio.sleep(5)
        found = news[-1]
        assert isinstance(found, PositionFound)
        assert (found.offset, found.leader_epoch) == (7, 3)
        found.apply(subscription)
        await positions.close()

    simulate(story())

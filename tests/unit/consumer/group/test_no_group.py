"""What a consumer without a group does."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.unit.consumer.group.scripted_group import ScriptedGroup, play

from barnabas.errors import IllegalStateError
from barnabas.model.group_metadata import ConsumerGroupMetadata
from barnabas.model.ids import TopicPartition
from barnabas.wire.messages.join_group import JoinGroupRequest

T0, T1, T2 = (TopicPartition("t", number) for number in range(3))


def test_without_a_group_everything_is_read_and_followed() -> None:
    """All partitions of the topics, as they come."""

    async def scenario(group: ScriptedGroup, member: Any) -> None:
        assert member.needs_poll
        assert await member.poll(1000)
        assert set(group.subscription.assigned) == {T0, T1}
        assert not member.needs_poll
        group.topics["t"] = 3
        await member._client.refresh(["t"])
        member.metadata_changed()
        assert await member.poll(1000)
        assert group.listener.calls == [("assigned", {T0, T1}), ("assigned", {T2})]
        assert group.sent(JoinGroupRequest) == []

    play(scenario, {"group.id": None})
    play(scenario, {"group.id": None}, subscribe={"pattern": "t"})


def test_without_a_group_nothing_is_committed() -> None:
    """The text names the option."""

    async def scenario(group: ScriptedGroup, member: Any) -> None:
        with pytest.raises(IllegalStateError, match=r"group\.id"):
            await member.commit({})
        with pytest.raises(IllegalStateError, match=r"group\.id"):
            member.commit_soon({})
        with pytest.raises(IllegalStateError, match=r"group\.id"):
            await member.committed([T0])
        assert member.group_metadata() == ConsumerGroupMetadata()
        await asyncio.sleep(0)

    play(scenario, {"group.id": None})

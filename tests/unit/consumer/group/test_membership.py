"""Which membership a consumer's options ask for, and what a consumer without a group does."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.unit.consumer.group.scripted_group import ScriptedGroup, play

from barnabas.client.cluster_client import ClusterClient
from barnabas.config.clients.consumer import ConsumerOptions
from barnabas.config.clients.options import parse_client_options
from barnabas.consumer.group.classic import ClassicMembership
from barnabas.consumer.group.consumer_protocol import ConsumerProtocolMembership
from barnabas.consumer.group.contract import ConsumerGroupMetadata, Membership
from barnabas.consumer.group.membership import membership
from barnabas.consumer.group.none import NoMembership
from barnabas.consumer.subscription import Subscription
from barnabas.errors import IllegalStateError
from barnabas.model.errors import ConfigError
from barnabas.model.ids import TopicPartition
from barnabas.wire.messages.join_group import JoinGroupRequest

T0, T1, T2 = (TopicPartition("t", number) for number in range(3))


def made(**options: object) -> Membership:
    given = parse_client_options(ConsumerOptions, {"bootstrap_servers": "b:9092", **options})
    return membership(ClusterClient("b:9092"), Subscription(), given, wake=lambda: None)


def test_the_options_choose() -> None:
    """No group, a classic one, or one of KIP-848."""
    assert isinstance(made(), NoMembership)
    assert isinstance(made(group_id="g"), ClassicMembership)
    assert isinstance(made(group_id="g", group_protocol="consumer"), ConsumerProtocolMembership)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"group_instance_id": "one"}, "group.id"),
        ({"group_id": "g", "group_remote_assignor": "uniform"}, "group.protocol=consumer"),
        ({"group_id": "g", "partition_assignment_strategy": "best"}, "best"),
        ({"group_id": "g", "heartbeat_interval_ms": 90_000}, "heartbeat.interval.ms=90000"),
    ],
)
def test_options_that_make_no_sense_together_are_refused(
    options: dict[str, object], told: str
) -> None:
    """Before anything is sent."""
    with pytest.raises(ConfigError) as failure:
        made(**options)
    assert told in str(failure.value)


def test_without_a_group_everything_is_read_and_followed() -> None:
    """All partitions of the topics, as they come."""

    async def scenario(group: ScriptedGroup, member: Any) -> None:
        assert member.needs_attention
        assert await member.ensure_active(1000)
        assert set(group.subscription.assigned) == {T0, T1}
        assert not member.needs_attention
        group.topics["t"] = 3
        await member._client.refresh(["t"])
        member.metadata_changed()
        assert await member.ensure_active(1000)
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

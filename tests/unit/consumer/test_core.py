"""Which kind of group member a consumer's options ask for."""

from __future__ import annotations

from random import Random

import pytest

from barnabas.client.cluster_client import ClusterClient
from barnabas.config.clients.consumer import ConsumerOptions
from barnabas.config.clients.options import parse_client_options
from barnabas.consumer.core import group_member
from barnabas.consumer.group.classic import ClassicMember
from barnabas.consumer.group.kip848 import Kip848Member
from barnabas.consumer.group.member import GroupMember
from barnabas.consumer.group.no_group import NoGroup
from barnabas.consumer.subscription import Subscription
from barnabas.model.errors import ConfigError


def made(**options: object) -> GroupMember | NoGroup:
    given = parse_client_options(ConsumerOptions, {"bootstrap_servers": "b:9092", **options})
    client = ClusterClient("b:9092")
    return group_member(client, Subscription(), given, wake=lambda: None, random=Random(1))


def test_the_options_choose() -> None:
    """No group, a classic one, or one of KIP-848."""
    assert isinstance(made(), NoGroup)
    assert isinstance(made(group_id="g"), ClassicMember)
    assert isinstance(made(group_id="g", group_protocol="consumer"), Kip848Member)


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

"""The settings of a member: taken from options, and refused by name."""

from __future__ import annotations

import pytest

from barnabas.config.clients.consumer import ConsumerOptions
from barnabas.config.clients.options import parse_client_options
from barnabas.consumer.group.settings import GroupSettings
from barnabas.model.errors import ConfigError


def test_settings_follow_the_options() -> None:
    """What the user set arrives, under the members' names."""
    options = parse_client_options(
        ConsumerOptions,
        {
            "bootstrap.servers": "b:9092",
            "group_id": "g",
            "group.instance.id": "one",
            "max_poll_interval_ms": 7000,
            "isolation_level": "read_committed",
            "enable_auto_commit": False,
            "client_rack": "r1",
        },
    )
    settings = GroupSettings.from_options(options)
    assert (settings.group_id, settings.instance_id, settings.rack_id) == ("g", "one", "r1")
    assert settings.rebalance_ms_max == 7000
    assert settings.require_stable
    assert settings.auto_commit_interval_ms is None


def test_a_heartbeat_must_fit_into_the_session() -> None:
    """The message names both options and their values."""
    with pytest.raises(ConfigError, match=r"heartbeat.interval.ms=50 .*session.timeout.ms=50"):
        GroupSettings("g", session_timeout_ms=50, heartbeat_interval_ms=50)


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "x" * 250, "é"])
def test_instance_ids_are_names(name: str) -> None:
    """As the broker would refuse them."""
    with pytest.raises(ConfigError, match=r"group\.instance\.id"):
        GroupSettings("g", instance_id=name)


def test_a_group_needs_a_name() -> None:
    """An empty one is refused before anything is sent."""
    with pytest.raises(ConfigError, match=r"group\.id"):
        GroupSettings("")

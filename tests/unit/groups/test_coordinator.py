"""The door of the coordinator: options, unknown keys, stray timers."""

from __future__ import annotations

import pytest
from tests.unit.groups.host import Host, commit, leave, stable

from barnabas.config.broker import BrokerOptions
from barnabas.groups.call import Call
from barnabas.groups.options import GroupOptions, MigrationPolicy
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import ConfigError
from barnabas.model.outcome import Outcome, StateRecord


@pytest.fixture
def host() -> Host:
    return Host()


def test_options_come_from_the_broker() -> None:
    broker = BrokerOptions.parse(
        {
            "log.dirs": "data",
            "group.max.size": "7",
            "offsets.retention.minutes": "3",
            "group.coordinator.rebalance.protocols": "classic",
            "group.consumer.migration.policy": "upgrade",
            "group.consumer.assignors": "org.apache.kafka.coordinator.group.assignor.RangeAssignor",
        }
    )
    options = GroupOptions.from_broker(broker)
    assert (options.size_max, options.offsets_retention_ms) == (7, 180_000)
    assert not options.consumer_protocol
    assert options.migration is MigrationPolicy.UPGRADE
    assert options.consumer_assignors == ("range",)
    defaults = GroupOptions.from_broker(BrokerOptions.parse({"log.dirs": "data"}))
    assert defaults == GroupOptions()


def test_unknown_assignors_are_refused_by_name() -> None:
    with pytest.raises(ConfigError, match=r"group\.consumer\.assignors=best"):
        Host(GroupOptions(consumer_assignors=("best",)))


def test_keys_of_newer_brokers_are_skipped(host: Host) -> None:
    host.coordinator.replaying.replay(StateRecord(b"\x00\x63newer", b"anything"))
    assert host.coordinator.groups == {}


def test_stray_timers_do_nothing(host: Host) -> None:
    stable(host)
    for key in (
        ("join", "x"),
        ("session", "g", "x"),
        ("join", "g"),
        ("sync", "g"),
        ("rebalance", "g", "x"),
    ):
        assert host.coordinator.on_timer(key, host.now_ms) == Outcome()


def test_loading_a_tombstone_keeps_offsets_without_their_group(host: Host) -> None:
    name = stable(host)
    host.ask(commit({("t", 0): 1}, name, 1, group_instance_id="i"))
    record = host.coordinator.groups["g"].tombstones()[0]
    fresh = host.replayed()
    fresh.replaying.replay(record)
    assert fresh.groups["g"].is_empty
    assert len(fresh.offsets.of("g")) == 1


def test_unloaded_coordinator_knows_nothing(host: Host) -> None:
    stable(host)
    assert host.coordinator.unload() == []
    assert host.coordinator.groups == {}
    outcome = host.coordinator.handle_leave(leave(("x", None)), Call("t", 5, host.now_ms))
    assert outcome.replies[0].response.members[0].error_code == ErrorCode.UNKNOWN_MEMBER_ID

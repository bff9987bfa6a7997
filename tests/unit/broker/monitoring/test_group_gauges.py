"""Groups by state and protocol, and what their coordinators count."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.broker.coordinated import COORDINATED, commit, find, join, join_request
from tests.unit.broker.monitoring.scraping import Series, scraped
from tests.unit.broker.serving import Serving, create_topic

from barnabas.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.wire.messages.delete_groups import DeleteGroupsRequest

TABLE = "kafka_coordinator_group_groupmetadatamanager_"
COORDINATOR = "kafka_server_group_coordinator_metrics_"


def scrape(serving: Serving) -> Series:
    return serving.inside(lambda: scraped(serving.broker.metrics))


def test_classic_groups_are_counted_by_state(tmp_path: Path) -> None:
    with Serving(tmp_path, COORDINATED) as serving:
        wire, other = serving.connect(), serving.connect()
        create_topic(wire, "t", 2)
        find(wire, "g")
        join(wire, "stable")
        commit(wire, "empty", {("t", 0): 1, ("t", 1): 2})
        joined = other.ask(join_request("completing"), 3)
        assert joined.error_code == 0
        found = scrape(serving)
        assert found[f"{TABLE}numgroups"] == 3
        assert found[f"{TABLE}numgroupsstable"] == 1
        assert found[f"{TABLE}numgroupsempty"] == 1
        assert found[f"{TABLE}numgroupscompletingrebalance"] == 1
        assert found[f"{TABLE}numgroupspreparingrebalance"] == 0
        assert found[f"{TABLE}numgroupsdead"] == 0
        assert found[f"{TABLE}numoffsets"] == 2
        assert found[f'{COORDINATOR}group_count{{protocol="classic"}}'] == 3
        assert found[f"{COORDINATOR}offset_commit_count"] == 2
        assert found[f"{COORDINATOR}offset_commit_rate"] == pytest.approx(2 / 30, rel=0.1)
        assert found[f"{COORDINATOR}group_completed_rebalance_count"] == 1
        assert found['barnabas_rebalance_seconds{protocol="classic"}'] == 1
        wire.ask(DeleteGroupsRequest(groups_names=["empty"]), 2)
        found = scrape(serving)
        assert found[f"{COORDINATOR}offset_deletion_count"] == 2
        assert found[f"{TABLE}numoffsets"] == 0


def test_consumer_groups_have_states_of_their_own(tmp_path: Path) -> None:
    with Serving(tmp_path, COORDINATED) as serving:
        wire = serving.connect()
        create_topic(wire, "t", 2)
        find(wire, "g")
        request = ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id="m",
            member_epoch=0,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=["t"],
            topic_partitions=[],
        )
        assert wire.ask(request, 0).error_code == 0
        found = scrape(serving)
        assert found[f'{COORDINATOR}group_count{{protocol="consumer"}}'] == 1
        assert found[f'{COORDINATOR}consumer_group_count{{state="stable"}}'] == 1
        assert found[f'{COORDINATOR}consumer_group_count{{state="empty"}}'] == 0
        assert found[f"{COORDINATOR}consumer_group_rebalance_count"] == 1
        assert found['barnabas_rebalance_seconds{protocol="consumer"}'] == 1
        assert found[f"{TABLE}numgroups"] == 1


def test_a_load_is_timed_and_does_not_count_as_rebalances(tmp_path: Path) -> None:
    with Serving(tmp_path, COORDINATED) as serving:
        wire = serving.connect()
        create_topic(wire, "t")
        find(wire, "g")
        join(wire, "g")
        commit(wire, "h", {("t", 0): 1})
    with Serving(tmp_path, COORDINATED) as serving:
        serving.wait_inside(
            lambda: not serving.broker.groups.is_loading, "the groups have been loaded"
        )
        serving.inside(
            lambda: serving.broker.groups.load_times.loaded(40, serving.broker.timer.now_ms())
        )
        found = scrape(serving)
        assert found[f"{COORDINATOR}partition_load_time_max"] >= 40
        assert 0 < found[f"{COORDINATOR}partition_load_time_avg"] <= 40
        assert found[f"{TABLE}numgroups"] == 2
        assert found[f"{COORDINATOR}offset_commit_count"] == 0
        assert found[f"{COORDINATOR}group_completed_rebalance_count"] == 0

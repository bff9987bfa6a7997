"""The closed lists: every cause has a sentence, and a test in which a broker really gives it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from barnabas.diary.catalogue import EVENTS
from barnabas.diary.sentences import _SENTENCES

ROOT = Path(__file__).parents[3]
ROUNDS = "tests/unit/groups/test_round.py"
CONTROLLER = "tests/unit/controller/test_state_changes.py"
WHY = "tests/unit/cli/test_why.py"
BROKER = "tests/unit/broker/diary/test_notes.py"
LOOP = "tests/unit/broker/monitoring/test_loop_monitor.py"

EXERCISED = {
    "group.rebalance": {
        "member-joined": f"{ROUNDS}::test_members_join",
        "member-left": f"{ROUNDS}::test_a_member_leaves_and_says_why",
        "member-rejoined": f"{ROUNDS}::test_the_leader_joins_again",
        "session-timeout": f"{ROUNDS}::test_a_silent_member_and_how_long_each_step_took",
        "rebalance-timeout": f"{ROUNDS}::test_members_that_do_not_rejoin_are_named",
        "poll-interval": f"{ROUNDS}::test_a_member_leaves_and_says_why",
        "subscription-changed": f"{ROUNDS}::test_a_changed_subscription",
        "topic-changed": f"{ROUNDS}::test_topics_grow_and_subscriptions_change",
        "protocol-changed": f"{ROUNDS}::test_changed_assignors",
        "static-replaced": f"{ROUNDS}::test_a_restarted_static_member_with_another_protocol",
        "coordinator-moved": f"{ROUNDS}::test_a_coordinator_that_allows_fewer_members",
        "migration": f"{ROUNDS}::test_a_group_changes_its_protocol",
        "admin-removed": f"{ROUNDS}::test_a_tool_removes_a_static_member_by_its_instance_id",
    },
    "group.stable": dict.fromkeys(
        EVENTS["group.stable"].causes,
        f"{ROUNDS}::test_a_silent_member_and_how_long_each_step_took",
    ),
    "group.empty": dict.fromkeys(
        EVENTS["group.empty"].causes, f"{ROUNDS}::test_the_last_member_leaves"
    ),
    "group.deleted": {
        "client": f"{ROUNDS}::test_a_group_is_deleted",
        "expired": f"{ROUNDS}::test_offsets_expire_and_groups_with_them",
    },
    "offsets.expired": {"retention": f"{ROUNDS}::test_offsets_expire_and_groups_with_them"},
    "offsets.reset": {
        "moved-back": f"{ROUNDS}::test_offsets_that_are_set_from_outside",
        "tool": f"{ROUNDS}::test_offsets_that_are_set_from_outside",
    },
    "isr.shrink": {
        "lag-time": "tests/unit/replication/test_partition_notes.py::test_a_follower_that_lags",
        "broker-gone": f"{CONTROLLER}::test_a_dead_follower",
        "restarted": f"{CONTROLLER}::test_a_restart_that_no_controller_saw",
        "directory-failed": f"{CONTROLLER}::test_a_failed_disk",
        "reassigned": f"{CONTROLLER}::test_a_reassignment",
        "controlled-shutdown": f"{CONTROLLER}::test_a_broker_that_shuts_down",
    },
    "isr.expand": {
        "caught-up": "tests/unit/replication/test_partition_notes.py::test_a_follower_that_joins"
    },
    "isr.refused": dict.fromkeys(
        EVENTS["isr.refused"].causes,
        "tests/unit/broker/replication/test_isr_proposals.py::test_each_refusal_has_its_cause",
    ),
    "leader.elected": {
        "first": f"{CONTROLLER}::test_a_new_partition",
        "broker-gone": f"{CONTROLLER}::test_a_dead_leader",
        "preferred": f"{CONTROLLER}::test_the_preferred_replica",
        "controlled-shutdown": f"{CONTROLLER}::test_a_broker_that_shuts_down",
        "reassignment": f"{CONTROLLER}::test_a_reassignment",
        "unclean": f"{CONTROLLER}::test_an_unclean_election",
        "directory-failed": f"{CONTROLLER}::test_a_failed_disk",
        "restarted": f"{CONTROLLER}::test_a_restart_that_no_controller_saw",
        "replica-back": f"{CONTROLLER}::test_no_replica_in_sync_is_left_and_one_comes_back",
    },
    "partition.offline": dict.fromkeys(
        EVENTS["partition.offline"].causes,
        f"{CONTROLLER}::test_no_replica_in_sync_is_left_and_one_comes_back",
    ),
    "role.leads": {"assigned": f"{BROKER}::test_roles_are_in_the_state_change_log"},
    "role.follows": {"assigned": f"{WHY}::test_a_leader_is_killed"},
    "role.stopped": {
        "assigned": f"{WHY}::test_a_leader_is_killed",
        "deleted": f"{BROKER}::test_roles_are_in_the_state_change_log",
    },
    "role.refused": dict.fromkeys(
        EVENTS["role.refused"].causes, f"{BROKER}::test_a_request_of_an_older_controller"
    ),
    "log.truncated": dict.fromkeys(
        EVENTS["log.truncated"].causes,
        "tests/unit/broker/replication/test_truncation_notes.py"
        "::test_each_truncation_has_its_cause",
    ),
    "throttle.begin": dict.fromkeys(
        EVENTS["throttle.begin"].causes, f"{BROKER}::test_a_quota_is_exceeded"
    ),
    "throttle.end": dict.fromkeys(
        EVENTS["throttle.end"].causes, f"{BROKER}::test_a_quota_is_exceeded"
    ),
    "reject.produce": dict.fromkeys(
        EVENTS["reject.produce"].causes, f"{BROKER}::test_records_are_rejected"
    ),
    "reject.authorization": {
        "denied": f"{BROKER}::test_a_client_is_denied",
        "no-rule": f"{BROKER}::test_a_client_is_denied",
    },
    "reject.connection": {
        **dict.fromkeys(
            EVENTS["reject.connection"].causes, f"{BROKER}::test_a_connection_is_rejected"
        ),
        "authentication": "tests/unit/broker/network/test_authentication.py"
        "::test_a_wrong_password_is_answered_and_closed_after_the_delay",
        "limit": f"{BROKER}::test_too_many_connections_and_idle_ones",
        "idle": f"{BROKER}::test_too_many_connections_and_idle_ones",
    },
    "log.recovered": {"unclean-shutdown": f"{BROKER}::test_a_crash_and_its_recovery"},
    "segment.deleted": {
        "time": f"{BROKER}::test_segments_are_deleted",
        "size": f"{BROKER}::test_segments_are_deleted",
        "start-offset": f"{BROKER}::test_segments_are_deleted",
    },
    "compaction.failed": dict.fromkeys(
        EVENTS["compaction.failed"].causes,
        "tests/unit/broker/storage/test_compaction_workers.py"
        "::test_a_log_that_cannot_be_compacted_is_left_alone_and_served",
    ),
    "directory.offline": {
        "disk-error": "tests/unit/broker/storage/test_log_failures.py::test_failed_directory"
    },
    "directory.full": {
        "no-room": "tests/unit/broker/test_full_leader.py"
        "::test_another_leads_and_the_full_one_comes_back"
    },
    "controller.elected": {"elected": f"{BROKER}::test_a_term"},
    "controller.resigned": dict.fromkeys(
        EVENTS["controller.resigned"].causes, f"{BROKER}::test_a_term"
    ),
    "session.lost": {"expired": f"{BROKER}::test_a_session_is_lost"},
    "session.back": {"renewed": f"{BROKER}::test_a_session_is_lost"},
    "loop.stall": {
        "request": f"{LOOP}::test_a_long_step_is_named",
        "task": f"{LOOP}::test_a_long_step_is_named",
        "garbage-collection": f"{LOOP}::test_a_long_step_is_named",
        "busy": f"{LOOP}::test_a_stall_without_a_long_step",
        "waiting": f"{BROKER}::test_the_loop_stands_still",
    },
    "transaction.aborted": {
        "timeout": "tests/unit/transactions/test_aborts.py::test_a_transaction_times_out",
        "fenced": "tests/unit/transactions/test_aborts.py::test_a_new_producer_fences_the_last",
        "client": "tests/unit/transactions/test_aborts.py::test_a_producer_aborts",
    },
    "config.changed": {"client": f"{BROKER}::test_what_clients_change"},
    "quota.changed": {"client": f"{BROKER}::test_what_clients_change"},
    "acl.changed": {"client": f"{BROKER}::test_a_client_is_denied"},
    "topic.created": {
        "client": f"{BROKER}::test_what_clients_change",
        "automatic": f"{BROKER}::test_what_clients_change",
        "internal": f"{BROKER}::test_what_clients_change",
    },
    "topic.deleted": {"client": f"{BROKER}::test_what_clients_change"},
}
"""Where each cause is exercised; several causes of one code path may share a test."""


def test_every_cause_is_exercised_somewhere() -> None:
    listed = {name: set(causes) for name, causes in EXERCISED.items()}
    assert listed == {name: set(event.causes) for name, event in EVENTS.items()}


@pytest.mark.parametrize(
    "place", sorted({place for causes in EXERCISED.values() for place in causes.values()})
)
def test_the_tests_exist(place: str) -> None:
    path, _, name = place.partition("::")
    tree = ast.parse((ROOT / path).read_text())
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    assert name in {node.name for node in ast.walk(tree) if isinstance(node, functions)}


def test_every_kept_event_has_a_sentence() -> None:
    assert set(_SENTENCES) == {name for name, event in EVENTS.items() if event.kept}


def test_names_are_spelled_alike() -> None:
    for name, event in EVENTS.items():
        assert name == event.name
        assert len(set(event.causes)) == len(event.causes)
        for text in (*name.split("."), *event.causes):
            assert text == text.lower()
            assert " " not in text

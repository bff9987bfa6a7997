"""What a member does about each error code of each answer."""

from __future__ import annotations

import pytest

from barnabas.consumer.group.error_actions import (
    COMMIT,
    CONSUMER_HEARTBEAT,
    FETCH,
    HEARTBEAT,
    JOIN,
    SYNC,
    ErrorAction,
    Table,
    action_for,
)
from barnabas.model.error_codes import ErrorCode

TABLES = [JOIN, SYNC, HEARTBEAT, COMMIT, FETCH, CONSUMER_HEARTBEAT]


@pytest.mark.parametrize("table", TABLES)
def test_success_needs_no_action_and_no_other_code_is_success(table: Table) -> None:
    """Every code of the protocol has an answer; only NONE is none."""
    assert action_for(table, ErrorCode.NONE) is ErrorAction.NONE
    for code in ErrorCode:
        if code is not ErrorCode.NONE:
            assert action_for(table, code) is not ErrorAction.NONE


@pytest.mark.parametrize("table", TABLES)
def test_a_moved_coordinator_is_looked_for(table: Table) -> None:
    """Asking the same broker again would not help."""
    assert action_for(table, ErrorCode.NOT_COORDINATOR) is ErrorAction.FIND
    assert action_for(table, ErrorCode.COORDINATOR_NOT_AVAILABLE) is ErrorAction.FIND


@pytest.mark.parametrize("table", TABLES)
def test_what_only_an_operator_mends_is_told_to_the_user(table: Table) -> None:
    """Authorization and a fenced instance id."""
    assert action_for(table, ErrorCode.GROUP_AUTHORIZATION_FAILED) is ErrorAction.FAIL
    assert action_for(table, ErrorCode.FENCED_INSTANCE_ID) is ErrorAction.FAIL


@pytest.mark.parametrize("table", [JOIN, SYNC, HEARTBEAT, COMMIT])
def test_a_member_that_is_not_known_joins_as_a_new_one(table: Table) -> None:
    """With an unknown id it loses its partitions, with an old generation it keeps its id."""
    assert action_for(table, ErrorCode.UNKNOWN_MEMBER_ID) is ErrorAction.FORGET
    assert action_for(table, ErrorCode.ILLEGAL_GENERATION) is ErrorAction.RESET


@pytest.mark.parametrize("table", [SYNC, HEARTBEAT, COMMIT])
def test_a_rebalance_means_to_join_again(table: Table) -> None:
    """Nothing is lost by it."""
    assert action_for(table, ErrorCode.REBALANCE_IN_PROGRESS) is ErrorAction.REJOIN


def test_codes_outside_the_tables_follow_their_nature() -> None:
    """Retriable ones are tried again, others raised."""
    assert action_for(HEARTBEAT, ErrorCode.REQUEST_TIMED_OUT) is ErrorAction.RETRY
    assert action_for(HEARTBEAT, ErrorCode.INVALID_REQUEST) is ErrorAction.FAIL


def test_only_a_join_can_be_told_an_id() -> None:
    """KIP-394."""
    assert action_for(JOIN, ErrorCode.MEMBER_ID_REQUIRED) is ErrorAction.TAKE_ID
    assert action_for(SYNC, ErrorCode.MEMBER_ID_REQUIRED) is ErrorAction.FAIL


def test_epochs_that_crossed_a_heartbeat_are_tried_again() -> None:
    """KIP-848: the next attempt shows the new epoch."""
    assert action_for(COMMIT, ErrorCode.STALE_MEMBER_EPOCH) is ErrorAction.RETRY
    assert action_for(FETCH, ErrorCode.STALE_MEMBER_EPOCH) is ErrorAction.RETRY
    assert action_for(FETCH, ErrorCode.UNSTABLE_OFFSET_COMMIT) is ErrorAction.RETRY
    assert action_for(CONSUMER_HEARTBEAT, ErrorCode.FENCED_MEMBER_EPOCH) is ErrorAction.RESET

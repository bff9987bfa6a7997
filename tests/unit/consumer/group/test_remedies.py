"""What a member does about each error code of each answer."""

from __future__ import annotations

import pytest

from barnabas.consumer.group.remedies import (
    COMMIT,
    CONSUMER_HEARTBEAT,
    FETCH,
    HEARTBEAT,
    JOIN,
    SYNC,
    Remedy,
    Table,
    remedy,
)
from barnabas.model.error_codes import ErrorCode

TABLES = [JOIN, SYNC, HEARTBEAT, COMMIT, FETCH, CONSUMER_HEARTBEAT]


@pytest.mark.parametrize("table", TABLES)
def test_success_needs_no_remedy_and_no_other_code_is_success(table: Table) -> None:
    """Every code of the protocol has an answer; only NONE is none."""
    assert remedy(table, ErrorCode.NONE) is Remedy.NONE
    for code in ErrorCode:
        if code is not ErrorCode.NONE:
            assert remedy(table, code) is not Remedy.NONE


@pytest.mark.parametrize("table", TABLES)
def test_a_moved_coordinator_is_looked_for(table: Table) -> None:
    """Asking the same broker again would not help."""
    assert remedy(table, ErrorCode.NOT_COORDINATOR) is Remedy.FIND
    assert remedy(table, ErrorCode.COORDINATOR_NOT_AVAILABLE) is Remedy.FIND


@pytest.mark.parametrize("table", TABLES)
def test_what_only_an_operator_mends_is_told_to_the_user(table: Table) -> None:
    """Authorization and a fenced instance id."""
    assert remedy(table, ErrorCode.GROUP_AUTHORIZATION_FAILED) is Remedy.FAIL
    assert remedy(table, ErrorCode.FENCED_INSTANCE_ID) is Remedy.FAIL


@pytest.mark.parametrize("table", [JOIN, SYNC, HEARTBEAT, COMMIT])
def test_a_member_that_is_not_known_joins_as_a_new_one(table: Table) -> None:
    """With an unknown id it loses its partitions, with an old generation it keeps its id."""
    assert remedy(table, ErrorCode.UNKNOWN_MEMBER_ID) is Remedy.FORGET
    assert remedy(table, ErrorCode.ILLEGAL_GENERATION) is Remedy.RESET


@pytest.mark.parametrize("table", [SYNC, HEARTBEAT, COMMIT])
def test_a_rebalance_means_to_join_again(table: Table) -> None:
    """Nothing is lost by it."""
    assert remedy(table, ErrorCode.REBALANCE_IN_PROGRESS) is Remedy.REJOIN


def test_codes_outside_the_tables_follow_their_nature() -> None:
    """Retriable ones are tried again, others raised."""
    assert remedy(HEARTBEAT, ErrorCode.REQUEST_TIMED_OUT) is Remedy.RETRY
    assert remedy(HEARTBEAT, ErrorCode.INVALID_REQUEST) is Remedy.FAIL


def test_only_a_join_can_be_told_an_id() -> None:
    """KIP-394."""
    assert remedy(JOIN, ErrorCode.MEMBER_ID_REQUIRED) is Remedy.TAKE_ID
    assert remedy(SYNC, ErrorCode.MEMBER_ID_REQUIRED) is Remedy.FAIL


def test_epochs_that_crossed_a_heartbeat_are_tried_again() -> None:
    """KIP-848: the next attempt shows the new epoch."""
    assert remedy(COMMIT, ErrorCode.STALE_MEMBER_EPOCH) is Remedy.RETRY
    assert remedy(FETCH, ErrorCode.STALE_MEMBER_EPOCH) is Remedy.RETRY
    assert remedy(FETCH, ErrorCode.UNSTABLE_OFFSET_COMMIT) is Remedy.RETRY
    assert remedy(CONSUMER_HEARTBEAT, ErrorCode.FENCED_MEMBER_EPOCH) is Remedy.RESET

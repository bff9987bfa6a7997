"""The classic protocol, request by request and state by state."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.groups.host import Host, commit, commit_codes, heartbeat, join, leave, protocols
from tests.unit.groups.host import sync as sync_request

from barnabas.groups.classic_group import NEXT, State
from barnabas.groups.options import GroupOptions
from barnabas.model.error_codes import ErrorCode
from barnabas.wire.messages.leave_group import LeaveGroupRequest

DELAY_MS = 3_000


def enter(host: Host, **values: Any) -> tuple[str, int]:
    """Take the two steps of a dynamic member; return its id and the token of its waiting join."""
    refused = host.ask(join(**values))
    assert refused.error_code == ErrorCode.MEMBER_ID_REQUIRED
    return refused.member_id, host.send(join(refused.member_id, **values))


def stable(host: Host, size: int = 2, **values: Any) -> list[str]:
    """Bring a group of dynamic members to Stable in generation 1; the first one leads."""
    entered = [enter(host, **values) for _ in range(size)]
    host.advance(2 * DELAY_MS)
    generation = host.coordinator.groups["g"].generation
    ids = [member_id for member_id, _ in entered]
    settle(host, ids, generation)
    return ids


def settle(host: Host, ids: list[str], generation: int) -> None:
    """Let all members sync, the leader with the assignment "for-<member>"."""
    group = host.coordinator.groups["g"]
    for name in ids:
        assignments = {n: f"for-{n}".encode() for n in ids} if name == group.leader else {}
        host.send(sync_request(name, generation, assignments))
    assert group.state is State.STABLE


def preparing(host: Host) -> list[str]:
    ids = stable(host)
    host.send(join(ids[0]))
    return ids


def completing(host: Host) -> list[str]:
    ids = stable(host)
    host.send(join(ids[0]))
    host.send(join(ids[1]))
    assert host.coordinator.groups["g"].state is State.COMPLETING
    return ids


def empty(host: Host) -> list[str]:
    ids = stable(host)
    host.send(leave(*((name, None) for name in ids)))
    assert host.coordinator.groups["g"].state is State.EMPTY
    return ids


STATES = {
    State.EMPTY: empty,
    State.PREPARING: preparing,
    State.COMPLETING: completing,
    State.STABLE: stable,
}


@pytest.fixture
def host() -> Host:
    return Host()


# -- the table: each state's answer to each request of a member of its generation


@pytest.mark.parametrize(
    ("state", "answer"),
    [
        (State.EMPTY, ErrorCode.UNKNOWN_MEMBER_ID),
        (State.PREPARING, ErrorCode.REBALANCE_IN_PROGRESS),
        (State.COMPLETING, ErrorCode.NONE),
        (State.STABLE, ErrorCode.NONE),
    ],
)
def test_heartbeat_in_each_state(host: Host, state: State, answer: ErrorCode) -> None:
    ids = STATES[state](host)
    generation = host.coordinator.groups["g"].generation
    assert host.ask(heartbeat(ids[1], generation)).error_code == answer


@pytest.mark.parametrize(
    ("state", "answer"),
    [
        (State.EMPTY, ErrorCode.UNKNOWN_MEMBER_ID),
        (State.PREPARING, ErrorCode.REBALANCE_IN_PROGRESS),
        (State.COMPLETING, None),
        (State.STABLE, ErrorCode.NONE),
    ],
)
def test_sync_of_a_follower_in_each_state(
    host: Host, state: State, answer: ErrorCode | None
) -> None:
    ids = STATES[state](host)
    token = host.send(sync_request(ids[1], host.coordinator.groups["g"].generation))
    if answer is None:
        assert token not in host.answers
    else:
        assert host.answers[token].error_code == answer


@pytest.mark.parametrize(
    ("state", "answer", "after"),
    [
        (State.EMPTY, ErrorCode.UNKNOWN_MEMBER_ID, State.EMPTY),
        (State.PREPARING, ErrorCode.NONE, State.COMPLETING),
        (State.COMPLETING, ErrorCode.NONE, State.COMPLETING),
        (State.STABLE, ErrorCode.NONE, State.STABLE),
    ],
)
def test_unchanged_join_of_a_follower_in_each_state(
    host: Host, state: State, answer: ErrorCode, after: State
) -> None:
    ids = STATES[state](host)
    response = host.ask(join(ids[1]))
    assert response.error_code == answer
    assert response.members == []
    assert host.coordinator.groups["g"].state is after


@pytest.mark.parametrize("state", [State.COMPLETING, State.STABLE])
def test_changed_join_begins_a_round(host: Host, state: State) -> None:
    ids = STATES[state](host)
    token = host.send(join(ids[1], protocols=protocols("range", metadata=b"new")))
    assert token not in host.answers
    assert host.coordinator.groups["g"].state is State.PREPARING


@pytest.mark.parametrize(
    ("state", "is_answered"), [(State.PREPARING, False), (State.COMPLETING, True)]
)
def test_unchanged_join_of_the_leader(host: Host, state: State, is_answered: bool) -> None:
    ids = STATES[state](host)
    token = host.send(join(ids[0]))
    assert (token in host.answers) is is_answered
    if is_answered:
        assert {member.member_id for member in host.answers[token].members} == set(ids)


def test_join_of_a_stable_leader_begins_a_round(host: Host) -> None:
    ids = stable(host)
    assert host.send(join(ids[0])) not in host.answers
    assert host.coordinator.groups["g"].state is State.PREPARING


@pytest.mark.parametrize(
    ("state", "answer"),
    [
        (State.EMPTY, ErrorCode.UNKNOWN_MEMBER_ID),
        (State.PREPARING, ErrorCode.NONE),
        (State.COMPLETING, ErrorCode.REBALANCE_IN_PROGRESS),
        (State.STABLE, ErrorCode.NONE),
    ],
)
def test_commit_of_a_member_in_each_state(host: Host, state: State, answer: ErrorCode) -> None:
    ids = STATES[state](host)
    generation = host.coordinator.groups["g"].generation
    response = host.ask(commit({("t", 0): 5}, ids[1], generation))
    assert commit_codes(response) == [answer]


@pytest.mark.parametrize(
    ("state", "answer"),
    [
        (State.EMPTY, ErrorCode.NONE),
        (State.PREPARING, ErrorCode.UNKNOWN_MEMBER_ID),
        (State.COMPLETING, ErrorCode.UNKNOWN_MEMBER_ID),
        (State.STABLE, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_commit_of_nobody_in_each_state(host: Host, state: State, answer: ErrorCode) -> None:
    STATES[state](host)
    assert commit_codes(host.ask(commit({("t", 0): 5}))) == [answer]


@pytest.mark.parametrize(
    ("state", "after"),
    [
        (State.PREPARING, State.COMPLETING),
        (State.COMPLETING, State.PREPARING),
        (State.STABLE, State.PREPARING),
    ],
)
def test_leave_in_each_state(host: Host, state: State, after: State) -> None:
    ids = STATES[state](host)
    response = host.ask(leave((ids[1], None)))
    assert [member.error_code for member in response.members] == [ErrorCode.NONE]
    assert host.coordinator.groups["g"].state is after


@pytest.mark.parametrize(
    ("state", "answer"),
    [
        (State.EMPTY, ErrorCode.NONE),
        (State.PREPARING, ErrorCode.NON_EMPTY_GROUP),
        (State.COMPLETING, ErrorCode.NON_EMPTY_GROUP),
        (State.STABLE, ErrorCode.NON_EMPTY_GROUP),
    ],
)
def test_delete_in_each_state(host: Host, state: State, answer: ErrorCode) -> None:
    STATES[state](host)
    assert host.delete("g") == answer
    assert ("g" in host.coordinator.groups) is (answer is not ErrorCode.NONE)


@pytest.mark.parametrize("state", list(STATES))
def test_requests_of_strangers_in_each_state(host: Host, state: State) -> None:
    STATES[state](host)
    generation = host.coordinator.groups["g"].generation
    unknown = ErrorCode.UNKNOWN_MEMBER_ID
    assert host.ask(join("x")).error_code == unknown
    assert host.ask(sync_request("x", generation)).error_code == unknown
    assert host.ask(heartbeat("x", generation)).error_code == unknown
    assert host.ask(leave(("x", None))).members[0].error_code == unknown
    assert commit_codes(host.ask(commit({("t", 0): 1}, "x", generation))) == [unknown]


def test_requests_to_a_group_that_does_not_exist(host: Host) -> None:
    unknown = ErrorCode.UNKNOWN_MEMBER_ID
    assert host.ask(join("x")).error_code == unknown
    assert host.ask(sync_request("x", 1)).error_code == unknown
    assert host.ask(heartbeat("x", 1)).error_code == unknown
    assert host.ask(leave(("x", None))).members[0].error_code == unknown
    assert host.ask(LeaveGroupRequest(group_id="g", member_id="x"), 2).error_code == unknown
    illegal = ErrorCode.ILLEGAL_GENERATION
    assert commit_codes(host.ask(commit({("t", 0): 1}, "x", 1))) == [illegal]
    assert host.delete("g") == ErrorCode.GROUP_ID_NOT_FOUND
    assert host.coordinator.groups == {}


def test_a_group_needs_a_name(host: Host) -> None:
    invalid = ErrorCode.INVALID_GROUP_ID
    assert host.ask(join(group_id="")).error_code == invalid
    for request in (sync_request("x", 1), heartbeat("x", 1), leave(("x", None))):
        request.group_id = ""
        assert host.ask(request).error_code == invalid


def test_the_table_of_states_leads_everywhere_and_ends_in_dead() -> None:
    assert set(NEXT) == set(State)
    assert all(
        State.DEAD in following for state, following in NEXT.items() if state is not State.DEAD
    )
    assert NEXT[State.DEAD] == frozenset()


# -- joining


@pytest.mark.parametrize("version", range(10))
def test_first_join_in_every_version(host: Host, version: int) -> None:
    request = join()
    token = host.send(request, version)
    if version >= 4:
        refused = host.answers[token]
        assert refused.error_code == ErrorCode.MEMBER_ID_REQUIRED
        assert refused.member_id.startswith("c-")
        token = host.send(join(refused.member_id), version)
    assert token not in host.answers
    host.advance(DELAY_MS)
    response = host.answers[token]
    assert response.error_code == ErrorCode.NONE
    assert response.generation_id == 1
    assert response.protocol_name == "range"
    assert response.leader == response.member_id
    assert [member.metadata for member in response.members] == [b"m"]


def test_session_timeout_bounds(host: Host) -> None:
    for timeout_ms, answer in (
        (5_999, ErrorCode.INVALID_SESSION_TIMEOUT),
        (6_000, ErrorCode.MEMBER_ID_REQUIRED),
        (1_800_000, ErrorCode.MEMBER_ID_REQUIRED),
        (1_800_001, ErrorCode.INVALID_SESSION_TIMEOUT),
    ):
        assert host.ask(join(session_timeout_ms=timeout_ms)).error_code == answer


@pytest.mark.parametrize("values", [{"protocol_type": ""}, {"protocols": []}])
def test_first_member_must_bring_a_protocol(host: Host, values: dict[str, Any]) -> None:
    assert host.ask(join(**values)).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert "g" not in host.coordinator.groups


@pytest.mark.parametrize(
    "values", [{"protocol_type": "connect"}, {"protocols": protocols("sticky")}]
)
def test_later_members_must_share_a_protocol(host: Host, values: dict[str, Any]) -> None:
    stable(host)
    assert host.ask(join(**values)).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_protocol_is_chosen_by_votes_among_those_that_all_know(host: Host) -> None:
    lists = [("a", "b", "c"), ("b", "c", "x"), ("c", "b")]
    entered = [enter(host, protocols=protocols(*names)) for names in lists]
    host.advance(3 * DELAY_MS)
    names = {host.answers[token].protocol_name for _, token in entered}
    assert names == {"b"}  # two votes of b (a and x are not common), one of c


def test_initial_delay_is_extended_while_members_come(host: Host) -> None:
    _, first = enter(host)
    host.advance(2_000)
    enter(host)
    host.advance(1_000)
    assert first not in host.answers
    host.advance(DELAY_MS - 1)
    assert first not in host.answers
    host.advance(1)
    assert len(host.answers[first].members) == 2


def test_initial_delay_ends_with_the_rebalance_timeout(host: Host) -> None:
    _, first = enter(host, rebalance_timeout_ms=7_000)
    for _ in range(6):
        host.advance(1_000)
        assert first not in host.answers
        enter(host, rebalance_timeout_ms=7_000)
    host.advance(1_000)
    assert len(host.answers[first].members) == 7


def test_without_initial_delay_the_first_member_goes_ahead() -> None:
    host = Host(GroupOptions(initial_rebalance_delay_ms=0))
    _, token = enter(host)
    assert host.answers[token].generation_id == 1


def test_handed_out_id_holds_up_a_round_until_it_expires(host: Host) -> None:
    ids = stable(host)
    host.ask(join())
    tokens = [host.send(join(name, protocols=protocols("range", metadata=b"2"))) for name in ids]
    assert not any(token in host.answers for token in tokens)
    host.advance(10_000)
    assert [host.answers[token].generation_id for token in tokens] == [2, 2]


def test_handed_out_id_is_not_for_static_members(host: Host) -> None:
    pending = host.ask(join()).member_id
    assert host.ask(join(pending, "static")).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_group_has_a_size_limit() -> None:
    host = Host(GroupOptions(size_max=2))
    ids = stable(host)
    assert host.ask(join()).error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert host.ask(join("", "static")).error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert host.ask(join(ids[1])).error_code == ErrorCode.NONE


def test_size_limit_while_preparing_counts_who_waits() -> None:
    host = Host(GroupOptions(size_max=1))
    tokens = [host.send(join(), 3), host.send(join(), 3)]
    assert host.answers[tokens[1]].error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    host.advance(DELAY_MS)
    assert host.answers[tokens[0]].error_code == ErrorCode.NONE


def test_new_member_is_dropped_after_five_minutes_of_waiting(host: Host) -> None:
    values = {"rebalance_timeout_ms": 600_000, "session_timeout_ms": 700_000}
    (old,) = stable(host, 1, **values)
    token = host.send(join(**values), 3)
    host.advance(299_999)
    host.ask(heartbeat(old, 1))
    assert token not in host.answers
    host.advance(1)
    assert host.answers[token].error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert list(host.coordinator.groups["g"].members) == [old]


def test_repeated_join_answers_the_one_it_replaces(host: Host) -> None:
    ids = preparing(host)
    (waiting,) = host.coordinator.groups["g"].joining.values()
    again = host.send(join(ids[0]))
    assert host.answers[waiting.token].error_code == ErrorCode.REBALANCE_IN_PROGRESS
    host.send(join(ids[1]))
    assert host.answers[again].generation_id == 2


def test_members_that_do_not_rejoin_are_removed_and_another_one_leads(host: Host) -> None:
    ids = stable(host, 3, session_timeout_ms=100_000)
    tokens = [
        host.send(join(name, protocols=protocols("range", metadata=b"2"))) for name in ids[1:]
    ]
    host.advance(59_999)
    assert tokens[0] not in host.answers
    host.advance(1)
    assert [host.answers[token].leader for token in tokens] == [ids[1]] * 2
    assert list(host.coordinator.groups["g"].members) == ids[1:]


# -- static members


def static_group(host: Host, version: int = 9) -> list[str]:
    tokens = [host.send(join("", name), version) for name in ("a", "b")]
    host.advance(2 * DELAY_MS)
    ids = [host.answers[token].member_id for token in tokens]
    settle(host, ids, 1)
    return ids


def test_static_member_joins_in_one_step_under_its_name(host: Host) -> None:
    ids = static_group(host)
    assert [name.rpartition("-")[0] for name in ids] == ["a", "b"]


@pytest.mark.parametrize("version", range(5, 10))
def test_static_leader_restarts_without_a_round(host: Host, version: int) -> None:
    ids = static_group(host)
    response = host.ask(join("", "a"), version)
    assert response.error_code == ErrorCode.NONE
    assert response.generation_id == 1
    assert response.member_id != ids[0]
    if version >= 9:
        assert response.skip_assignment
        assert response.leader == response.member_id
        assert len(response.members) == 2
    else:
        assert response.leader == ids[0]
        assert response.members == []
    group = host.coordinator.groups["g"]
    assert group.state is State.STABLE
    assert group.leader == response.member_id
    answer = host.ask(sync_request(response.member_id, 1, group_instance_id="a"))
    assert answer.assignment == f"for-{ids[0]}".encode()
    assert host.replayed().groups["g"].members.keys() == group.members.keys()


def test_former_self_of_a_static_member_is_fenced(host: Host) -> None:
    old, other = static_group(host)
    host.ask(join("", "a"))
    fenced = ErrorCode.FENCED_INSTANCE_ID
    assert host.ask(heartbeat(old, 1, "a")).error_code == fenced
    assert host.ask(join(old, "a")).error_code == fenced
    assert host.ask(sync_request(old, 1, group_instance_id="a")).error_code == fenced
    assert host.ask(leave((old, "a"))).members[0].error_code == fenced
    request = commit({("t", 0): 1}, old, 1, group_instance_id="a")
    assert commit_codes(host.ask(request)) == [fenced]
    assert host.ask(heartbeat(other, 1, "b")).error_code == ErrorCode.NONE


def test_waiting_requests_of_the_former_self_are_fenced(host: Host) -> None:
    old, other = static_group(host)
    waiting_join = host.send(join(old, "a"))
    new_join = host.send(join("", "a"))
    assert host.answers[waiting_join].error_code == ErrorCode.FENCED_INSTANCE_ID
    host.send(join(other, "b"))
    new = host.answers[new_join].member_id
    follower = new if host.coordinator.groups["g"].leader == other else other
    waiting_sync = host.send(sync_request(follower, 2))
    host.send(join("", "a" if follower == new else "b"))
    assert host.answers[waiting_sync].error_code == ErrorCode.FENCED_INSTANCE_ID
    assert host.coordinator.groups["g"].state is State.PREPARING


def test_static_member_that_changes_the_protocol_begins_a_round(host: Host) -> None:
    tokens = [host.send(join("", name, protocols=protocols("range", "sticky"))) for name in "ab"]
    host.advance(2 * DELAY_MS)
    settle(host, [host.answers[token].member_id for token in tokens], 1)
    token = host.send(join("", "a", protocols=protocols("sticky")))
    assert token not in host.answers
    assert host.coordinator.groups["g"].state is State.PREPARING


def test_absent_static_member_keeps_its_place_until_its_session_ends(host: Host) -> None:
    first, second = static_group(host)
    token = host.send(join(first, "a"))
    for _ in range(8):
        host.advance(7_000)
        host.ask(heartbeat(second, 1, "b"))
        assert token not in host.answers
    host.advance(4_000)
    answer = host.answers[token]
    assert answer.error_code == ErrorCode.NONE
    assert [member.group_instance_id for member in answer.members] == ["a", "b"]


def test_failed_write_of_a_restarted_static_member_brings_the_old_one_back(host: Host) -> None:
    old, _ = static_group(host)
    host.fail_with = ErrorCode.NOT_ENOUGH_REPLICAS
    refused = host.ask(join("", "a"))
    assert refused.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert host.ask(heartbeat(old, 1, "a")).error_code == ErrorCode.NONE


# -- sync


def test_assignments_reach_everybody_also_those_the_leader_forgot(host: Host) -> None:
    entered = [enter(host) for _ in range(3)]
    host.advance(2 * DELAY_MS)
    ids = [name for name, _ in entered]
    first = host.send(sync_request(ids[1], 1))
    assert first not in host.answers
    host.send(sync_request(ids[0], 1, {ids[0]: b"0", ids[1]: b"1"}))
    assert host.answers[first].assignment == b"1"
    assert host.ask(sync_request(ids[2], 1)).assignment == b""
    assert host.ask(sync_request(ids[0], 1)).assignment == b"0"


def test_sync_must_name_generation_and_protocol(host: Host) -> None:
    ids = stable(host)
    assert host.ask(sync_request(ids[1], 7)).error_code == ErrorCode.ILLEGAL_GENERATION
    for values, answer in (
        ({"protocol_type": "consumer", "protocol_name": "range"}, ErrorCode.NONE),
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_name": "sticky"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    ):
        assert host.ask(sync_request(ids[1], 1, **values)).error_code == answer


def test_failed_write_of_an_assignment_begins_another_round(host: Host) -> None:
    ids = completing(host)
    waiting = host.send(sync_request(ids[1], 2))
    host.fail_with = ErrorCode.NOT_LEADER_OR_FOLLOWER
    leader = host.ask(sync_request(ids[0], 2, {ids[0]: b"0"}))
    assert leader.error_code == host.answers[waiting].error_code == ErrorCode.NOT_COORDINATOR
    host.fail_with = None
    assert host.ask(heartbeat(ids[0], 2)).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    token = host.send(join(ids[0]))
    host.advance(9_000)
    host.ask(heartbeat(ids[1], 2))
    assert token not in host.answers
    host.send(join(ids[1]))
    assert host.answers[token].generation_id == 3


def test_round_after_a_failed_write_ends_without_the_silent(host: Host) -> None:
    ids = completing(host)
    host.fail_with = ErrorCode.NOT_LEADER_OR_FOLLOWER
    host.ask(sync_request(ids[0], 2, {ids[0]: b"0"}))
    host.fail_with = None
    token = host.send(join(ids[0]))
    host.advance(60_000)
    assert [member.member_id for member in host.answers[token].members] == [ids[0]]


def test_members_that_never_sync_are_removed(host: Host) -> None:
    values = {"session_timeout_ms": 100_000}
    entered = [enter(host, **values) for _ in range(2)]
    host.advance(2 * DELAY_MS)
    ids = [name for name, _ in entered]
    waiting = host.send(sync_request(ids[1], 1))
    host.advance(60_000)
    assert host.answers[waiting].error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert list(host.coordinator.groups["g"].members) == [ids[1]]


def test_last_member_that_never_syncs_leaves_an_empty_group(host: Host) -> None:
    enter(host, session_timeout_ms=100_000)
    host.advance(DELAY_MS + 60_000)
    assert host.coordinator.groups["g"].state is State.EMPTY


# -- staying and leaving


def test_heartbeats_keep_a_member_and_silence_removes_it(host: Host) -> None:
    ids = stable(host)
    for _ in range(5):
        host.advance(9_999)
        for name in ids:
            assert host.ask(heartbeat(name, 1)).error_code == ErrorCode.NONE
    host.advance(9_999)
    host.ask(heartbeat(ids[0], 1))
    host.advance(1)
    assert list(host.coordinator.groups["g"].members) == [ids[0]]
    assert host.ask(heartbeat(ids[0], 1)).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert host.ask(heartbeat(ids[0], 9)).error_code == ErrorCode.ILLEGAL_GENERATION


def test_commits_count_as_a_sign_of_life(host: Host) -> None:
    (name,) = stable(host, 1)
    host.advance(9_999)
    assert commit_codes(host.ask(commit({("t", 0): 1}, name, 1))) == [ErrorCode.NONE]
    host.advance(9_999)
    assert host.ask(heartbeat(name, 1)).error_code == ErrorCode.NONE


def test_waiting_member_needs_no_heartbeats(host: Host) -> None:
    ids = stable(host, session_timeout_ms=10_000)
    token = host.send(join(ids[0]))
    for _ in range(5):
        host.advance(9_000)
        host.ask(heartbeat(ids[1], 1))
    assert token not in host.answers
    host.send(join(ids[1]))
    assert host.answers[token].generation_id == 2


@pytest.mark.parametrize("version", range(3))
def test_old_versions_leave_alone(host: Host, version: int) -> None:
    ids = stable(host)
    request = LeaveGroupRequest(group_id="g", member_id=ids[1])
    assert host.ask(request, version).error_code == ErrorCode.NONE
    assert host.ask(request, version).error_code == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("version", range(3, 6))
def test_several_leave_at_once_each_with_an_answer(host: Host, version: int) -> None:
    first, _ = static_group(host)
    pending = host.ask(join()).member_id
    request = leave((pending, None), ("", "b"), (first, "a"), ("x", None), ("", "x"))
    response = host.ask(request, version)
    assert [member.error_code for member in response.members] == [0, 0, 0, 25, 25]
    assert host.coordinator.groups["g"].state is State.EMPTY


def test_group_that_became_empty_is_stored_with_its_generation(host: Host) -> None:
    empty(host)
    group = host.replayed().groups["g"]
    assert (group.state, group.generation) == (State.EMPTY, 2)
    assert group.protocol_type == "consumer"
    host.fail_with = ErrorCode.NOT_LEADER_OR_FOLLOWER
    (name,) = stable_again(host)
    assert host.ask(leave((name, None))).members[0].error_code == ErrorCode.NONE


def stable_again(host: Host) -> list[str]:
    host.fail_with = None
    ids = stable(host, 1)
    host.fail_with = ErrorCode.NOT_LEADER_OR_FOLLOWER
    return ids


# -- moving


def test_members_survive_a_move_of_the_coordinator(host: Host) -> None:
    ids = stable(host)
    host.restart()
    for name in ids:
        assert host.ask(heartbeat(name, 1)).error_code == ErrorCode.NONE
    assert host.ask(sync_request(ids[1], 1)).assignment == f"for-{ids[1]}".encode()
    host.advance(10_000)
    assert host.coordinator.groups["g"].state is State.EMPTY


def test_waiting_requests_are_sent_on_when_the_coordinator_moves(host: Host) -> None:
    ids = preparing(host)
    (waiting,) = host.coordinator.groups["g"].joining.values()
    host.restart()
    assert host.answers[waiting.token].error_code == ErrorCode.NOT_COORDINATOR
    host.send(join(ids[0]))
    host.send(join(ids[1]))
    waiting_sync = host.send(sync_request(ids[1], 2))
    host.restart()
    assert host.answers[waiting_sync].error_code == ErrorCode.NOT_COORDINATOR
    assert host.coordinator.groups["g"].generation == 1


def test_loaded_group_over_the_limit_begins_a_round() -> None:
    host = Host()
    ids = stable(host, 3)
    host.options = GroupOptions(size_max=2)
    host.restart()
    codes = [host.ask(heartbeat(name, 1)).error_code for name in ids]
    assert codes == [ErrorCode.REBALANCE_IN_PROGRESS] * 3
    tokens = [host.send(join(name)) for name in ids]
    assert host.answers[tokens[2]].error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert [host.answers[token].error_code for token in tokens[:2]] == [ErrorCode.NONE] * 2

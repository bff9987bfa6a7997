"""Committing, reading, expiring and deleting offsets, alone and in transactions."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.groups.host import Host, commit, commit_codes, fetch, join, leave, protocols, sync

from barnabas.assignment.contract import Member
from barnabas.assignment.embedded import encode_subscription
from barnabas.groups.coordinator import GroupCoordinator
from barnabas.groups.fetching import fetched, groups_asked, refused
from barnabas.groups.offsets import Commit, GroupOffsets
from barnabas.groups.options import GroupOptions
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import ZERO_UUID, TopicPartition
from barnabas.wire.codec import decode, encode
from barnabas.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from barnabas.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from barnabas.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

MINUTE_MS = 60_000
TOPIC_ID = b"0123456789abcdef"


@pytest.fixture
def host() -> Host:
    return Host(GroupOptions(offsets_retention_ms=10 * MINUTE_MS), {"t": (TOPIC_ID, 3)})


def txn_commit(offset: int, producer_id: int = 1, partition: int = 0, **values: Any) -> Any:
    return TxnOffsetCommitRequest(
        transactional_id="x",
        producer_id=producer_id,
        producer_epoch=0,
        topics=[
            TxnOffsetCommitRequestTopic(
                name="t",
                partitions=[
                    TxnOffsetCommitRequestPartition(
                        partition_index=partition, committed_offset=offset
                    )
                ],
            )
        ],
        **{"group_id": "g", **values},
    )


def one_member(host: Host, topics: list[str]) -> str:
    metadata = encode_subscription(Member("", topics))
    token = host.send(join(protocols=protocols("range", metadata=metadata)), 3)
    host.advance(3_000)
    name: str = host.answers[token].member_id
    host.ask(sync(name, 1))
    return name


def delete_offsets(host: Host, *partitions: tuple[str, int]) -> Any:
    topics = [
        OffsetDeleteRequestTopic(
            name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=index)]
        )
        for topic, index in partitions
    ]
    return host.ask(OffsetDeleteRequest(group_id="g", topics=topics))


# -- committing and reading


@pytest.mark.parametrize("version", range(10))
def test_commit_in_every_version(host: Host, version: int) -> None:
    assert commit_codes(host.ask(commit({("t", 0): 7}), version)) == [0]
    assert fetch(host.coordinator) == (7, 0)
    assert fetch(host.coordinator, partition=1) == (-1, 0)
    assert fetch(host.replayed()) == (7, 0)


def test_commit_and_fetch_by_topic_id(host: Host) -> None:
    request = OffsetCommitRequest(
        group_id="g",
        topics=[
            OffsetCommitRequestTopic(
                topic_id=topic_id,
                partitions=[OffsetCommitRequestPartition(partition_index=0, committed_offset=7)],
            )
            for topic_id in (TOPIC_ID, b"x" * 16)
        ],
    )
    response = host.ask(request, 10)
    assert commit_codes(response) == [0, ErrorCode.UNKNOWN_TOPIC_ID]
    assert [topic.topic_id for topic in response.topics] == [TOPIC_ID, b"x" * 16]
    assert fetch(host.coordinator) == (7, 0)
    for topics in (None, [OffsetFetchRequestTopics(topic_id=TOPIC_ID, partition_indexes=[0])]):
        asked = OffsetFetchRequestGroup(group_id="g", topics=topics)
        (topic,) = host.coordinator.offset_requests.fetch(asked, 10, False).topics
        assert topic.topic_id == TOPIC_ID
        assert topic.partitions[0].committed_offset == 7
    asked.topics = [OffsetFetchRequestTopics(topic_id=ZERO_UUID, partition_indexes=[0])]
    (topic,) = host.coordinator.offset_requests.fetch(asked, 10, False).topics
    assert topic.partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_too_long_metadata_is_refused_alone(host: Host) -> None:
    limit = host.options.offset_metadata_bytes_max
    assert commit_codes(host.ask(commit({("t", 0): 1}, metadata="x" * limit))) == [0]
    response = host.ask(commit({("t", 0): 2}, metadata="x" * (limit + 1)))
    assert commit_codes(response) == [ErrorCode.OFFSET_METADATA_TOO_LARGE]
    assert fetch(host.coordinator) == (1, 0)


def test_commit_of_nothing_makes_no_group(host: Host) -> None:
    assert commit_codes(host.ask(commit({}))) == []
    assert host.coordinator.groups == {}


@pytest.mark.parametrize(
    ("failure", "answer"),
    [
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.INVALID_COMMIT_OFFSET_SIZE),
        (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.REQUEST_TIMED_OUT),
    ],
)
def test_failed_commit_leaves_what_was(host: Host, failure: ErrorCode, answer: ErrorCode) -> None:
    host.ask(commit({("t", 0): 1}))
    host.fail_with = failure
    assert commit_codes(host.ask(commit({("t", 0): 2, ("t", 1): 2}))) == [answer] * 2
    assert fetch(host.coordinator) == (1, 0)
    assert fetch(host.coordinator, partition=1) == (-1, 0)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_several_failed_commits_are_taken_back_in_any_order(order: tuple[int, int]) -> None:
    offsets = GroupOffsets()
    place = TopicPartition("t", 0)
    offsets.commit(place, Commit(1, -1, "", 0))
    commits = [Commit(n, -1, "", 0) for n in (2, 3)]
    befores = [offsets.commit(place, commit) for commit in commits]
    for index in order:
        offsets.take_back(place, commits[index], befores[index])
    assert offsets.committed[place].offset == 1


def test_commit_after_a_failed_one_stands() -> None:
    offsets = GroupOffsets()
    place = TopicPartition("t", 0)
    failed = Commit(1, -1, "", 0)
    before = offsets.commit(place, failed)
    offsets.commit(place, Commit(2, -1, "", 0))
    offsets.take_back(place, failed, before)
    assert offsets.committed[place].offset == 2


@pytest.mark.parametrize("version", range(10))
def test_fetch_in_every_version(host: Host, version: int) -> None:
    host.ask(commit({("t", 0): 7}, metadata="note"))
    if version >= 8:
        topics = [OffsetFetchRequestTopics(name="t", partition_indexes=[0, 1])]
        request = OffsetFetchRequest(
            groups=[
                OffsetFetchRequestGroup(group_id="g", topics=topics),
                OffsetFetchRequestGroup(group_id="other", topics=topics),
            ]
        )
    else:
        request = OffsetFetchRequest(
            group_id="g", topics=[OffsetFetchRequestTopic(name="t", partition_indexes=[0, 1])]
        )
    request, _ = decode(OffsetFetchRequest, encode(request, version), version)
    answers = [
        host.coordinator.offset_requests.fetch(asked, version, request.require_stable)
        for asked in groups_asked(request, version)
    ]
    response, _ = decode(
        type(fetched(answers, version)), encode(fetched(answers, version), version), version
    )
    topics_told = response.groups[0].topics if version >= 8 else response.topics
    told = [(p.committed_offset, p.metadata) for p in topics_told[0].partitions]
    assert told == [(7, "note"), (-1, "")]
    if version >= 8:
        other = response.groups[1].topics[0].partitions
        assert [p.committed_offset for p in other] == [-1, -1]


@pytest.mark.parametrize("version", range(10))
def test_refused_fetch_in_every_version(version: int) -> None:
    asked = OffsetFetchRequestGroup(
        group_id="g", topics=[OffsetFetchRequestTopics(name="t", partition_indexes=[0])]
    )
    response = fetched([refused(asked, version, ErrorCode.NOT_COORDINATOR)], version)
    read, _ = decode(type(response), encode(response, version), version)
    if version < 2:
        assert read.topics[0].partitions[0].error_code == ErrorCode.NOT_COORDINATOR
    elif version < 8:
        assert read.error_code == ErrorCode.NOT_COORDINATOR
    else:
        assert read.groups[0].error_code == ErrorCode.NOT_COORDINATOR


def test_all_offsets_of_a_group(host: Host) -> None:
    host.ask(commit({("t", 0): 1, ("t", 1): 2, ("u", 0): 3}))
    answer = host.coordinator.offset_requests.fetch(
        OffsetFetchRequestGroup(group_id="g", topics=None), 8, False
    )
    told = {
        (t.name, p.partition_index): p.committed_offset for t in answer.topics for p in t.partitions
    }
    assert told == {("t", 0): 1, ("t", 1): 2, ("u", 0): 3}


# -- transactions


@pytest.mark.parametrize("version", range(6))
def test_transactional_commit_waits_for_its_marker(host: Host, version: int) -> None:
    host.ask(commit({("t", 0): 1}))
    assert commit_codes(host.ask(txn_commit(5), version)) == [0]
    assert fetch(host.coordinator) == (1, 0)
    unstable = (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    assert fetch(host.coordinator, require_stable=True) == unstable
    assert fetch(host.replayed(), require_stable=True) == unstable
    assert fetch(host.coordinator, partition=1, require_stable=True) == (-1, 0)
    host.marker(1, committed=True)
    assert fetch(host.coordinator, require_stable=True) == (5, 0)
    assert fetch(host.replayed(), require_stable=True) == (5, 0)


def test_aborted_offsets_vanish(host: Host) -> None:
    host.ask(txn_commit(5))
    host.marker(1, committed=False)
    assert fetch(host.coordinator, require_stable=True) == (-1, 0)
    host.restart()
    assert fetch(host.coordinator, require_stable=True) == (-1, 0)
    assert host.coordinator.groups == {}


def test_later_plain_commit_is_not_undone_by_an_earlier_transaction(host: Host) -> None:
    host.ask(txn_commit(5))
    host.ask(commit({("t", 0): 9}))
    host.marker(1, committed=True)
    assert fetch(host.coordinator) == fetch(host.replayed()) == (9, 0)


def test_transactions_of_two_producers(host: Host) -> None:
    host.ask(txn_commit(5, producer_id=1))
    host.ask(txn_commit(6, producer_id=2))
    host.marker(2, committed=True)
    assert fetch(host.coordinator) == (6, 0)
    host.marker(1, committed=True)
    assert fetch(host.coordinator) == fetch(host.replayed()) == (6, 0)


def test_one_marker_ends_a_transaction_for_all_its_groups(host: Host) -> None:
    for group, offset in (("g", 5), ("h", 6)):
        host.ask(txn_commit(offset, group_id=group))
    host.ask(txn_commit(7, producer_id=2, group_id="i"))
    host.marker(1, committed=True)
    for coordinator in (host.coordinator, host.replayed()):
        committed = {
            group: {partition: each.offset for partition, each in offsets.committed.items()}
            for group, offsets in coordinator.offsets.by_group.items()
        }
        place = TopicPartition("t", 0)
        assert committed == {"g": {place: 5}, "h": {place: 6}, "i": {}}


def test_failed_transactional_commit_is_not_pending(host: Host) -> None:
    host.fail_with = ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert commit_codes(host.ask(txn_commit(5))) == [ErrorCode.NOT_COORDINATOR]
    assert fetch(host.coordinator, require_stable=True) == (-1, 0)


def test_transactional_commit_checks_the_member_it_names(host: Host) -> None:
    illegal = [ErrorCode.ILLEGAL_GENERATION]
    assert commit_codes(host.ask(txn_commit(5, generation_id=1, member_id="x"))) == illegal
    name = one_member(host, ["t"])
    for values, answer in (
        ({}, ErrorCode.NONE),
        ({"generation_id": 1, "member_id": name}, ErrorCode.NONE),
        ({"generation_id": 2, "member_id": name}, ErrorCode.ILLEGAL_GENERATION),
        ({"generation_id": 1, "member_id": "x"}, ErrorCode.UNKNOWN_MEMBER_ID),
        (
            {"generation_id": 1, "member_id": name, "group_instance_id": "i"},
            ErrorCode.UNKNOWN_MEMBER_ID,
        ),
    ):
        assert commit_codes(host.ask(txn_commit(5, **values))) == [answer]
    too_long = txn_commit(5)
    too_long.topics[0].partitions[0].committed_metadata = "x" * 5_000
    assert commit_codes(host.ask(too_long)) == [ErrorCode.OFFSET_METADATA_TOO_LARGE]


# -- expiry


def expire(host: Host, minutes: int = 0) -> None:
    host.advance(minutes * MINUTE_MS)
    host.apply(host.coordinator.expire_offsets(host.now_ms))


def test_offsets_without_a_group_age_from_their_commit(host: Host) -> None:
    host.ask(commit({("t", 0): 1}))
    host.advance(5 * MINUTE_MS)
    host.ask(commit({("t", 1): 1}))
    expire(host, 5)
    assert fetch(host.coordinator) == fetch(host.replayed()) == (-1, 0)
    assert fetch(host.coordinator, partition=1) == (1, 0)
    expire(host, 5)
    assert host.coordinator.groups == host.replayed().groups == {}


def test_retention_of_the_commit_itself_wins(host: Host) -> None:
    host.ask(commit({("t", 0): 1}, retention_time_ms=MINUTE_MS), 4)
    host.ask(commit({("t", 1): 1}, retention_time_ms=60 * MINUTE_MS), 4)
    expire(host, 1)
    assert fetch(host.coordinator) == (-1, 0)
    expire(host, 58)
    assert fetch(host.replayed(), partition=1) == (1, 0)
    expire(host, 1)
    assert fetch(host.coordinator, partition=1) == (-1, 0)


def test_offsets_of_an_emptied_group_age_from_when_it_emptied(host: Host) -> None:
    name = one_member(host, ["t"])
    host.ask(commit({("t", 0): 1}, name, 1))
    host.now_ms += 9 * MINUTE_MS
    host.ask(leave((name, None)))
    expire(host, 9)
    assert fetch(host.coordinator) == (1, 0)
    host.restart()
    expire(host, 1)
    assert fetch(host.coordinator) == (-1, 0)
    assert host.coordinator.groups == {}
    assert host.replayed().groups == {}


def test_offsets_of_topics_that_a_stable_group_reads_do_not_age(host: Host) -> None:
    name = one_member(host, ["t"])
    host.ask(commit({("t", 0): 1, ("u", 0): 2}, name, 1))
    host.apply(host.coordinator.expire_offsets(host.now_ms + 10 * MINUTE_MS))
    assert fetch(host.coordinator) == (1, 0)
    assert fetch(host.coordinator, "u") == (-1, 0)


def test_offsets_of_a_transaction_do_not_age(host: Host) -> None:
    host.ask(commit({("t", 0): 1}))
    host.ask(txn_commit(5))
    expire(host, 10)
    assert fetch(host.coordinator) == (1, 0)


def test_failed_expiry_expires_nothing(host: Host) -> None:
    host.ask(commit({("t", 0): 1}))
    host.fail_with = ErrorCode.NOT_ENOUGH_REPLICAS
    expire(host, 10)
    assert fetch(host.coordinator) == (1, 0)
    assert "g" in host.coordinator.groups


# -- deleting


def test_deleted_topics_take_their_offsets_with_them(host: Host) -> None:
    host.ask(commit({("t", 0): 1, ("u", 0): 2}))
    host.ask(txn_commit(5, partition=1))
    host.apply(host.coordinator.topics_deleted(["t"]))
    host.marker(1, committed=True)
    for coordinator in (host.coordinator, host.replayed()):
        assert fetch(coordinator) == fetch(coordinator, partition=1) == (-1, 0)
        assert fetch(coordinator, "u") == (2, 0)


def test_deleting_offsets(host: Host) -> None:
    assert delete_offsets(host, ("t", 0)).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    host.ask(commit({("t", 0): 1, ("u", 0): 2}))
    response = delete_offsets(host, ("t", 0), ("t", 2))
    assert commit_codes(response) == [0, 0]
    assert fetch(host.coordinator) == fetch(host.replayed()) == (-1, 0)
    host.fail_with = ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert delete_offsets(host, ("u", 0)).error_code == ErrorCode.NOT_COORDINATOR
    assert fetch(host.coordinator, "u") == (2, 0)


def test_deleting_offsets_that_members_read_is_refused(host: Host) -> None:
    name = one_member(host, ["t"])
    host.ask(commit({("t", 0): 1, ("u", 0): 2}, name, 1))
    response = delete_offsets(host, ("t", 0), ("u", 0))
    assert commit_codes(response) == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, 0]
    assert fetch(host.coordinator, "u") == (-1, 0)


def test_deleting_offsets_of_groups_that_are_no_consumers_is_refused(host: Host) -> None:
    token = host.send(join(protocol_type="connect"), 3)
    host.advance(3_000)
    assert host.answers[token].error_code == 0
    assert delete_offsets(host, ("t", 0)).error_code == ErrorCode.NON_EMPTY_GROUP


def test_deleting_a_group_deletes_everything_of_it(host: Host) -> None:
    name = one_member(host, ["t"])
    host.ask(commit({("t", 0): 1}, name, 1))
    host.ask(leave((name, None)))
    host.ask(txn_commit(5, partition=1))
    host.fail_with = ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert host.delete("g") == ErrorCode.NOT_COORDINATOR
    assert fetch(host.coordinator) == (1, 0)
    host.fail_with = None
    assert host.delete("g") == 0
    host.marker(1, committed=True)
    for coordinator in (host.coordinator, host.replayed()):
        assert coordinator.groups == {}
        assert coordinator.offsets.by_group == {}


# -- whatever happens

PARTITIONS, PRODUCERS = st.integers(0, 2), st.integers(1, 2)
STEPS = st.one_of(
    st.tuples(st.just("commit"), PARTITIONS, st.integers(0, 99)),
    st.tuples(st.just("txn_commit"), PARTITIONS, st.integers(0, 99), PRODUCERS),
    st.tuples(st.just("marker"), PRODUCERS, st.booleans()),
    st.tuples(st.just("delete_offsets"), PARTITIONS),
    st.tuples(st.just("delete_group")),
    st.tuples(st.just("advance"), st.integers(1, 12)),
    st.tuples(st.just("restart")),
)


def known(coordinator: GroupCoordinator) -> dict[str, Any]:
    return {
        group: (offsets.committed, offsets.pending)
        for group, offsets in coordinator.offsets.by_group.items()
        if offsets
    }


@given(st.lists(st.tuples(STEPS, st.booleans()), max_size=40))
def test_live_state_is_what_the_records_say_after_every_step(
    steps: list[tuple[tuple[Any, ...], bool]],
) -> None:
    """Appends fail now and then: what they would have changed is as it was."""
    host = Host(GroupOptions(offsets_retention_ms=10 * MINUTE_MS), {"t": (TOPIC_ID, 3)})
    for (what, *details), fails in steps:
        host.fail_with = ErrorCode.NOT_ENOUGH_REPLICAS if fails else None
        if what == "commit":
            partition, offset = details
            host.ask(commit({("t", partition): offset}))
        elif what == "txn_commit":
            partition, offset, producer_id = details
            host.ask(txn_commit(offset, producer_id, partition))
        elif what == "marker":
            host.marker(*details)
        elif what == "delete_offsets":
            delete_offsets(host, ("t", details[0]))
        elif what == "delete_group":
            host.delete("g")
        elif what == "advance":
            host.advance(details[0] * MINUTE_MS)
        else:
            host.restart()
        assert known(host.coordinator) == known(host.reader)
    assert known(host.coordinator) == known(host.replayed())

"""The rhythm of coordinators: load, append, wait until it is safe, answer in order, or undo."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.unit.broker.coordinated import (
    COORDINATED,
    commit,
    commit_request,
    fetch_offsets,
    find,
    hold_flushes,
    join,
    join_request,
)
from tests.unit.broker.serving import Serving, Wire, create_topic, wait_for
from tests.unit.broker.storage.test_log_failures import BreakingFiles
from tests.unit.log.conftest import FaultyFiles

from barnabas.broker.broker import Broker
from barnabas.broker.coordinators import host as coordinator_host
from barnabas.broker.coordinators.host import GRACE_MS_MAX, LATE_MS
from barnabas.broker.coordinators.marker_writer import Ending
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import StorageError
from barnabas.model.ids import TopicPartition
from barnabas.wire.messages.describe_groups import DescribeGroupsRequest
from barnabas.wire.messages.heartbeat import HeartbeatRequest
from barnabas.wire.messages.join_group import JoinGroupRequest
from barnabas.wire.messages.list_groups import ListGroupsRequest
from barnabas.wire.messages.offset_commit import OffsetCommitRequest
from barnabas.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from barnabas.wire.messages.sync_group import SyncGroupRequest
from barnabas.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)


def flush_all(broker: Broker) -> None:
    for partition in broker.partitions.values():
        partition.log.flush(broker.now_ms())


FLUSHED = {**COORDINATED, "log.flush.interval.messages": "1"}


def test_a_request_before_the_topic_exists_is_not_ours(tmp_path: Path) -> None:
    with Serving(tmp_path, COORDINATED) as serving, serving.connect() as wire:
        create_topic(wire, "t")
        assert commit(wire, "g", {("t", 0): 1}) == [ErrorCode.NOT_COORDINATOR]


def test_records_are_replayed_after_a_restart(tmp_path: Path) -> None:
    with Serving(tmp_path, COORDINATED) as serving:
        with serving.connect() as wire:
            create_topic(wire, "t", 2)
            find(wire, "g")
            assert commit(wire, "g", {("t", 0): 4, ("t", 1): 5}) == [0, 0]
            assert commit(wire, "g", {("t", 0): 6}) == [0]
            member_id, generation = join(wire, "members")
        for end in (serving.stop, serving.kill):
            serving.inside(lambda: flush_all(serving.broker))
            end()
            serving.start()
            serving.wait_inside(lambda: not serving.broker.groups.is_loading, "groups are loaded")
            with serving.connect() as wire:
                assert fetch_offsets(wire, "g", [("t", 0), ("t", 1)]) == [6, 5]
                answer = wire.ask(DescribeGroupsRequest(groups=["members"]), 5)
                assert [each.member_id for each in answer.groups[0].members] == [member_id]
                # The member is alive, in its generation, as if nothing had happened.
                beat = HeartbeatRequest(
                    group_id="members", member_id=member_id, generation_id=generation
                )
                assert wire.ask(beat, 3).error_code == 0


def test_requests_are_told_to_wait_while_records_are_replayed(tmp_path: Path) -> None:
    with Serving(tmp_path, COORDINATED) as serving, serving.connect() as wire:
        create_topic(wire, "t")
        find(wire, "g")
        assert commit(wire, "g", {("t", 0): 4}) == [0]
        groups = serving.broker.groups

        def set_loading(loading: bool) -> None:
            for shard in groups.shards.values():
                shard.loading = loading

        serving.inside(lambda: set_loading(True))
        loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert commit(wire, "g", {("t", 0): 5}) == [loading]
        fetched = wire.ask(OffsetFetchRequest(group_id="g", topics=None), 7)
        assert fetched.error_code == loading
        assert wire.ask(join_request("g"), 5).error_code == loading
        assert wire.ask(ListGroupsRequest(), 4).error_code == loading
        # Clients do not expect the code in these two.
        assert wire.ask(HeartbeatRequest(group_id="g", member_id="m"), 3).error_code == 0
        assert wire.ask(SyncGroupRequest(group_id="g", member_id="m"), 3).error_code == (
            ErrorCode.REBALANCE_IN_PROGRESS
        )
        serving.inside(lambda: set_loading(False))
        assert fetch_offsets(wire, "g", [("t", 0)]) == [4]


def test_others_run_while_a_long_log_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coordinator_host, "LOAD_SLICE_S", 0)
    with Serving(tmp_path, COORDINATED) as serving, serving.connect() as wire:
        create_topic(wire, "t")
        find(wire, "g")
        for number in range(20):
            assert commit(wire, "g", {("t", 0): number}) == [0]
        groups, loop = serving.broker.groups, serving.broker.loop
        turns: list[bool] = []

        def take_a_turn() -> None:
            turns.append(groups.is_loading)
            if turns[-1]:
                loop.call_soon(take_a_turn)

        def load() -> None:
            groups._lead(groups.shard("g").partition)
            loop.call_soon(take_a_turn)

        serving.inside(load)
        serving.wait_inside(lambda: turns and not turns[-1], "the group is loaded")
        assert len(turns) >= 20
        assert fetch_offsets(wire, "g", [("t", 0)]) == [19]


@pytest.mark.parametrize("failure", [StorageError("this disk is not readable"), ValueError("bug")])
def test_what_cannot_be_read_stays_unavailable(tmp_path: Path, failure: Exception) -> None:
    """A log with bytes that are no records is not served half; other partitions are."""
    with Serving(tmp_path, COORDINATED) as serving:
        with serving.connect() as wire:
            create_topic(wire, "t")
            find(wire, "g")
            assert commit(wire, "g", {("t", 0): 4}) == [0]
        groups = serving.broker.groups

        def reload_broken() -> None:
            shard = groups.shard("g")

            def fail(*_: Any) -> None:
                raise failure

            shard.partition.log.read = fail  # type: ignore[method-assign]
            groups._lead(shard.partition)

        serving.inside(reload_broken)
        serving.expect_line("loading failed, coordinator unavailable")
        with serving.connect() as wire:
            assert commit(wire, "g", {("t", 0): 5}) == [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]


def test_a_transaction_that_ends_while_its_offsets_are_loaded(tmp_path: Path) -> None:
    """Its marker is written behind the end that loading began with, and counts all the same."""
    options = {**COORDINATED, "transaction.partition.verification.enable": "false"}
    with Serving(tmp_path, options) as serving, serving.connect() as wire:
        create_topic(wire, "t", 2)
        find(wire, "g")
        offset = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=7)
        in_transaction = TxnOffsetCommitRequest(
            transactional_id="x",
            group_id="g",
            producer_id=1,
            producer_epoch=0,
            topics=[TxnOffsetCommitRequestTopic(name="t", partitions=[offset])],
        )
        answer = wire.ask(in_transaction, 3)
        assert answer.topics[0].partitions[0].error_code == 0
        for _ in range(20):
            assert commit(wire, "g", {("t", 1): 3}) == [0]
        groups, loop = serving.broker.groups, serving.broker.loop
        ended: list[bool] = []

        def end_transaction(partition: TopicPartition) -> None:
            ending = Ending(1, 0, committed=True, coordinator_epoch=0)
            serving.broker.marker_writer.write(ending, [partition], lambda _: None)
            ended.append(groups.is_loading)

        def load_slowly() -> None:
            groups._load_bytes = 1  # a batch at a time
            partition = groups.shard("g").partition
            groups._lead(partition)
            loop.call_soon(loop.call_soon, end_transaction, partition.topic_partition)

        serving.inside(load_slowly)
        serving.wait_inside(lambda: ended and not groups.is_loading, "the group is loaded")
        assert ended == [True]
        asked = OffsetFetchRequestTopic(name="t", partition_indexes=[0])
        (topic,) = wire.ask(
            OffsetFetchRequest(group_id="g", topics=[asked], require_stable=True), 7
        ).topics
        assert (topic.partitions[0].error_code, topic.partitions[0].committed_offset) == (0, 7)


def test_answers_wait_until_their_records_are_safe_and_keep_their_order(tmp_path: Path) -> None:
    """A commit is answered after its flush, and a fetch behind it does not overtake it."""
    with Serving(tmp_path, FLUSHED) as serving:
        wires = [serving.connect() for _ in range(5)]
        create_topic(wires[0], "t")
        find(wires[0], "g")
        assert commit(wires[0], "g", {("t", 0): 1}) == [0]
        with hold_flushes(serving):
            wires[0].send(commit_request("g", {("t", 0): 2}), 7)
            groups = serving.broker.groups
            serving.wait_inside(
                lambda: groups.shard("g").required > groups.shard("g").partition.log.high_watermark,
                "the commit is appended and not safe",
            )
            asked = OffsetFetchRequest(group_id="g", topics=None)
            wires[1].send(asked, 7)
            wires[2].send(HeartbeatRequest(group_id="g", member_id="stranger"), 3)
            wires[3].send(DescribeGroupsRequest(groups=["g"]), 5)
            wires[4].send(ListGroupsRequest(), 4)
            serving.wait_inside(
                lambda: len(serving.broker.partitions.produce_purgatory) >= 5, "five answers wait"
            )
            for wire in wires:
                assert_silent(wire)
        _, committed = wires[0].receive(OffsetCommitRequest, 7)
        assert committed.topics[0].partitions[0].error_code == 0
        _, fetched = wires[1].receive(OffsetFetchRequest, 7)
        assert fetched.topics[0].partitions[0].committed_offset == 2
        _, beat = wires[2].receive(HeartbeatRequest, 3)
        assert beat.error_code == ErrorCode.UNKNOWN_MEMBER_ID
        _, described = wires[3].receive(DescribeGroupsRequest, 5)
        assert described.groups[0].group_state == "Empty"
        _, listed = wires[4].receive(ListGroupsRequest, 4)
        assert [group.group_id for group in listed.groups] == ["g"]


def assert_silent(wire: Wire) -> None:
    wire.socket.setblocking(False)
    try:
        with pytest.raises(BlockingIOError):
            wire.socket.recv(1)
    finally:
        wire.socket.settimeout(60)


def test_an_append_that_fails_is_undone(tmp_path: Path) -> None:
    disk = FaultyFiles()
    with Serving(tmp_path, COORDINATED, files=disk) as serving, serving.connect() as wire:
        create_topic(wire, "t")
        find(wire, "g")
        assert commit(wire, "g", {("t", 0): 1}) == [0]
        disk.room = 5
        (code,) = commit(wire, "g", {("t", 0): 2})
        assert code != 0
        assert ErrorCode.of(code).retriable or code == ErrorCode.KAFKA_STORAGE_ERROR
        wait_for(lambda: serving.lines.of(), "the broker complains")
        serving.lines.clear()
        disk.room = None
        assert fetch_offsets(wire, "g", [("t", 0)]) == [1]


@pytest.mark.parametrize("how", ["append", "load"])
def test_a_disk_that_fails_is_noticed(tmp_path: Path, how: str) -> None:
    """Its directory is taken out of use, so that another broker can coordinate."""
    disk = BreakingFiles()
    options = {**COORDINATED, "log.dirs": f"{tmp_path / 'a'},{tmp_path / 'b'}"}
    with Serving(tmp_path, options, files=disk) as serving, serving.connect() as wire:
        create_topic(wire, "t")
        find(wire, "any")
        groups, logs = serving.broker.groups, serving.broker.logs
        lost = str(tmp_path / "b")  # the other one holds what the broker cannot do without

        def is_kept_there(group: str) -> bool:
            return logs.path_of(groups.shard(group).partition.topic_partition) == lost

        group = next(
            name
            for name in map(str, range(100))
            if serving.inside(lambda n=name: is_kept_there(n))  # type: ignore[misc]
        )
        assert commit(wire, group, {("t", 0): 1}) == [0]
        partition = serving.inside(lambda: groups.shard(group).partition)
        disk.broken.add(lost)
        if how == "append":
            assert commit(wire, group, {("t", 0): 2}) == [ErrorCode.NOT_COORDINATOR]
        else:
            serving.inside(lambda: groups._lead(partition))
        serving.wait_inside(lambda: lost in logs.offline, "the directory is out of use")
        assert commit(wire, group, {("t", 0): 3}) == [ErrorCode.NOT_COORDINATOR]
        said = "append failed" if how == "append" else "loading failed"
        assert said in serving.lines.of()[0]
        serving.lines.clear()
        disk.broken.clear()


def test_a_wait_that_takes_too_long_is_undone(tmp_path: Path) -> None:
    with Serving(tmp_path, FLUSHED) as serving:
        with serving.connect() as wire:
            create_topic(wire, "t")
            find(wire, "g")
            assert commit(wire, "g", {("t", 0): 1}) == [0]
        # Only now: a disk may need longer than that for a flush that is not held.
        serving.stop()
        serving.options["offsets.commit.timeout.ms"] = "50"
        serving.start()
        serving.wait_inside(lambda: not serving.broker.groups.is_loading, "groups are loaded")
        wire = serving.connect()
        with hold_flushes(serving):
            (code,) = commit(wire, "g", {("t", 0): 2})
            assert ErrorCode.of(code).retriable, ErrorCode.of(code)
            response = wire.ask(OffsetFetchRequest(group_id="g", topics=None), 7)
            assert ErrorCode.of(response.error_code).retriable
            (described,) = wire.ask(DescribeGroupsRequest(groups=["g"]), 5).groups
            assert ErrorCode.of(described.error_code).retriable
            assert ErrorCode.of(wire.ask(ListGroupsRequest(), 4).error_code).retriable
        # The record was in the log all the while: now that it is safe, it holds.
        serving.wait_inside(lambda: not serving.broker.groups.is_loading, "groups are loaded")
        assert fetch_offsets(wire, "g", [("t", 0)]) == [2]


def test_resigning_answers_who_waits(tmp_path: Path) -> None:
    """A member that waits for its group hears that this is no longer the coordinator."""
    options = {**COORDINATED, "group.initial.rebalance.delay.ms": "60000"}
    with Serving(tmp_path, options) as serving, serving.connect() as wire:
        find(wire, "g")
        wire.send(join_request("g"), 3)  # before version 4 it joins at once, and waits
        groups = serving.broker.groups
        serving.wait_inside(lambda: "g" in groups.shard("g").machine.groups, "it has joined")
        number = serving.inside(lambda: groups.shard("g").partition.topic_partition.partition)
        serving.inside(lambda: groups.resign(number))
        _, answer = wire.receive(JoinGroupRequest, 3)
        assert answer.error_code == ErrorCode.NOT_COORDINATOR
        assert wire.ask(join_request("g"), 3).error_code == ErrorCode.NOT_COORDINATOR


def test_timers_ring(tmp_path: Path) -> None:
    """A member that says nothing for as long as its session lasts is no longer one."""
    with Serving(tmp_path, COORDINATED) as serving, serving.connect() as wire:
        find(wire, "g")
        join(wire, "g", session_timeout_ms=60_000)
        groups = serving.broker.groups
        group = serving.inside(lambda: groups.shard("g").machine.groups["g"])
        assert not serving.inside(lambda: group.is_empty)
        serving.let_pass(60_001)
        serving.wait_inside(lambda: group.is_empty, "the member is gone")


def test_a_broker_that_stood_still_hears_members_before_it_gives_them_up(tmp_path: Path) -> None:
    """A heartbeat that came meanwhile counts; who stays silent is given up a little later."""
    with Serving(tmp_path, COORDINATED) as serving, serving.connect() as wire:
        find(wire, "g")
        member_id, generation = join(wire, "g", session_timeout_ms=60_000)
        groups = serving.broker.groups
        group = serving.inside(lambda: groups.shard("g").machine.groups["g"])
        serving.let_pass(60_000 + GRACE_MS_MAX)
        assert not serving.inside(lambda: group.is_empty)
        beat = HeartbeatRequest(group_id="g", member_id=member_id, generation_id=generation)
        assert wire.ask(beat, 3).error_code == 0
        serving.let_pass(GRACE_MS_MAX + LATE_MS)
        assert not serving.inside(lambda: group.is_empty)
        serving.let_pass(60_000)
        serving.let_pass(GRACE_MS_MAX)
        assert serving.inside(lambda: group.is_empty)

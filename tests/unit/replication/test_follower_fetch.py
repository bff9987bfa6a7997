"""A follower and its leader's answers; whole replicas that crash, and part, and agree again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from barnabas.config.topic import TopicOptions
from barnabas.log.file_pool import FilePool
from barnabas.log.files import DiskFiles
from barnabas.log.partition_log import PartitionLog
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.records.batch import iterate
from barnabas.records.builder import build_batch
from barnabas.replication.follower_fetch import (
    LOOK_MS,
    NOT_HEARD_YET,
    Action,
    FollowerFetch,
    Step,
    Wanted,
)
from barnabas.replication.leader_context import LeaderContext
from barnabas.replication.partition import Partition
from barnabas.replication.role import Role
from barnabas.wire.messages.fetch import EpochEndOffset, PartitionData

NOW = 1_700_000_000_000
KEY = TopicPartition("t", 0)
NEIGHBOURS = LeaderContext(lambda: 0, lambda _: True, lambda: 30_000)
BACKOFF_MS = 1000

Make = Callable[[int], Partition]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def partition(broker: int) -> Partition:
        log = PartitionLog.open(
            FilePool(DiskFiles()), f"{tmp_path}/{broker}/t-0", KEY, TopicOptions.parse({}), NOW
        )
        return Partition(KEY, b"i" * 16, log, broker, NEIGHBOURS)

    return partition


def append(partition: Partition, *values: bytes) -> None:
    partition.append(bytearray(build_batch([(NOW, b"k", v) for v in values])), 1, 9, NOW)


def values(partition: Partition) -> list[bytes | None]:
    found: list[bytes | None] = []
    log = partition.log
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        piece = log.read(offset, 1 << 20)
        records = list(iterate(piece.read()))
        piece.release()
        found += [record.value for record in records]
        offset = records[-1].offset + 1
    return found


def wanted_of(pull: FollowerFetch, now_ms: int) -> list[Wanted]:
    """Return what has changed of what the follower wants."""
    return [wanted for wanted in pull.changes(now_ms).values() if wanted is not None]


def serve(leader: Partition, follower: Partition, pull: FollowerFetch) -> Step:
    """One fetch of a follower from its leader, as the broker's handler answers it."""
    (wanted,) = wanted_of(pull, 0)
    log = leader.log
    data = PartitionData(high_watermark=log.high_watermark, log_start_offset=log.log_start_offset)
    leader.check_leader(wanted.leader_epoch)
    if not log.log_start_offset <= wanted.offset <= log.log_end_offset:
        data.error_code = ErrorCode.OFFSET_OUT_OF_RANGE
        return pull.take(KEY, data, 0, NOW)
    if wanted.last_fetched_epoch != -1:
        epoch, end = log.leader_epochs.end_offset_of(wanted.last_fetched_epoch, log.log_end_offset)
        if epoch < wanted.last_fetched_epoch or end < wanted.offset:
            data.diverging_epoch = EpochEndOffset(epoch=epoch, end_offset=end)
            return pull.take(KEY, data, 0, NOW)
    leader.follower_fetched(follower._broker_id, 1, wanted.offset, wanted.log_start_offset)
    data.high_watermark = log.high_watermark
    piece = log.read(wanted.offset, 1 << 20)
    data.records = piece.read()
    piece.release()
    return pull.take(KEY, data, 0, NOW)


def follow(leader: Partition, follower: Partition, rounds: int = 10) -> None:
    """Let a follower catch up, cutting its log where its leader says so."""
    pull = FollowerFetch(BACKOFF_MS)
    step = pull.follow(follower)
    for _ in range(rounds):
        if step.action is Action.TRUNCATE:
            follower.log.truncate_to(step.offset, NOW)
            pull.resume(KEY, 0)
        elif step.action is Action.FIND_BOUNDS:
            log = leader.log
            step = pull.bounds_found(KEY, log.log_start_offset, log.log_end_offset)
            if step.action is Action.TRUNCATE:
                follower.log.truncate_to(step.offset, NOW)
            elif step.action is Action.RESTART:
                follower.log.truncate_all(step.offset, NOW)
            pull.resume(KEY, 0)
        step = serve(leader, follower, pull)


def lead(leader: Partition, follower: Partition, epoch: int, isr: tuple[int, ...]) -> None:
    role = Role(leader._broker_id, epoch, isr, (0, 1), epoch)
    leader.assume(role)
    follower.assume(role)


def crash(partition: Partition, keep: int) -> None:
    """Lose what was not flushed: everything from an offset on."""
    partition.log.truncate_to(keep, NOW)


def test_a_follower_copies_its_leader(make: Make) -> None:
    leader, follower = make(0), make(1)
    lead(leader, follower, 0, (0, 1))
    append(leader, b"a", b"b")
    append(leader, b"c")
    follow(leader, follower)
    assert values(follower) == [b"a", b"b", b"c"]
    assert follower.log.high_watermark == leader.log.high_watermark == 3
    assert list(follower.log.leader_epochs) == list(leader.log.leader_epochs)


def test_a_restarted_follower_keeps_what_was_promised(make: Make) -> None:
    """Cutting back to one's own watermark loses records: it runs behind the leader's.

    The follower has the record, and the leader has told a producer that it is safe; the follower
    restarts before it hears of the watermark, and then its leader dies. With epochs it cuts
    nothing, because nothing parts it from its leader, and so it leads with the record.
    """
    a, b = make(0), make(1)
    lead(a, b, 0, (0, 1))
    append(a, b"m1")
    append(a, b"m2")
    pull = FollowerFetch(BACKOFF_MS)
    pull.follow(b)
    serve(a, b, pull)
    (wanted,) = wanted_of(pull, 0)
    a.follower_fetched(1, 1, wanted.offset, 0)
    assert a.log.high_watermark == 2
    assert b.log.high_watermark == 0, "it has not heard of it"
    assert FollowerFetch(BACKOFF_MS).follow(b).action is Action.NOTHING
    lead(b, a, 1, (1,))
    assert values(b) == [b"m1", b"m2"]


@pytest.mark.parametrize("first_back", [0, 1])
def test_replicas_that_lost_different_ends_agree_again(make: Make, first_back: int) -> None:
    """Both crash before flushing; whoever comes back first leads, the other gives in.

    Without epochs both would hold another record at the same offset.
    """
    a, b = make(0), make(1)
    lead(a, b, 0, (0, 1))
    append(a, b"m1")
    follow(a, b)
    append(a, b"m2")
    crash(b, 1)
    replicas = (a, b)
    leader, other = replicas[first_back], replicas[1 - first_back]
    lead(leader, other, 1, (first_back,))
    append(leader, b"m3")
    follow(leader, other)
    assert values(a) == values(b)
    assert values(leader)[0] == b"m1"
    assert values(leader)[-1] == b"m3"
    assert list(a.log.leader_epochs) == list(b.log.leader_epochs)


def test_a_follower_of_several_parted_epochs(make: Make) -> None:
    """Each leader in turn loses its followers' tail; a cut may take more than one round."""
    a, b = make(0), make(1)
    lead(a, b, 0, (0, 1))
    append(a, b"x0", b"x1")
    follow(a, b)
    lead(a, b, 1, (0,))
    append(a, b"a1")
    lead(b, a, 2, (1,))
    append(b, b"b2")
    lead(a, b, 3, (0,))
    append(a, b"a3")
    lead(b, a, 4, (1,))
    append(b, b"b4")
    follow(b, a)
    assert values(a) == values(b) == [b"x0", b"x1", b"b2", b"b4"]


def test_a_follower_that_is_behind_the_leaders_log(make: Make) -> None:
    leader, follower = make(0), make(1)
    lead(leader, follower, 0, (0,))
    for value in (b"a", b"b", b"c"):
        append(leader, value)
    follow(leader, follower)
    append(leader, b"d", b"e")
    leader.log.roll(NOW)
    append(leader, b"f")
    leader.log.set_high_watermark(6)
    leader.log.delete_records_before(5)
    follow(leader, follower)
    assert follower.log.log_start_offset == 5
    assert values(follower) == [b"f"]


def test_errors(make: Make) -> None:
    leader, follower = make(0), make(1)
    lead(leader, follower, 0, (0, 1))
    pull = FollowerFetch(BACKOFF_MS)
    pull.follow(follower)
    wanted_of(pull, 0)
    broken = PartitionData(error_code=ErrorCode.KAFKA_STORAGE_ERROR)
    assert pull.take(KEY, broken, 5, NOW).action is Action.RETRY
    assert wanted_of(pull, 5) == []
    assert pull.next_ready_ms() == 5 + BACKOFF_MS
    wanted_of(pull, 5 + BACKOFF_MS)
    fenced = PartitionData(error_code=ErrorCode.FENCED_LEADER_EPOCH)
    assert pull.take(KEY, fenced, 5, NOW).action is Action.WAIT
    assert wanted_of(pull, 10**9) == [], "until the controller tells more"
    assert pull.next_ready_ms() is None


@pytest.mark.parametrize("code", sorted(NOT_HEARD_YET))
def test_a_leader_that_has_not_heard_of_its_role_is_asked_again_soon(
    make: Make, code: ErrorCode
) -> None:
    """A fail-over must not wait for the pause that a broken leader is given."""
    leader, follower = make(0), make(1)
    lead(leader, follower, 0, (0, 1))
    pull = FollowerFetch(BACKOFF_MS)
    pull.follow(follower)
    now_ms, pauses = 0, []
    for _ in range(9):
        assert len(wanted_of(pull, now_ms)) == 1
        refused = PartitionData(error_code=code)
        assert pull.take(KEY, refused, now_ms, NOW) == Step(Action.RETRY, code=code)
        assert wanted_of(pull, now_ms) == []
        ready_ms = pull.next_ready_ms()
        assert ready_ms is not None
        pauses.append(ready_ms - now_ms)
        now_ms = ready_ms
    assert pauses == [10, 20, 40, 80, 160, 320, 640, BACKOFF_MS, BACKOFF_MS]
    wanted_of(pull, now_ms)
    assert pull.take(KEY, PartitionData(high_watermark=0), now_ms, NOW).action is Action.NOTHING
    wanted_of(pull, now_ms)
    pull.take(KEY, PartitionData(error_code=code), now_ms, NOW)
    assert pull.next_ready_ms() == now_ms + 10, "it is another time"
    assert wanted_of(pull, now_ms + 3) == []
    assert pull.patience_ms(now_ms + 3) == 7, "no longer may a fetch of others take"
    assert len(wanted_of(pull, now_ms + 10)) == 1
    assert pull.patience_ms(now_ms + 10) is None
    pull.hold(KEY)
    assert pull.patience_ms(now_ms + 10) is None, "time does not change it"


def test_answers_of_older_times_change_nothing(make: Make) -> None:
    leader, follower = make(0), make(1)
    lead(leader, follower, 0, (0, 1))
    append(leader, b"a")
    pull = FollowerFetch(BACKOFF_MS)
    pull.follow(follower)
    wanted_of(pull, 0)
    piece = leader.log.read(0, 1 << 20)
    data = PartitionData(high_watermark=1, records=piece.read())
    piece.release()
    follower.assume(Role(0, 1, (0, 1), (0, 1), 1))
    assert pull.take(KEY, data, 0, NOW).action is Action.DROPPED
    assert follower.log.log_end_offset == 0
    pull.forget(KEY)
    assert pull.take(KEY, data, 0, NOW).action is Action.DROPPED


def test_random_elections_and_crashes_never_part_two_replicas(make: Make) -> None:
    """Whatever happens, a follower that caught up is the leader's copy, and what was below the
    watermark of a leader elected from the in-sync replicas is there for ever.
    """
    random = Random(20)
    replicas = (make(0), make(1))
    epoch, leader, isr = 0, 0, (0, 1)
    promised: list[bytes | None] = []
    lead(replicas[0], replicas[1], 0, isr)
    for number in range(300):
        ours, other = replicas[leader], replicas[1 - leader]
        what = random.random()
        if what < 0.5:
            append(ours, b"%d" % number)
        elif what < 0.75 and len(isr) == 2:
            follow(ours, other, random.randrange(1, 4))
        elif what < 0.85:
            epoch += 1
            isr = (leader,)  # the other is away for a while
            lead(ours, other, epoch, isr)
        elif len(isr) == 1:
            follow(ours, other)
            assert values(ours) == values(other)
            epoch += 1
            isr = (0, 1)
            lead(ours, other, epoch, isr)
        else:
            leader = 1 - leader
            epoch += 1
            lead(replicas[leader], replicas[1 - leader], epoch, isr)
        ours = replicas[leader]
        kept = values(ours)
        assert kept[: len(promised)] == promised
        promised = kept[: max(len(promised), ours.log.high_watermark)]
    assert len(promised) > 20


def test_what_is_at_rest_is_not_looked_at(make: Make) -> None:
    """A turn of the fetcher is about those to which something happened, and now and then all."""
    leader, follower = make(0), make(1)
    lead(leader, follower, 0, (0, 1))
    append(leader, b"a")
    pull = FollowerFetch(BACKOFF_MS)
    pull.follow(follower)
    assert serve(leader, follower, pull).action is Action.APPENDED
    assert [wanted.offset for wanted in wanted_of(pull, 1)] == [1]
    assert pull.changes(2) == {}
    assert [wanted.offset for wanted in wanted_of(pull, 1 + LOOK_MS)] == [1]
    assert pull.changes(2 + LOOK_MS) == {}
    pull.hold(KEY)
    assert pull.changes(2 + LOOK_MS) == {KEY: None}
    pull.resume(KEY, 2 + LOOK_MS)
    assert len(wanted_of(pull, 2 + LOOK_MS)) == 1
    pull.back_off(2 + LOOK_MS)
    for _ in range(2):
        assert pull.changes(3 + LOOK_MS) == {KEY: None}
    pull.hurry()
    assert len(wanted_of(pull, 3 + LOOK_MS)) == 1
    pull.forget(KEY)
    assert pull.changes(3 + LOOK_MS) == {KEY: None}
    assert pull.changes(3 + LOOK_MS) == {}


def test_a_followers_watermark_does_not_fall_with_a_new_leader(make: Make) -> None:
    """The new leader has not heard of its followers yet; what was safe once is safe still."""
    leader, follower = make(0), make(1)
    lead(leader, follower, 0, (0, 1))
    append(leader, b"a")
    follow(leader, follower)
    assert follower.log.high_watermark == 1
    follower.assume(Role(2, 1, (1, 2), (0, 1, 2), 1))
    follower.append_from_leader(b"", 0, 0, NOW)
    assert follower.log.high_watermark == 1
    follower.log.truncate_to(0, NOW)
    assert follower.log.high_watermark == 0, "but it is never above the log's end"

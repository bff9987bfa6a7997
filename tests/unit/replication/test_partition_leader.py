"""A leader and its followers: watermark, in-sync replicas, proposals to the controller."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.config.topic import TopicOptions
from barnabas.log.file_pool import FilePool
from barnabas.log.files import DiskFiles
from barnabas.log.partition_log import PartitionLog
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.ids import TopicPartition
from barnabas.records.builder import build_batch
from barnabas.replication.isr_state import Proposal
from barnabas.replication.leader_context import LeaderContext
from barnabas.replication.partition import Partition
from barnabas.replication.role import Role

NOW = 1_700_000_000_000
KEY = TopicPartition("t", 0)
LAG_MS = 30_000


class World:
    """A clock to set, and brokers that live or not."""

    def __init__(self) -> None:
        self.now_ms = 1_000_000
        self.alive = {0, 1, 2}

    @property
    def leader_context(self) -> LeaderContext:
        return LeaderContext(lambda: self.now_ms, self.alive.__contains__, lambda: LAG_MS)


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def make(tmp_path: Path, world: World) -> Callable[..., Partition]:
    def partition(isr: tuple[int, ...] = (0, 1, 2), **options: object) -> Partition:
        topic_options = TopicOptions.parse(
            {name.replace("_", "."): str(value) for name, value in options.items()}
        )
        log = PartitionLog.open(FilePool(DiskFiles()), f"{tmp_path}/t-0", KEY, topic_options, NOW)
        made = Partition(KEY, b"i" * 16, log, 0, world.leader_context)
        made.assume(Role(0, 0, isr, (0, 1, 2)))
        return made

    return partition


def append(partition: Partition, count: int = 1, acks: int = -1) -> int:
    batch = build_batch([(NOW, b"k", b"v")] * count)
    return partition.append(bytearray(batch), acks, 9, NOW).first_offset


def fetch(partition: Partition, broker: int, offset: int) -> bool:
    return partition.follower_fetched(broker, 7, offset, 0)


def test_the_watermark_is_what_all_in_sync_replicas_have(make: Callable[..., Partition]) -> None:
    partition = make()
    append(partition, 10)
    assert partition.log.high_watermark == 0
    assert not fetch(partition, 1, 10)
    assert fetch(partition, 2, 4)
    assert partition.log.high_watermark == 4
    assert fetch(partition, 2, 10)
    assert partition.log.high_watermark == 10


def test_a_watermark_never_falls(make: Callable[..., Partition]) -> None:
    """A follower that lost its log fetches from the beginning: what was promised stays."""
    partition = make()
    append(partition, 5)
    fetch(partition, 1, 5)
    fetch(partition, 2, 5)
    assert not fetch(partition, 2, 0)
    assert partition.log.high_watermark == 5


def test_strangers_are_refused(make: Callable[..., Partition]) -> None:
    partition = make()
    with pytest.raises(RequestError) as refusal:
        fetch(partition, 9, 0)
    assert refusal.value.code == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_a_lagging_follower_is_dropped_and_counts_until_that_is_confirmed(
    make: Callable[..., Partition], world: World
) -> None:
    partition = make()
    append(partition, 3)
    fetch(partition, 1, 3)
    fetch(partition, 2, 1)
    world.now_ms += LAG_MS
    assert partition.propose_shrink() is None
    world.now_ms += 1
    fetch(partition, 1, 3)
    proposal = partition.propose_shrink()
    assert proposal == Proposal(KEY, 0, (0, 1), (-1, 7), 0)
    assert partition.propose_shrink() is None, "one proposal at a time"
    assert partition.log.high_watermark == 1
    assert partition.proposal_accepted(proposal, (0, 1), 1)
    assert partition.log.high_watermark == 3
    assert partition.isr == (0, 1)


def test_followers_that_stay_at_the_end_are_never_dropped(
    make: Callable[..., Partition], world: World
) -> None:
    """Without new records nothing is fetched anew; having everything is enough."""
    partition = make()
    append(partition)
    fetch(partition, 1, 1)
    fetch(partition, 2, 1)
    world.now_ms += 100 * LAG_MS
    assert partition.propose_shrink() is None


def test_a_follower_that_keeps_up_with_what_the_leader_had_is_in_sync(
    make: Callable[..., Partition], world: World
) -> None:
    """Under constant load no follower is ever at the end; being at the last end is enough."""
    partition = make()
    end = 0
    for _ in range(50):
        append(partition, 3)
        fetch(partition, 1, end)
        fetch(partition, 2, 0)
        end = partition.log.log_end_offset
        world.now_ms += LAG_MS // 10
    proposal = partition.propose_shrink()
    assert proposal is not None
    assert proposal.isr == (0, 1)


def test_a_follower_joins_when_it_has_all_that_was_promised(
    make: Callable[..., Partition],
) -> None:
    partition = make(isr=(0, 1))
    append(partition, 4)
    fetch(partition, 1, 4)
    assert partition.log.high_watermark == 4
    append(partition, 2)
    fetch(partition, 2, 3)
    assert partition.propose_expansion(2) is None, "below the watermark"
    fetch(partition, 2, 4)
    proposal = partition.propose_expansion(2)
    assert proposal is not None
    assert proposal.isr == (0, 1, 2)
    assert partition.isr == (0, 1)
    assert partition.maximal_isr == {0, 1, 2}
    fetch(partition, 1, 6)
    assert partition.log.high_watermark == 4, "the one that may have joined counts"
    partition.proposal_accepted(proposal, (0, 1, 2), 1)
    assert fetch(partition, 2, 6)
    assert partition.log.high_watermark == 6


def test_a_follower_must_reach_the_leaders_own_epoch(make: Callable[..., Partition]) -> None:
    """Else it may hold records of an older leader that this one never had."""
    partition = make(isr=(0,))
    append(partition, 5)
    partition.assume(Role(0, 1, (0,), (0, 1, 2), 1))
    fetch(partition, 1, 4)
    assert partition.propose_expansion(1) is None
    fetch(partition, 1, 5)
    assert partition.propose_expansion(1) is not None


def test_dead_brokers_do_not_join(make: Callable[..., Partition], world: World) -> None:
    partition = make(isr=(0, 1))
    fetch(partition, 2, 0)
    world.alive.discard(2)
    assert partition.propose_expansion(2) is None


def test_a_refused_proposal(make: Callable[..., Partition]) -> None:
    """Ineligible: forgotten. Fenced: the controller's word is awaited. Others: sent again."""
    partition = make(isr=(0, 1))
    fetch(partition, 2, 0)
    proposal = partition.propose_expansion(2)
    assert proposal is not None
    assert partition.proposal_refused(proposal, ErrorCode.NOT_CONTROLLER) == proposal
    assert partition.proposal_refused(proposal, ErrorCode.FENCED_LEADER_EPOCH) is None
    assert partition.propose_expansion(2) is None
    assert partition.maximal_isr == {0, 1, 2}
    assert partition.proposal_refused(proposal, ErrorCode.INELIGIBLE_REPLICA) is None
    assert partition.maximal_isr == {0, 1}
    assert partition.propose_expansion(2) is not None


def test_the_controllers_word_ends_a_proposal(make: Callable[..., Partition]) -> None:
    partition = make(isr=(0, 1))
    fetch(partition, 2, 0)
    proposal = partition.propose_expansion(2)
    assert proposal is not None
    partition.assume(Role(0, 1, (0,), (0, 1, 2), 5))
    assert partition.isr == (0,)
    assert not partition.proposal_accepted(proposal, (0, 1, 2), 1), "an answer of older times"
    assert partition.isr == (0,)
    assert partition.proposal_refused(proposal, ErrorCode.NOT_CONTROLLER) is None


def test_too_few_in_sync_replicas(make: Callable[..., Partition], world: World) -> None:
    """acks=all is refused, acks=1 is not; the watermark stands still until others are back."""
    partition = make(isr=(0,), min_insync_replicas=2)
    with pytest.raises(RequestError) as refusal:
        append(partition)
    assert refusal.value.code == ErrorCode.NOT_ENOUGH_REPLICAS
    world.now_ms += 2 * LAG_MS
    append(partition, acks=1)
    assert partition.log.high_watermark == 0
    fetch(partition, 1, 1)
    assert partition.log.high_watermark == 0
    proposal = partition.propose_expansion(1)
    assert proposal is not None
    assert partition.proposal_accepted(proposal, (0, 1), 1)
    assert partition.log.high_watermark == 1


def test_the_watermark_waits_for_one_about_to_join(
    make: Callable[..., Partition], world: World
) -> None:
    """Else a leader alone in the set would run away from a follower that has just caught up."""
    partition = make(isr=(0,))
    world.now_ms += 2 * LAG_MS
    append(partition, 2, acks=1)
    assert partition.log.high_watermark == 2, "nobody has caught up lately"
    fetch(partition, 1, 2)
    append(partition, 2, acks=1)
    assert partition.log.high_watermark == 2
    world.now_ms += LAG_MS + 1
    append(partition, 1, acks=1)
    assert partition.log.high_watermark == 5, "it has gone again"


def test_a_new_epoch_forgets_what_followers_said(make: Callable[..., Partition]) -> None:
    partition = make()
    append(partition, 3)
    fetch(partition, 1, 3)
    partition.assume(Role(0, 1, (0, 1, 2), (0, 1, 2), 1))
    fetch(partition, 2, 3)
    assert partition.log.high_watermark == 0
    fetch(partition, 1, 3)
    assert partition.log.high_watermark == 3


def test_followers_follow_watermarks(make: Callable[..., Partition]) -> None:
    partition = make()
    partition.assume(Role(1, 1, (0, 1, 2), (0, 1, 2), 1))
    assert not partition.is_leader
    batch = bytearray(build_batch([(NOW, b"k", b"v")] * 4))
    assert partition.append_from_leader(bytes(batch), 3, 0, NOW) == 1
    assert (partition.log.log_end_offset, partition.log.high_watermark) == (4, 3)
    partition.append_from_leader(b"", 9, 2, NOW)
    assert (partition.log.high_watermark, partition.log.log_start_offset) == (4, 2)


def test_the_low_watermark_counts_live_replicas(
    make: Callable[..., Partition], world: World
) -> None:
    partition = make()
    append(partition, 5)
    for broker in (1, 2):
        partition.follower_fetched(broker, 7, 5, 1)
    partition.log.delete_records_before(3)
    assert partition.low_watermark == 1
    partition.follower_fetched(1, 7, 5, 3)
    world.alive.discard(2)
    assert partition.low_watermark == 3


def test_a_new_leader_with_records_that_are_not_flushed_owes_a_flush(
    make: Callable[..., Partition],
) -> None:
    """What it copied as a follower and had not flushed counts for nothing under such a policy."""
    partition = make(flush_messages=1)
    partition.assume(Role(1, 1, (0, 1, 2), (0, 1, 2)))
    partition.append_from_leader(build_batch([(NOW, b"k", b"v")]), 0, 0, NOW)
    partition.assume(Role(0, 2, (0, 1), (0, 1)))
    assert partition.flush_owed
    assert not fetch(partition, 1, 1)
    partition.log.flush(NOW)
    partition.flushed()
    assert (partition.log.high_watermark, partition.flush_owed) == (1, False)


def test_a_new_leader_knows_its_end_once_its_followers_have_fetched(
    make: Callable[..., Partition],
) -> None:
    """Its predecessor may have shown more to readers than it knows to be safe."""
    partition = make()
    append(partition, 3)
    fetch(partition, 1, 2)
    fetch(partition, 2, 2)
    assert partition.knows_its_end
    partition.assume(Role(0, 1, (0, 1), (0, 1, 2), 1))
    assert not partition.knows_its_end
    fetch(partition, 1, 3)
    assert partition.knows_its_end


def test_a_fetch_of_an_older_life_is_not_believed(make: Callable[..., Partition]) -> None:
    """It comes late, over a connection of its own, and tells of records that may be lost since."""
    partition = make()
    append(partition, 5)
    fetch(partition, 1, 2)
    with pytest.raises(RequestError) as refused:
        partition.follower_fetched(1, 6, 5, 0)
    assert refused.value.code is ErrorCode.STALE_BROKER_EPOCH
    assert [follower.end_offset for follower in partition.followers if follower.broker_id == 1] == [
        2
    ]


def test_a_follower_that_tells_no_life_is_believed(make: Callable[..., Partition]) -> None:
    """As one that was downgraded to a version whose fetches do not carry it."""
    partition = make()
    append(partition, 10)
    fetch(partition, 1, 10)
    assert partition.follower_fetched(2, 7, 4, 0)
    assert partition.follower_fetched(2, -1, 10, 0)
    assert partition.log.high_watermark == 10

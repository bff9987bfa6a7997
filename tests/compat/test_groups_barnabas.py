"""Consumer groups with our own consumer, alone and together with members of other libraries.

However many members come, leave or stop: a partition has one owner at a time, every record is
processed, and committed offsets never go back.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from tests.compat.group_members import SESSION_TIMEOUT_MS, Ledger, Member, Place, drive
from tests.compat.samples import until_deadline
from tests.compat.test_groups_confluent_kafka import ConfluentMember
from tests.compat.test_groups_kafka_python import PythonMember, _assignor

from barnabas import (
    ConsumerRebalanceListener,
    KafkaAdminClient,
    KafkaConsumer,
    KafkaProducer,
    OffsetAndMetadata,
    TopicPartition,
)
from barnabas.errors import CommitFailedError, FencedInstanceIdError, RebalanceInProgressError

pytestmark = pytest.mark.compat


class OurMember(ConsumerRebalanceListener):
    """A member that commits what it has processed after every poll."""

    def __init__(self, bootstrap: str, group: str, ledger: Ledger, name: str, **more: Any) -> None:
        self.name = name
        self.ledger = ledger
        self.paused = False
        self.lost: list[Place] = []
        self._owed: dict[TopicPartition, int] = {}
        """What was processed and not committed yet: a rebalance under way refuses commits, and who
        keeps a partition through it does not read its records again."""
        topics, pattern = more.pop("topics", []), more.pop("pattern", None)
        settings: dict[str, Any] = {
            "session_timeout_ms": SESSION_TIMEOUT_MS,
            "heartbeat_interval_ms": 50,
            "fetch_max_wait_ms": 50,
            "metadata_max_age_ms": 200,
            **more,
        }
        self.consumer = KafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=group,
            client_id=name,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            **settings,
        )
        self.consumer.subscribe(topics=topics, pattern=pattern, listener=self)

    def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        self.ledger.assigned(self.name, [(each.topic, each.partition) for each in assigned])
        for partition in assigned:
            committed = self.consumer.committed(partition)
            self.ledger.resumes(tuple(partition), committed or 0)

    def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        self._give_up(revoked)

    def on_partitions_lost(self, lost: set[TopicPartition]) -> None:
        self.lost += [(each.topic, each.partition) for each in lost]
        self._give_up(lost)

    def _give_up(self, partitions: set[TopicPartition]) -> None:
        for partition in partitions:
            self._owed.pop(partition, None)  # its next owner reads that again
        self.ledger.revoked(self.name, [(each.topic, each.partition) for each in partitions])

    def step(self) -> None:
        if self.paused:
            return
        polled = self.consumer.poll(timeout_ms=5)
        for partition, records in polled.items():
            for record in records:
                self.ledger.read(self.name, tuple(partition), record.offset)
            self._owed[partition] = records[-1].offset + 1
        if not self._owed:
            return
        try:
            self.consumer.commit(
                {place: OffsetAndMetadata(offset, "", -1) for place, offset in self._owed.items()}
            )
        except (CommitFailedError, RebalanceInProgressError):
            return
        for partition, offset in self._owed.items():
            self.ledger.has_committed(tuple(partition), offset)
        self._owed.clear()

    def leave(self, others: Sequence[Member] = ()) -> None:
        self.consumer.close()  # tells of what it gives up before the group hears of it
        self.ledger.vanished(self.name)


class Crowd:
    """The members of one group in one test; whoever is left at the end is closed."""

    def __init__(self, bootstrap: str, group: str) -> None:
        self.bootstrap = bootstrap
        self.group = group
        self.ledger = Ledger()
        self.members: list[Any] = []
        self._numbers = itertools.count()

    def join(self, count: int = 1, **more: Any) -> list[OurMember]:
        new = [
            OurMember(self.bootstrap, self.group, self.ledger, self.next_name(), **more)
            for _ in range(count)
        ]
        self.members += new
        return new

    def next_name(self) -> str:
        return f"member-{next(self._numbers)}"

    def leave(self, member: Any) -> None:
        self.members.remove(member)
        member.leave(self.members)

    def drive(self, until: Any, what: str) -> None:
        drive(self.members, until, what)

    def drive_to_shares(self, *shares: int) -> None:
        self.drive(lambda: self.ledger.shares(self.members) == sorted(shares), f"shares {shares}")

    def close(self) -> None:
        while self.members:
            self.leave(self.members[-1])


@pytest.fixture
def crowd(quick_bootstrap: str, name: str) -> Iterator[Crowd]:
    gathered = Crowd(quick_bootstrap, f"group-of-{name}")
    yield gathered
    gathered.close()
    gathered.ledger.check()


@pytest.fixture
def admin(quick_bootstrap: str) -> Iterator[KafkaAdminClient]:
    client = KafkaAdminClient(bootstrap_servers=quick_bootstrap)
    yield client
    client.close()


def create(admin: KafkaAdminClient, topic: str, partitions: int) -> list[Place]:
    admin.create_topics({topic: {"num_partitions": partitions, "replication_factor": 1}})
    return [(topic, number) for number in range(partitions)]


def produce(bootstrap: str, wanted: Sequence[Place], count: int) -> None:
    producer = KafkaProducer(bootstrap_servers=bootstrap, linger_ms=5)
    futures = [
        producer.send(topic, value=b"%d" % number, partition=partition)
        for number in range(count)
        for topic, partition in wanted
    ]
    for future in futures:
        future.get(timeout=30)
    producer.close(timeout=30)


STRATEGIES = {
    "range": {"partition_assignment_strategy": "range"},
    "sticky": {"partition_assignment_strategy": ["sticky", "roundrobin"]},
    "cooperative-sticky": {"partition_assignment_strategy": "cooperative-sticky"},
    "consumer": {"group_protocol": "consumer"},
}


@pytest.mark.parametrize("kind", STRATEGIES)
def test_members_come_and_go(
    quick_bootstrap: str, admin: KafkaAdminClient, crowd: Crowd, name: str, kind: str
) -> None:
    """One, two and seven members share; when some go, the others take over."""
    wanted = create(admin, name, 7)
    produce(quick_bootstrap, wanted, 10)
    more: dict[str, Any] = {"topics": [name], **STRATEGIES[kind]}
    crowd.join(**more)
    crowd.drive_to_shares(7)
    crowd.join(**more)
    crowd.drive_to_shares(3, 4)
    crowd.join(5, **more)
    crowd.drive_to_shares(1, 1, 1, 1, 1, 1, 1)
    produce(quick_bootstrap, wanted, 10)
    for member in crowd.members[:5]:
        crowd.leave(member)
    crowd.drive_to_shares(3, 4)
    crowd.drive(
        lambda: crowd.ledger.committed == dict.fromkeys(wanted, 20),
        "all records are processed and committed",
    )
    assert crowd.ledger.has_read(wanted, 20)


@pytest.mark.parametrize("kind", ["range", "cooperative-sticky", "consumer"])
def test_a_member_that_does_not_poll_makes_room_and_comes_back(
    quick_bootstrap: str, admin: KafkaAdminClient, crowd: Crowd, name: str, kind: str
) -> None:
    """It is told that it lost its partitions before it joins again."""
    wanted = create(admin, name, 4)
    produce(quick_bootstrap, wanted, 5)
    more: dict[str, Any] = {"topics": [name], **STRATEGIES[kind]}
    # It alone must poll in time, and is given as much of it as a busy machine may need.
    [first] = crowd.join(max_poll_interval_ms=5000, **more)
    [second] = crowd.join(**more)
    crowd.drive_to_shares(2, 2)
    first.paused = True
    had = crowd.ledger.of(first.name)
    crowd.ledger.vanished(first.name)
    crowd.drive(lambda: len(crowd.ledger.of(second.name)) == 4, "the other has all")
    first.paused = False
    crowd.drive_to_shares(2, 2)
    assert sorted(first.lost) == had
    crowd.drive(lambda: crowd.ledger.has_read(wanted, 5), "all records are processed")


def test_a_static_member_comes_back_without_a_rebalance(
    quick_bootstrap: str, admin: KafkaAdminClient, crowd: Crowd, name: str
) -> None:
    """It gets what it had; the others hear nothing of it."""
    create(admin, name, 4)
    more: dict[str, Any] = {"topics": [name], "partition_assignment_strategy": "range"}
    [first] = crowd.join(group_instance_id="one", **more)
    [second] = crowd.join(group_instance_id="two", **more)
    crowd.drive_to_shares(2, 2)
    had, told = crowd.ledger.of(first.name), crowd.ledger.assignments[second.name]
    crowd.leave(first)
    [again] = crowd.join(group_instance_id="one", **more)
    crowd.drive_to_shares(2, 2)
    assert crowd.ledger.of(again.name) == had
    assert crowd.ledger.assignments[second.name] == told


def test_two_members_with_one_instance_id_fence_each_other(
    admin: KafkaAdminClient, crowd: Crowd, name: str
) -> None:
    """The first is told, at every poll, that another has its place."""
    create(admin, name, 1)
    [first] = crowd.join(topics=[name], group_instance_id="one")
    crowd.drive_to_shares(1)
    crowd.members.remove(first)
    crowd.ledger.vanished(first.name)
    crowd.join(topics=[name], group_instance_id="one")
    crowd.drive_to_shares(1)
    for _ in range(2):
        with pytest.raises(FencedInstanceIdError, match="one"):
            poll_for_ever(first)
    first.consumer.close()


def poll_for_ever(member: OurMember) -> None:
    for _ in until_deadline("an exception"):
        member.consumer.poll(timeout_ms=10)


@pytest.mark.parametrize("kind", ["range", "cooperative-sticky", "consumer"])
def test_a_pattern_follows_topics_and_partitions(
    quick_bootstrap: str, admin: KafkaAdminClient, crowd: Crowd, name: str, kind: str
) -> None:
    """New topics and added partitions are found, and their records read from the first on."""
    wanted = create(admin, f"{name}.first", 2)
    pattern = f"^{re.escape(name)}[.].*"
    crowd.join(2, pattern=pattern, **STRATEGIES[kind])
    crowd.drive(lambda: set(crowd.ledger.owner) == set(wanted), "the first topic is found")
    wanted += create(admin, f"{name}.second", 1)
    crowd.drive(lambda: set(crowd.ledger.owner) == set(wanted), "the second topic is found")
    admin.create_partitions({f"{name}.second": 3})
    wanted += [(f"{name}.second", 1), (f"{name}.second", 2)]
    crowd.drive(lambda: set(crowd.ledger.owner) == set(wanted), "new partitions are found")
    produce(quick_bootstrap, wanted, 4)
    crowd.drive(lambda: crowd.ledger.has_read(wanted, 4), "all records are processed")


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_members_of_other_libraries_share_with_ours(
    quick_bootstrap: str, admin: KafkaAdminClient, crowd: Crowd, name: str, strategy: str
) -> None:
    """kafka-python, confluent-kafka and ours in one group; whoever leads, all agree."""
    wanted = create(admin, name, 6)
    produce(quick_bootstrap, wanted, 10)
    python = PythonMember(
        quick_bootstrap,
        crowd.group,
        crowd.ledger,
        crowd.next_name(),
        topics=[name],
        partition_assignment_strategy=[_assignor(strategy)],
    )
    crowd.members.append(python)
    crowd.drive_to_shares(6)
    crowd.join(topics=[name], partition_assignment_strategy=strategy)
    crowd.drive_to_shares(3, 3)
    confluent = ConfluentMember(
        quick_bootstrap,
        crowd.group,
        [name],
        crowd.ledger,
        crowd.next_name(),
        partition_assignment_strategy=strategy,
    )
    crowd.members.append(confluent)
    crowd.drive_to_shares(2, 2, 2)
    crowd.leave(python)
    crowd.drive_to_shares(3, 3)
    crowd.join(topics=[name], partition_assignment_strategy=strategy)
    crowd.drive_to_shares(2, 2, 2)
    produce(quick_bootstrap, wanted, 10)
    crowd.drive(
        lambda: crowd.ledger.committed == dict.fromkeys(wanted, 20),
        "all records are processed and committed",
    )
    assert crowd.ledger.has_read(wanted, 20)

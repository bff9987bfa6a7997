"""Consumer groups and transactions with kafka-python."""

from __future__ import annotations

import itertools
import re
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from tests.compat.group_members import (
    SESSION_TIMEOUT_MS,
    Ledger,
    Life,
    Member,
    Place,
    drive,
)
from tests.compat.samples import until_deadline

with warnings.catch_warnings():
    # It reads its schemas through functions of the standard library that are on its way out.
    warnings.filterwarnings("ignore", "(read|open)_text is deprecated", DeprecationWarning)
    from kafka import (
        ConsumerRebalanceListener,
        KafkaAdminClient,
        KafkaConsumer,
        KafkaProducer,
        OffsetAndMetadata,
        TopicPartition,
        errors,
    )

pytestmark = pytest.mark.compat


class PythonMember(ConsumerRebalanceListener):  # type: ignore[misc]  # it has no types
    """A member that commits what it has processed after every poll.

    Its polls are long: kafka-python forgets that it has joined its group, and begins anew, when
    the join ends between two polls.
    """

    def __init__(self, bootstrap: str, group: str, ledger: Ledger, name: str, **more: Any) -> None:
        self.name = name
        self.ledger = ledger
        self._owed: dict[TopicPartition, int] = {}
        """What was processed and not committed yet: a rebalance under way refuses commits, and who
        keeps a partition through it does not read its records again."""
        self._poll_ms = more.pop("poll_ms", 1000)
        topics, pattern = more.pop("topics", []), more.pop("pattern", None)
        self.consumer = KafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=group,
            client_id=name,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            session_timeout_ms=SESSION_TIMEOUT_MS,
            heartbeat_interval_ms=50,
            fetch_max_wait_ms=50,
            metadata_max_age_ms=200,
            **more,
        )
        self.consumer.subscribe(topics=topics, pattern=pattern, listener=self)
        self.life = Life(name, self._turn, self._depart)
        self.life.begin()

    def on_partitions_assigned(self, assigned: Any) -> None:
        self.ledger.assigned(self.name, [tuple(each) for each in assigned])

    def on_partitions_revoked(self, revoked: Any) -> None:
        for partition in revoked:
            self._owed.pop(partition, None)  # its next owner reads that again
        self.ledger.revoked(self.name, [tuple(each) for each in revoked])

    def step(self) -> None:
        self.life.check()

    def leave(self, others: Sequence[Member] = ()) -> None:
        self.life.end()
        drive(others, self.life.has_ended, f"{self.name} has left")

    def _turn(self) -> None:
        polled = self.consumer.poll(timeout_ms=self._poll_ms)
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
        except (errors.CommitFailedError, errors.RebalanceInProgressError):
            return
        for partition, offset in self._owed.items():
            self.ledger.has_committed(tuple(partition), offset)
        self._owed.clear()

    def _depart(self) -> None:
        self.ledger.vanished(self.name)  # before the others hear of it and share what it had
        self.consumer.close()


@pytest.fixture
def admin(quick_bootstrap: str) -> Iterator[KafkaAdminClient]:
    client = KafkaAdminClient(bootstrap_servers=quick_bootstrap)
    yield client
    client.close()


def create(admin: KafkaAdminClient, topic: str, partitions: int) -> list[Place]:
    admin.create_topics({topic: {"num_partitions": partitions, "replication_factor": 1}})
    admin.wait_for_topics([topic])
    return [(topic, number) for number in range(partitions)]


def produce(bootstrap: str, wanted: list[Place], count: int) -> None:
    producer = KafkaProducer(bootstrap_servers=bootstrap, linger_ms=5)
    futures = [
        producer.send(topic, value=b"%d" % number, partition=partition)
        for number in range(count)
        for topic, partition in wanted
    ]
    for future in futures:
        future.get(timeout=30)
    producer.close(timeout=30)


@pytest.fixture
def join(quick_bootstrap: str, name: str) -> Iterator[Any]:
    """Make members of one group; they are closed and looked over at the end."""
    ledger, members, numbers = Ledger(), [], itertools.count()

    def new(**more: Any) -> PythonMember:
        label = f"member-{next(numbers)}"
        member = PythonMember(quick_bootstrap, f"group-of-{name}", ledger, label, **more)
        members.append(member)
        return member

    yield new
    for member in members:
        member.life.end()
    for member in members:
        member.leave()
    ledger.check()


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_members_come_and_go(
    quick_bootstrap: str, admin: KafkaAdminClient, join: Any, name: str, strategy: str
) -> None:
    wanted = create(admin, name, 6)
    produce(quick_bootstrap, wanted, 10)
    assignors = {"range": _assignor("range"), "cooperative-sticky": _assignor(strategy)}
    more = {"topics": [name], "partition_assignment_strategy": [assignors[strategy]]}
    members = [join(**more), join(**more)]
    ledger = members[0].ledger
    drive(members, lambda: ledger.shares(members) == [3, 3], "two members share")
    members.append(join(**more))
    drive(members, lambda: ledger.shares(members) == [2, 2, 2], "three members share")
    gone = members.pop(0)
    gone.leave(members)
    drive(members, lambda: ledger.shares(members) == [3, 3], "two members share again")
    produce(quick_bootstrap, wanted, 10)
    drive(
        members,
        lambda: ledger.committed == dict.fromkeys(wanted, 20),
        "all records are processed and committed",
    )
    assert ledger.has_read(wanted, 20)


def test_seven_members(quick_bootstrap: str, admin: KafkaAdminClient, join: Any, name: str) -> None:
    wanted = create(admin, name, 8)
    produce(quick_bootstrap, wanted, 10)
    strategy = [_assignor("range")]
    members = [join(topics=[name], partition_assignment_strategy=strategy) for _ in range(7)]
    ledger = members[0].ledger
    even = [1, 1, 1, 1, 1, 1, 2]
    drive(members, lambda: ledger.shares(members) == even, "all have a share")
    committed = dict.fromkeys(wanted, 10)
    drive(members, lambda: ledger.committed == committed, "all is processed and committed")
    assert ledger.has_read(wanted, 10)


def _assignor(name: str) -> Any:
    from kafka.coordinator.assignors.range import RangePartitionAssignor

    if name == "range":
        return RangePartitionAssignor
    from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor

    return CooperativeStickyAssignor


def test_a_pattern_and_a_static_member(
    quick_bootstrap: str, admin: KafkaAdminClient, join: Any, name: str
) -> None:
    wanted = create(admin, f"{name}.first", 2)
    pattern = f"^{re.escape(name)}[.].*"
    # It reads the metadata of all topics before it joins again, in the time of one poll, and what
    # is left of that must do for the join: a poll of 0.5 s never got there among 300 topics.
    member = join(pattern=pattern, group_instance_id="one", poll_ms=5000)
    ledger = member.ledger
    drive([member], lambda: set(ledger.owner) == set(wanted), "the first topic is found")
    wanted += create(admin, f"{name}.second", 1)
    drive([member], lambda: set(ledger.owner) == set(wanted), "the second topic is found")
    produce(quick_bootstrap, wanted, 4)
    drive([member], lambda: ledger.has_read(wanted, 4), "all records are processed")


def transactional(bootstrap: str, transactional_id: str, **more: Any) -> KafkaProducer:
    producer = KafkaProducer(
        bootstrap_servers=bootstrap, transactional_id=transactional_id, linger_ms=0, **more
    )
    producer.init_transactions()
    return producer


def committed_values(bootstrap: str, topic: str) -> list[bytes]:
    """Read partition 0 up to the last stable offset."""
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap,
        enable_auto_commit=False,
        isolation_level="read_committed",
        fetch_max_wait_ms=50,
    )
    partition = TopicPartition(topic, 0)
    consumer.assign([partition])
    consumer.seek_to_beginning(partition)
    end = consumer.end_offsets([partition])[partition]
    values: list[bytes] = []
    for _ in until_deadline("the end of the topic"):
        for records in consumer.poll(timeout_ms=100).values():
            values += [record.value for record in records]
        if consumer.position(partition) >= end:
            break
    consumer.close()
    return values


def test_transactions_commit_abort_and_fence(
    quick_bootstrap: str, admin: KafkaAdminClient, name: str
) -> None:
    create(admin, name, 1)
    producer = transactional(quick_bootstrap, name)
    for text, commits in ((b"first", True), (b"second", False), (b"third", True)):
        producer.begin_transaction()
        for number in range(3):
            producer.send(name, value=b"%s %d" % (text, number)).get(timeout=30)
        if commits:
            producer.commit_transaction()
        else:
            producer.abort_transaction()
    expected = [b"%s %d" % (text, number) for text in (b"first", b"third") for number in range(3)]
    for _ in until_deadline("the last markers are written"):
        if committed_values(quick_bootstrap, name) == expected:
            break
    producer.begin_transaction()
    producer.send(name, value=b"of the zombie").get(timeout=30)
    heir = transactional(quick_bootstrap, name)
    with pytest.raises(errors.KafkaError) as fenced:
        producer.commit_transaction()
    assert isinstance(
        fenced.value, (errors.ProducerFencedError, errors.InvalidProducerEpochError)
    ), fenced.value
    heir.begin_transaction()
    heir.send(name, value=b"of the heir").get(timeout=30)
    heir.commit_transaction()
    for _ in until_deadline("the last marker is written"):
        if committed_values(quick_bootstrap, name) == [*expected, b"of the heir"]:
            break
    producer.close(timeout=5)
    heir.close(timeout=5)


def test_offsets_are_committed_with_their_transaction(
    quick_bootstrap: str, admin: KafkaAdminClient, name: str
) -> None:
    create(admin, name, 1)
    produce(quick_bootstrap, [(name, 0)], 5)
    consumer = KafkaConsumer(
        name,
        bootstrap_servers=quick_bootstrap,
        group_id=f"group-of-{name}",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
    )
    partition = TopicPartition(name, 0)
    for _ in until_deadline("records"):
        if consumer.poll(timeout_ms=1000):
            break
    producer = transactional(quick_bootstrap, name)
    for offset, commits, expected in ((3, False, None), (4, True, 4), (5, False, 4)):
        producer.begin_transaction()
        producer.send_offsets_to_transaction(
            {partition: OffsetAndMetadata(offset, "", -1)}, consumer.group_metadata()
        )
        if commits:
            producer.commit_transaction()
            for _ in until_deadline("the marker's offset counts"):
                if consumer.committed(partition) == expected:
                    break
        else:
            producer.abort_transaction()
            assert consumer.committed(partition) == expected
    producer.close(timeout=5)
    consumer.close()

"""Consumer groups with confluent-kafka (librdkafka), in the classic protocol.

However many members come, leave or stop: a partition has one owner at a time, every record is
processed, and committed offsets never go back.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from confluent_kafka import (
    Consumer,
    ConsumerGroupState,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewTopic
from tests.compat.group_members import (
    SESSION_TIMEOUT_MS,
    Ledger,
    Life,
    Member,
    Place,
    drive,
)
from tests.compat.samples import until_deadline

pytestmark = pytest.mark.compat

STALE_MEMBER_EPOCH = 113
"""Says in the consumer protocol what REBALANCE_IN_PROGRESS says in the classic one: the member's
epoch has risen while its commit was on its way. confluent-kafka has no name for it."""

REFUSED_WHILE_REBALANCING = {
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.REBALANCE_IN_PROGRESS,
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError.FENCED_INSTANCE_ID,
    KafkaError._STATE,
    KafkaError._NO_OFFSET,
    STALE_MEMBER_EPOCH,
}


class ConfluentMember:
    """A member that commits each record by itself, after it has processed it."""

    def __init__(
        self, bootstrap: str, group: str, topics: list[str], ledger: Ledger, name: str, **more: Any
    ) -> None:
        self.name = name
        self.ledger = ledger
        self._closing = False
        self._owed: dict[Place, int] = {}
        """What was processed and not committed yet: a rebalance under way refuses commits, and who
        keeps a partition through it does not read its records again."""
        settings = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "client.id": name,
            "enable.auto.commit": "false",
            "auto.offset.reset": "earliest",
            "session.timeout.ms": SESSION_TIMEOUT_MS,
            "heartbeat.interval.ms": 50,
            "fetch.wait.max.ms": 50,
            "topic.metadata.refresh.interval.ms": 200,
            "partition.assignment.strategy": "range",
            **{key.replace("_", "."): value for key, value in more.items()},
        }
        self.consumer = Consumer({key: value for key, value in settings.items() if value})
        self.consumer.subscribe(
            topics, on_assign=self._assigned, on_revoke=self._gives_up, on_lost=self._gives_up
        )
        self.life = Life(name, self._turn, self._depart)
        self.life.begin()

    def step(self) -> None:
        self.life.check()

    def leave(self, others: Sequence[Member] = ()) -> None:
        self.life.end()
        drive(others, self.life.has_ended, f"{self.name} has left")

    def _turn(self) -> None:
        message = self.consumer.poll(0.05)
        if message is not None and message.error() is not None:
            error = message.error()
            # What librdkafka tells of a member that did not poll in time: it has left the group.
            assert error.code() == KafkaError._MAX_POLL_EXCEEDED or error.retriable(), error
        elif message is not None:
            place, offset = (message.topic(), message.partition()), message.offset()
            self.ledger.read(self.name, place, offset)
            self._owed[place] = offset + 1
        self._commit()

    def _commit(self) -> None:
        """Commit what is owed, until something is refused."""
        for place, offset in list(self._owed.items()):
            try:
                self.consumer.commit(offsets=[TopicPartition(*place, offset)], asynchronous=False)
            except KafkaException as refusal:
                if refusal.args[0].code() not in REFUSED_WHILE_REBALANCING:
                    raise
                return
            del self._owed[place]
            self.ledger.has_committed(place, offset)

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self.ledger.assigned(self.name, places(partitions))
        if self._closing:
            return  # a client that is on its way out asks for no offsets any more
        for each in consumer.committed(partitions, timeout=60):
            self.ledger.resumes((each.topic, each.partition), max(each.offset, 0))

    def _gives_up(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        for place in places(partitions):
            self._owed.pop(place, None)  # its next owner reads that again
        self.ledger.revoked(self.name, places(partitions))

    def _depart(self) -> None:
        self._closing = True
        self.consumer.close()
        self.ledger.vanished(self.name)


class Crowd:
    """The members of one group in one test; whoever is left at the end is closed."""

    def __init__(self, bootstrap: str, group: str) -> None:
        self.bootstrap = bootstrap
        self.group = group
        self.ledger = Ledger()
        self.members: list[ConfluentMember] = []
        self._numbers = itertools.count()

    def begin_at_zero(self, wanted: list[Place]) -> None:
        """Commit the beginning of some partitions, before anybody joins.

        Where nothing is committed librdkafka (2.16) asks for the earliest offset; an answer that is
        outdated by a rebalance which leaves it the partition starts a timer, and half a second
        later that one throws it back to the beginning, from wherever it is by then.
        """
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": self.group})
        beginnings = [TopicPartition(*place, 0) for place in wanted]
        consumer.commit(offsets=beginnings, asynchronous=False)
        consumer.close()

    def join(self, topics: list[str], count: int = 1, **more: Any) -> list[ConfluentMember]:
        new = [
            ConfluentMember(
                self.bootstrap,
                self.group,
                topics,
                self.ledger,
                f"member-{next(self._numbers)}",
                **more,
            )
            for _ in range(count)
        ]
        self.members += new
        return new

    def leave(self, member: ConfluentMember) -> None:
        self.members.remove(member)
        member.leave(self.members)

    def close(self) -> None:
        """Let everybody go at once: nobody waits for a rebalance that somebody's leaving begins."""
        for member in self.members:
            member.life.end()
        for member in self.members:
            member.leave()

    def settle(self, wanted: list[Place], what: str) -> None:
        """Drive everybody until all partitions have an owner and shares differ by one at most."""

        def is_settled() -> bool:
            shares = self.ledger.shares(self.members)
            is_even = sum(shares) == len(wanted) and shares[-1] - shares[0] <= 1
            return is_even and set(self.ledger.owner) == set(wanted)

        drive(self.members, is_settled, what)

    def read(self, wanted: list[Place], count: int, what: str) -> None:
        """Drive everybody until all records were processed and committed."""

        def is_done() -> bool:
            done = self.ledger.committed
            return self.ledger.has_read(wanted, count) and all(
                done.get(place) == count for place in wanted
            )

        drive(self.members, is_done, what)


def places(partitions: list[TopicPartition]) -> list[Place]:
    return [(each.topic, each.partition) for each in partitions]


def create(bootstrap: str, topic: str, partitions: int) -> list[Place]:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    new = NewTopic(topic, num_partitions=partitions, replication_factor=1)
    admin.create_topics([new])[topic].result(30)
    return [(topic, number) for number in range(partitions)]


def produce(bootstrap: str, wanted: list[Place], count: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
    for number in range(count):
        for topic, partition in wanted:
            producer.produce(topic, value=b"%d" % number, partition=partition)
    assert producer.flush(30) == 0


@pytest.fixture
def crowd(quick_bootstrap: str, name: str) -> Iterator[Crowd]:
    crowd = Crowd(quick_bootstrap, f"group-of-{name}")
    yield crowd
    crowd.close()
    crowd.ledger.check()


@pytest.mark.parametrize("count", [1, 2, 7])
def test_members_share_a_topic_and_take_over_from_who_leaves(
    crowd: Crowd, name: str, count: int
) -> None:
    wanted = create(crowd.bootstrap, name, 8)
    produce(crowd.bootstrap, wanted, 10)
    crowd.join([name], count)
    crowd.settle(wanted, f"{count} members share 8 partitions")
    crowd.read(wanted, 10, "all records are processed")
    (late,) = crowd.join([name])
    crowd.settle(wanted, "one more has its share")
    crowd.leave(crowd.members[0])
    crowd.settle(wanted, "the others share what one left")
    produce(crowd.bootstrap, wanted, 10)
    crowd.read(wanted, 20, "what came later is processed too")
    assert late in crowd.members


def test_fifty_members(crowd: Crowd, name: str) -> None:
    wanted = create(crowd.bootstrap, name, 50)
    produce(crowd.bootstrap, wanted, 2)
    crowd.join([name], 50, heartbeat_interval_ms=300)
    crowd.settle(wanted, "50 members have a partition each")
    crowd.read(wanted, 2, "all records are processed")


def test_a_member_that_does_not_poll_loses_its_partitions_and_comes_back(
    crowd: Crowd, name: str
) -> None:
    wanted = create(crowd.bootstrap, name, 4)
    produce(crowd.bootstrap, wanted, 5)
    # It alone must poll in time, and is given as much of it as a busy machine may need.
    (sleepy,) = crowd.join([name], session_timeout_ms=6000, max_poll_interval_ms=6000)
    (awake,) = crowd.join([name])
    crowd.settle(wanted, "two members share 4 partitions")
    crowd.read(wanted, 5, "all records are processed")
    sleepy.life.pause()
    drive(crowd.members, lambda: sleepy.life.is_paused, "it takes no more turns")
    crowd.ledger.vanished(sleepy.name)
    drive(
        [awake],
        lambda: len(crowd.ledger.of(awake.name)) == 4,
        "the other one takes over",
    )
    sleepy.life.resume()
    crowd.settle(wanted, "both share again")
    produce(crowd.bootstrap, wanted, 5)
    crowd.read(wanted, 10, "what came later is processed too")


def test_a_pattern_finds_topics_that_are_made_later(crowd: Crowd, name: str) -> None:
    wanted = create(crowd.bootstrap, f"{name}.first", 2)
    create(crowd.bootstrap, f"not.{name}", 2)
    crowd.join([f"^{name.replace('.', '[.]')}[.].*"], 2)
    crowd.settle(wanted, "the first topic is shared")
    wanted += create(crowd.bootstrap, f"{name}.second", 2)
    crowd.settle(wanted, "the second one is found and shared")
    produce(crowd.bootstrap, wanted, 3)
    crowd.read(wanted, 3, "all records are processed")


def test_a_static_member_restarts_without_a_rebalance(crowd: Crowd, name: str) -> None:
    wanted = create(crowd.bootstrap, name, 4)
    produce(crowd.bootstrap, wanted, 3)
    (first,) = crowd.join([name], group_instance_id="one")
    (second,) = crowd.join([name], group_instance_id="two")
    crowd.settle(wanted, "two static members share")
    crowd.read(wanted, 3, "all records are processed")
    had, turns = crowd.ledger.of(first.name), crowd.ledger.assignments[second.name]
    crowd.leave(first)  # librdkafka does not leave the group of a static member
    (again,) = crowd.join([name], group_instance_id="one")
    crowd.settle(wanted, "the restarted one has its partitions again")
    assert crowd.ledger.of(again.name) == had
    assert crowd.ledger.assignments[second.name] == turns
    produce(crowd.bootstrap, wanted, 3)
    crowd.read(wanted, 6, "what came later is processed too")


def test_a_static_id_that_is_used_twice_fences_the_first(crowd: Crowd, name: str) -> None:
    wanted = create(crowd.bootstrap, name, 2)
    (old,) = crowd.join([name], group_instance_id="twin")
    crowd.settle(wanted, "the first one has all")
    old.life.pause()
    drive(crowd.members, lambda: old.life.is_paused, "it takes no more turns")
    crowd.members.remove(old)
    crowd.ledger.vanished(old.name)
    crowd.join([name], group_instance_id="twin")
    crowd.settle(wanted, "the second one has all")
    for left in until_deadline("the first one is told that it is fenced"):
        message = old.consumer.poll(min(left, 0.05))
        if message is not None and message.error() is not None:
            assert message.error().code() in (
                KafkaError._FATAL,
                KafkaError.FENCED_INSTANCE_ID,
            ), message.error()
            break
    old.leave(crowd.members)


def test_cooperative_members_keep_what_they_need_not_give(crowd: Crowd, name: str) -> None:
    wanted = create(crowd.bootstrap, name, 6)
    crowd.begin_at_zero(wanted)
    produce(crowd.bootstrap, wanted, 5)
    strategy = {"partition_assignment_strategy": "cooperative-sticky"}
    (first,) = crowd.join([name], **strategy)
    crowd.settle(wanted, "the first member has all")
    crowd.join([name], **strategy)
    crowd.settle(wanted, "two members share")
    assert len(crowd.ledger.revocations[first.name]) == 3
    crowd.join([name], **strategy)
    crowd.settle(wanted, "three members share")
    crowd.read(wanted, 5, "all records are processed")


def test_commits_in_every_manner(quick_bootstrap: str, name: str) -> None:
    """Sync, async, by message, by offset with a note; seek does not touch what is committed."""
    create(quick_bootstrap, name, 1)
    produce(quick_bootstrap, [(name, 0)], 10)
    told: list[tuple[KafkaError | None, list[TopicPartition]]] = []
    settings = {
        "bootstrap.servers": quick_bootstrap,
        "group.id": f"group-of-{name}",
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "on_commit": lambda error, partitions: told.append((error, partitions)),
    }
    consumer = Consumer(settings)
    consumer.subscribe([name])
    messages: list[Message] = []
    for left in until_deadline("10 records"):
        messages += consumer.consume(10 - len(messages), min(left, 0.1))
        if len(messages) == 10:
            break

    def committed() -> TopicPartition:
        (found,) = consumer.committed([TopicPartition(name, 0)], timeout=60)
        return found

    assert committed().offset < 0
    consumer.commit(messages[2], asynchronous=False)
    assert committed().offset == 3
    consumer.commit(messages[4], asynchronous=True)
    for _ in until_deadline("the asynchronous commit is told of"):
        consumer.poll(0.05)
        if any(partitions[0].offset == 5 for error, partitions in told if error is None):
            break
    assert committed().offset == 5
    consumer.commit(offsets=[TopicPartition(name, 0, 7, metadata="a note")], asynchronous=False)
    assert (committed().offset, committed().metadata) == (7, "a note")
    consumer.seek(TopicPartition(name, 0, 1))
    for _ in until_deadline("the record that was sought"):
        message = consumer.poll(0.1)
        if message is not None:
            assert message.offset() == 1
            break
    assert committed().offset == 7
    consumer.close()

    again = Consumer(settings)
    again.subscribe([name])
    for _ in until_deadline("the record after the committed offset"):
        message = again.poll(0.1)
        if message is not None:
            assert message.offset() == 7
            break
    again.close()


def test_an_offset_out_of_range_is_reset_as_the_member_asks(
    quick_bootstrap: str, name: str
) -> None:
    create(quick_bootstrap, name, 1)
    produce(quick_bootstrap, [(name, 0)], 3)
    for policy, expected in (("earliest", 0), ("latest", 3)):
        settings = {
            "bootstrap.servers": quick_bootstrap,
            "group.id": f"{policy}-of-{name}",
            "auto.offset.reset": policy,
        }
        consumer = Consumer(settings)
        consumer.commit(offsets=[TopicPartition(name, 0, 100)], asynchronous=False)
        consumer.subscribe([name])
        for _ in until_deadline("a position"):
            consumer.poll(0.1)
            (position,) = consumer.position([TopicPartition(name, 0)])
            if policy == "earliest" and position.offset == 3:
                break  # it has read all three
            assigned = consumer.assignment()
            if policy == "latest" and assigned:
                produce(quick_bootstrap, [(name, 0)], 1)
                message = consumer.poll(0.2)
                if message is not None and message.error() is None:
                    assert message.offset() >= expected
                    break
        consumer.close()


def test_groups_are_listed_described_and_deleted(crowd: Crowd, name: str) -> None:
    wanted = create(crowd.bootstrap, name, 2)
    produce(crowd.bootstrap, wanted, 1)
    crowd.join([name], 2)
    crowd.settle(wanted, "two members share")
    crowd.read(wanted, 1, "all records are processed")
    admin = AdminClient({"bootstrap.servers": crowd.bootstrap})
    listed = {each.group_id: each for each in admin.list_consumer_groups().result(30).valid}
    assert listed[crowd.group].state is ConsumerGroupState.STABLE
    described = admin.describe_consumer_groups([crowd.group])[crowd.group].result(30)
    assert described.state is ConsumerGroupState.STABLE
    assert described.partition_assignor == "range"
    owned = {
        member.client_id: places(member.assignment.topic_partitions) for member in described.members
    }
    assert owned == {member.name: crowd.ledger.of(member.name) for member in crowd.members}
    with pytest.raises(KafkaException) as refused:
        admin.delete_consumer_groups([crowd.group])[crowd.group].result(30)
    assert refused.value.args[0].code() == KafkaError.NON_EMPTY_GROUP
    for member in list(crowd.members):
        crowd.leave(member)
    assert admin.delete_consumer_groups([crowd.group])[crowd.group].result(30) is None
    with pytest.raises(KafkaException) as missing:
        admin.delete_consumer_groups([crowd.group])[crowd.group].result(30)
    assert missing.value.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND

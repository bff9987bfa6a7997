"""Transactions with confluent-kafka (librdkafka): whole or absent for whoever reads committed."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec
from tests.compat.samples import until_deadline

pytestmark = pytest.mark.compat


def create(bootstrap: str, topic: str, partitions: int = 1) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    new = NewTopic(topic, num_partitions=partitions, replication_factor=1)
    admin.create_topics([new])[topic].result(30)


def transactional(bootstrap: str, transactional_id: str, **more: Any) -> Producer:
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": transactional_id,
            "linger.ms": 0,
            **{key.replace("_", "."): value for key, value in more.items()},
        }
    )
    producer.init_transactions(30)
    return producer


def committed_values(
    bootstrap: str, topic: str, partition: int = 0, **more: Any
) -> list[bytes | None]:
    """Read a partition up to its last stable offset."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "not-used",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            **{key.replace("_", "."): value for key, value in more.items()},
        }
    )
    values: list[bytes | None] = []
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING)])
    for left in until_deadline(f"the end of {topic}-{partition}"):
        message = consumer.poll(min(left, 0.2))
        if message is None:
            continue
        if message.error() is None:
            values.append(message.value())
        elif message.error().code() == KafkaError._PARTITION_EOF:
            break
        else:
            pytest.fail(str(message.error()))
    consumer.close()
    return values


def end_of(bootstrap: str, topic: str, *, committed: bool, partition: int = 0) -> int:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
    where = TopicPartition(topic, partition)
    found = admin.list_offsets({where: OffsetSpec.latest()}, isolation_level=level)
    offset: int = found[where].result(30).offset
    return offset


def settled_values(bootstrap: str, topic: str) -> list[bytes | None]:
    """Read partition 0 when no transaction is open: its markers follow the answer to a commit."""
    for _ in until_deadline("the last stable offset reaches the end"):
        if end_of(bootstrap, topic, committed=True) == end_of(bootstrap, topic, committed=False):
            break
    return committed_values(bootstrap, topic)


def test_a_commit_shows_everything_and_an_abort_nothing(quick_bootstrap: str, name: str) -> None:
    create(quick_bootstrap, name, 3)
    producer = transactional(quick_bootstrap, name)
    for number, commits in enumerate((True, False, True, True, False)):
        producer.begin_transaction()
        for partition in range(3):
            for part in range(4):
                producer.produce(name, value=b"%d.%d" % (number, part), partition=partition)
        if commits:
            producer.commit_transaction(30)
        else:
            assert producer.flush(30) == 0
            producer.abort_transaction(30)
    expected = [b"%d.%d" % (number, part) for number in (0, 2, 3) for part in range(4)]
    for partition in range(3):
        assert committed_values(quick_bootstrap, name, partition) == expected
        for _ in until_deadline("the last stable offset reaches the end"):
            stable = end_of(quick_bootstrap, name, committed=True, partition=partition)
            if stable == end_of(quick_bootstrap, name, committed=False, partition=partition):
                break


def test_an_open_transaction_hides_what_comes_behind_it(quick_bootstrap: str, name: str) -> None:
    create(quick_bootstrap, name)
    first = transactional(quick_bootstrap, f"{name}.first")
    second = transactional(quick_bootstrap, f"{name}.second")
    first.begin_transaction()
    first.produce(name, value=b"slow 1")
    assert first.flush(30) == 0
    second.begin_transaction()
    second.produce(name, value=b"quick")
    second.commit_transaction(30)
    assert committed_values(quick_bootstrap, name) == []
    assert end_of(quick_bootstrap, name, committed=True) == 0
    uncommitted = committed_values(quick_bootstrap, name, isolation_level="read_uncommitted")
    assert uncommitted == [b"slow 1", b"quick"]
    first.produce(name, value=b"slow 2")
    first.commit_transaction(30)
    for _ in until_deadline("all is shown, in the order of the log"):
        if committed_values(quick_bootstrap, name) == [b"slow 1", b"quick", b"slow 2"]:
            break


def test_a_second_producer_of_one_id_fences_the_first(quick_bootstrap: str, name: str) -> None:
    create(quick_bootstrap, name)
    zombie = transactional(quick_bootstrap, name)
    zombie.begin_transaction()
    zombie.produce(name, value=b"of the zombie")
    assert zombie.flush(30) == 0
    heir = transactional(quick_bootstrap, name)
    heir.begin_transaction()
    heir.produce(name, value=b"of the heir")
    heir.commit_transaction(30)
    zombie.produce(name, value=b"too late")
    with pytest.raises(KafkaException) as fenced:
        zombie.commit_transaction(30)
    assert fenced.value.args[0].fatal()
    assert fenced.value.args[0].code() == KafkaError._FENCED
    assert settled_values(quick_bootstrap, name) == [b"of the heir"]


def test_a_transaction_past_its_timeout_is_aborted(quick_bootstrap: str, name: str) -> None:
    create(quick_bootstrap, name)
    slow = transactional(quick_bootstrap, name, transaction_timeout_ms=8000)
    slow.begin_transaction()
    slow.produce(name, value=b"too slow")
    assert slow.flush(30) == 0
    assert end_of(quick_bootstrap, name, committed=True) == 0
    for _ in until_deadline("the coordinator aborts it"):
        if end_of(quick_bootstrap, name, committed=True) == 2:  # the record and its marker
            break
    with pytest.raises(KafkaException) as late:
        slow.commit_transaction(30)
    assert late.value.args[0].fatal() or late.value.args[0].txn_requires_abort()
    assert committed_values(quick_bootstrap, name) == []
    again = transactional(quick_bootstrap, name)
    again.begin_transaction()
    again.produce(name, value=b"in time")
    again.commit_transaction(30)
    assert settled_values(quick_bootstrap, name) == [b"in time"]


def consumer_of(bootstrap: str, group: str, topic: str) -> Consumer:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
    )
    consumer.subscribe([topic])
    return consumer


def test_consume_transform_produce_counts_each_record_once(quick_bootstrap: str, name: str) -> None:
    """The step is taken again after an abort, from the offsets that were committed last."""
    source, target, group = f"{name}.in", f"{name}.out", f"group-of-{name}"
    create(quick_bootstrap, source)
    create(quick_bootstrap, target)
    plain = Producer({"bootstrap.servers": quick_bootstrap})
    for number in range(30):
        plain.produce(source, value=b"%d" % number)
    assert plain.flush(30) == 0

    consumer = consumer_of(quick_bootstrap, group, source)
    producer = transactional(quick_bootstrap, name)
    done, turn = 0, 0
    for left in until_deadline("30 records are carried over"):
        if done == 30:
            break
        messages = consumer.consume(7, min(left, 0.3))
        if not messages:
            continue
        turn += 1
        producer.begin_transaction()
        for message in messages:
            assert message.error() is None, message.error()
            producer.produce(target, value=b"seen " + message.value())
        position = TopicPartition(source, 0, messages[-1].offset() + 1)
        producer.send_offsets_to_transaction([position], consumer.consumer_group_metadata(), 30)
        if turn % 2:
            assert producer.flush(30) == 0
            producer.abort_transaction(30)
            consumer.seek(TopicPartition(source, 0, messages[0].offset()))
        else:
            producer.commit_transaction(30)
            done = messages[-1].offset() + 1
            (committed,) = consumer.committed([TopicPartition(source, 0)], timeout=30)
            assert committed.offset == done
    consumer.close()
    assert settled_values(quick_bootstrap, target) == [b"seen %d" % n for n in range(30)]


def test_offsets_of_an_open_transaction_do_not_count(quick_bootstrap: str, name: str) -> None:
    create(quick_bootstrap, name)
    group = f"group-of-{name}"
    plain = Producer({"bootstrap.servers": quick_bootstrap})
    for number in range(5):
        plain.produce(name, value=b"%d" % number)
    assert plain.flush(30) == 0
    consumer = consumer_of(quick_bootstrap, group, name)
    for _ in until_deadline("the consumer has its partition"):
        if consumer.poll(0.1) is not None:
            break
    producer = transactional(quick_bootstrap, name)
    producer.begin_transaction()
    producer.send_offsets_to_transaction(
        [TopicPartition(name, 0, 4)], consumer.consumer_group_metadata(), 30
    )
    admin = AdminClient({"bootstrap.servers": quick_bootstrap})
    from confluent_kafka import ConsumerGroupTopicPartitions

    asked = [ConsumerGroupTopicPartitions(group, [TopicPartition(name, 0)])]
    future = admin.list_consumer_group_offsets(asked, require_stable=False)[group]
    assert future.result(30).topic_partitions[0].offset < 0
    producer.commit_transaction(30)
    (committed,) = consumer.committed([TopicPartition(name, 0)], timeout=30)
    assert committed.offset == 4
    consumer.close()


def test_a_member_of_an_old_generation_cannot_commit_in_a_transaction(
    quick_bootstrap: str, name: str
) -> None:
    create(quick_bootstrap, name, 2)
    group = f"group-of-{name}"
    first = consumer_of(quick_bootstrap, group, name)
    for _ in until_deadline("the first member has both partitions"):
        first.poll(0.05)
        if len(first.assignment()) == 2:
            break
    old = first.consumer_group_metadata()
    second = consumer_of(quick_bootstrap, group, name)
    for _ in until_deadline("both members have one"):
        first.poll(0.02)
        second.poll(0.02)
        if len(first.assignment()) == len(second.assignment()) == 1:
            break
    producer = transactional(quick_bootstrap, name)
    producer.begin_transaction()
    with pytest.raises(KafkaException) as refused:
        producer.send_offsets_to_transaction([TopicPartition(name, 0, 1)], old, 30)
    assert refused.value.args[0].code() == KafkaError.ILLEGAL_GENERATION
    assert refused.value.args[0].txn_requires_abort()
    producer.abort_transaction(30)
    first.close()
    second.close()

"""`Consumer` of confluent-kafka and of barnabas.compat.confluent_kafka: the same outcomes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.compat.confluent import Confluent
from tests.compat.samples import until_deadline

pytestmark = pytest.mark.compat


@pytest.fixture
def topic(confluent: Confluent, quick_bootstrap: str, name: str) -> str:
    return confluent.topic(quick_bootstrap, name)


@pytest.fixture
def group(name: str) -> str:
    return f"{name}.group"


def values(consumer: Any, count: int) -> list[bytes]:
    """Return the values of so many messages, none of which is an error."""
    found: list[bytes] = []
    for _ in until_deadline(f"{count} messages"):
        message = consumer.poll(0.1)
        if message is not None:
            assert message.error() is None, message.error()
            found.append(message.value())
        if len(found) == count:
            return found
    return found


def polled_until(consumer: Any, condition: Callable[[], Any]) -> None:
    for _ in until_deadline("the condition"):
        message = consumer.poll(0.05)
        assert message is None or message.error() is None, message.error()
        if condition():
            return


def first_error(consumer: Any) -> Any:
    for _ in until_deadline("an error"):
        message = consumer.poll(0.1)
        if message is not None and message.error() is not None:
            return message
    return None


def code_of(confluent: Confluent, call: Callable[[], object]) -> str:
    """Return the name of the error that a call raises."""
    with pytest.raises(confluent.kafka.KafkaException) as failure:
        call()
    error = failure.value.args[0]
    assert isinstance(error, confluent.kafka.KafkaError)
    return str(error.name())


def places(partitions: list[Any]) -> list[tuple[str, int, int]]:
    return sorted((each.topic, each.partition, each.offset) for each in partitions)


def test_what_a_message_tells(
    confluent: Confluent, quick_bootstrap: str, topic: str, group: str
) -> None:
    producer = confluent.kafka.Producer({"bootstrap.servers": quick_bootstrap})
    headers = [("a", b"1"), ("a", None), ("ü", "x")]
    producer.produce(topic, b"value", "key", headers=headers, timestamp=1_700_000_000_000)
    producer.produce(topic, None, b"k")
    producer.flush(30)
    consumer = confluent.consumer(quick_bootstrap, group)
    consumer.subscribe([topic])
    first = consumer.poll(30)
    assert (first.topic(), first.partition(), first.offset()) == (topic, 0, 0)
    assert (first.key(), first.value(), len(first)) == (b"key", b"value", 5)
    assert first.headers() == [("a", b"1"), ("a", None), ("ü", b"x")]
    assert first.timestamp() == (confluent.kafka.TIMESTAMP_CREATE_TIME, 1_700_000_000_000)
    assert first.error() is None
    assert first.latency() is None
    assert first.leader_epoch() == 0
    second = consumer.poll(30)
    assert (second.key(), second.value(), second.headers()) == (b"k", None, None)
    first.set_value("objects")
    assert first.value() == "objects"
    assert consumer.poll(0) is None
    assert consumer.poll(0.05) is None
    consumer.close()


def test_consume(confluent: Confluent, quick_bootstrap: str, topic: str, group: str) -> None:
    confluent.fill(quick_bootstrap, topic, 10)
    consumer = confluent.consumer(quick_bootstrap, group)
    consumer.subscribe([topic])
    found = consumer.consume(4, 30)
    assert [message.value() for message in found] == [b"0", b"1", b"2", b"3"]
    assert consumer.poll(30).value() == b"4"
    assert [message.value() for message in consumer.consume(100, 0.5)] == [
        b"%d" % number for number in range(5, 10)
    ]
    assert consumer.consume(num_messages=5, timeout=0.05) == []
    for wrong in (-1, 1_000_001):
        with pytest.raises(ValueError, match="num_messages"):
            consumer.consume(wrong, 1)
    consumer.close()


def test_ends_of_partitions(
    confluent: Confluent, quick_bootstrap: str, topic: str, group: str
) -> None:
    confluent.fill(quick_bootstrap, topic, 2)
    consumer = confluent.consumer(quick_bootstrap, group, enable_partition_eof=True)
    consumer.assign([confluent.kafka.TopicPartition(topic, 0, confluent.kafka.OFFSET_BEGINNING)])
    assert [consumer.poll(30).value() for _ in range(2)] == [b"0", b"1"]
    for more in (0, 1):
        if more:
            confluent.fill(quick_bootstrap, topic, 1)
            assert consumer.poll(30).value() == b"0"
        end = consumer.poll(30)
        assert end.error() == confluent.kafka.KafkaError._PARTITION_EOF
        assert (end.topic(), end.partition(), end.offset()) == (topic, 0, 2 + more)
    assert consumer.poll(0.3) is None
    consumer.close()


def test_rebalance_callbacks(
    confluent: Confluent, quick_bootstrap: str, new_name: Callable[[], str], group: str
) -> None:
    topic = confluent.topic(quick_bootstrap, new_name(), 2)
    for partition in (0, 1):
        confluent.fill(quick_bootstrap, topic, 4, partition)
    told: list[Any] = []

    def assigned(consumer: Any, partitions: list[Any]) -> None:
        told.append(("assigned", places(partitions)))
        for each in partitions:
            each.offset = 3
        consumer.assign(partitions)

    def revoked(consumer: Any, partitions: list[Any]) -> None:
        told.append(("revoked", places(partitions)))
        assert places(consumer.commit(asynchronous=False)) == [(topic, 0, 4), (topic, 1, 4)]

    consumer = confluent.consumer(quick_bootstrap, group, enable_auto_commit=False)
    consumer.subscribe([topic], on_assign=assigned, on_revoke=revoked)
    assert values(consumer, 2) == [b"3", b"3"]
    assert sorted(each.partition for each in consumer.assignment()) == [0, 1]
    consumer.close()
    none = confluent.kafka.OFFSET_INVALID
    assert told == [
        ("assigned", [(topic, 0, none), (topic, 1, none)]),
        ("revoked", [(topic, partition, told[1][1][partition][2]) for partition in (0, 1)]),
    ]
    again = confluent.consumer(quick_bootstrap, group)
    partitions = [confluent.kafka.TopicPartition(topic, partition) for partition in (0, 1)]
    assert places(again.committed(partitions, 30)) == [(topic, 0, 4), (topic, 1, 4)]
    again.close()


def test_a_callback_that_raises(
    confluent: Confluent, quick_bootstrap: str, topic: str, group: str
) -> None:
    def fail(consumer: Any, partitions: list[Any]) -> None:
        raise LookupError("on_assign")

    consumer = confluent.consumer(quick_bootstrap, group)
    consumer.subscribe([topic], on_assign=fail)
    with pytest.raises(LookupError, match="on_assign"):
        polled_until(consumer, lambda: False)
    consumer.close()


def test_cooperative_rebalances(
    confluent: Confluent, quick_bootstrap: str, new_name: Callable[[], str], group: str
) -> None:
    topic = confluent.topic(quick_bootstrap, new_name(), 4)
    told: list[tuple[str, int]] = []

    def assigned(consumer: Any, partitions: list[Any]) -> None:
        told.append(("assigned", len(partitions)))
        consumer.incremental_assign(partitions)

    def revoked(consumer: Any, partitions: list[Any]) -> None:
        told.append(("revoked", len(partitions)))
        consumer.incremental_unassign(partitions)

    options = {
        "partition_assignment_strategy": "cooperative-sticky",
        "heartbeat_interval_ms": 100,
        "session_timeout_ms": 6000,
    }
    first = confluent.consumer(quick_bootstrap, group, **options)
    first.subscribe([topic], on_assign=assigned, on_revoke=revoked)
    polled_until(first, lambda: len(first.assignment()) == 4)
    second = confluent.consumer(quick_bootstrap, group, **options)
    second.subscribe([topic])
    for _ in until_deadline("two partitions each"):
        first.poll(0.05)
        second.poll(0.05)
        if len(first.assignment()) == len(second.assignment()) == 2:
            break
    second.close()
    polled_until(first, lambda: len(first.assignment()) == 4)
    shown = [each for each in told if each[1]]  # librdkafka also tells of no new partitions
    assert shown == [("assigned", 4), ("revoked", 2), ("assigned", 2)]
    first.close()
    assert told[-1] == ("revoked", 4)


def test_groups_that_the_broker_assigns(
    confluent: Confluent, quick_bootstrap: str, topic: str, group: str
) -> None:
    """The protocol of KIP-848."""
    confluent.fill(quick_bootstrap, topic, 3)
    told: list[tuple[str, int]] = []
    consumer = confluent.consumer(quick_bootstrap, group, group_protocol="consumer")
    consumer.subscribe(
        [topic],
        on_assign=lambda _, partitions: told.append(("assigned", len(partitions))),
        on_revoke=lambda _, partitions: told.append(("revoked", len(partitions))),
    )
    assert values(consumer, 3) == [b"0", b"1", b"2"]
    admin = confluent.admin.AdminClient({"bootstrap.servers": quick_bootstrap})
    found = admin.describe_consumer_groups([group])[group].result(30)
    assert found.type is confluent.kafka.ConsumerGroupType.CONSUMER
    consumer.close()
    assert told == [("assigned", 1), ("revoked", 1)]
    where = [confluent.kafka.TopicPartition(topic, 0)]
    again = confluent.consumer(quick_bootstrap, group)
    assert again.committed(where, 30)[0].offset == 3
    again.close()


def test_stored_offsets(confluent: Confluent, quick_bootstrap: str, topic: str, group: str) -> None:
    confluent.fill(quick_bootstrap, topic, 5)
    TopicPartition = confluent.kafka.TopicPartition
    consumer = confluent.consumer(
        quick_bootstrap, group, enable_auto_offset_store=False, auto_commit_interval_ms=60_000
    )
    consumer.subscribe([topic])
    messages = consumer.consume(3, 30)
    assert len(messages) == 3
    assert code_of(confluent, lambda: consumer.commit(asynchronous=False)) == "_NO_OFFSET"
    consumer.store_offsets(messages[0])
    assert places(consumer.commit(asynchronous=False)) == [(topic, 0, 1)]
    consumer.store_offsets(offsets=[TopicPartition(topic, 0, 3)])
    for wrong in ({}, {"message": messages[0], "offsets": []}):
        with pytest.raises(ValueError, match=r"."):
            consumer.store_offsets(**wrong)
    stranger = TopicPartition(topic, 9, 3)
    assert code_of(confluent, lambda: consumer.store_offsets(offsets=[stranger])) == "_STATE"
    consumer.close()  # which commits what is stored
    another = confluent.consumer(quick_bootstrap, group)
    another.subscribe([topic])
    assert values(another, 2) == [b"3", b"4"]
    assert code_of(confluent, lambda: another.store_offsets(messages[0])) == "_INVALID_ARG"
    another.close()


def test_commits(confluent: Confluent, quick_bootstrap: str, topic: str, group: str) -> None:
    confluent.fill(quick_bootstrap, topic, 4)
    TopicPartition = confluent.kafka.TopicPartition
    told: list[Any] = []
    consumer = confluent.kafka.Consumer(
        {
            "bootstrap.servers": quick_bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "on_commit": lambda error, partitions: told.append((error, places(partitions))),
        }
    )
    where = TopicPartition(topic, 0)
    consumer.subscribe([topic])
    messages = consumer.consume(4, 30)
    assert places(consumer.position([where])) == [(topic, 0, 4)]
    assert places(consumer.committed([where], 30)) == [(topic, 0, confluent.kafka.OFFSET_INVALID)]
    assert places(consumer.commit(messages[1], asynchronous=False)) == [(topic, 0, 2)]
    assert places(consumer.committed([where], 30)) == [(topic, 0, 2)]
    noted = TopicPartition(topic, 0, 1, metadata="a note")
    (done,) = consumer.commit(offsets=[noted], asynchronous=False)
    assert (done.offset, done.error) == (1, None)
    (found,) = consumer.committed([where], 30)
    assert (found.offset, found.metadata) == (1, "a note")
    told.clear()
    assert consumer.commit() is None
    polled_until(consumer, lambda: told)
    assert told == [(None, [(topic, 0, 4)])]
    with pytest.raises(ValueError, match=r"."):
        consumer.commit(message=messages[0], offsets=[where])
    for none in ([], [where]):
        with pytest.raises(confluent.kafka.KafkaException, match="_NO_OFFSET"):
            consumer.commit(offsets=none, asynchronous=False)
    consumer.close()


def test_automatic_commits(
    confluent: Confluent, quick_bootstrap: str, topic: str, group: str
) -> None:
    confluent.fill(quick_bootstrap, topic, 5)
    consumer = confluent.consumer(quick_bootstrap, group)
    consumer.subscribe([topic])
    assert values(consumer, 2) == [b"0", b"1"]
    consumer.close()
    with confluent.consumer(quick_bootstrap, group, auto_commit_interval_ms=50) as consumer:
        consumer.subscribe([topic])
        assert values(consumer, 1) == [b"2"]
        where = [confluent.kafka.TopicPartition(topic, 0)]
        polled = [b"2"]
        for _ in until_deadline("a commit"):
            message = consumer.poll(0.05)
            if message is not None:
                polled.append(message.value())
            if consumer.committed(where, 30)[0].offset == 5:
                break
        assert polled == [b"2", b"3", b"4"]


def test_pause_resume_and_seek(
    confluent: Confluent, quick_bootstrap: str, topic: str, group: str
) -> None:
    confluent.fill(quick_bootstrap, topic, 3)
    kafka = confluent.kafka
    where = kafka.TopicPartition(topic, 0, 0)
    consumer = confluent.consumer(quick_bootstrap, group, fetch_wait_max_ms=20)
    assert code_of(confluent, lambda: consumer.seek(where)) == "_UNKNOWN_PARTITION"
    consumer.assign([where])
    assert values(consumer, 3) == [b"0", b"1", b"2"]
    consumer.pause([where])
    consumer.seek(kafka.TopicPartition(topic, 0, 1))
    assert consumer.poll(0.3) is None
    consumer.resume([where])
    assert values(consumer, 2) == [b"1", b"2"]
    consumer.seek(kafka.TopicPartition(topic, 0, kafka.OFFSET_BEGINNING))
    assert values(consumer, 1) == [b"0"]
    consumer.seek(kafka.TopicPartition(topic, 0, kafka.OFFSET_END))
    assert consumer.poll(0.3) is None
    confluent.fill(quick_bootstrap, topic, 1)
    assert values(consumer, 1) == [b"0"]
    assert places(consumer.position([where])) == [(topic, 0, 4)]
    strangers = [kafka.TopicPartition(topic, 7)]
    assert consumer.pause(strangers) is None
    consumer.unassign()
    assert consumer.assignment() == []
    assert consumer.poll(0.05) is None
    consumer.close()


def test_assigning_and_incrementally(
    confluent: Confluent, quick_bootstrap: str, new_name: Callable[[], str], group: str
) -> None:
    topic = confluent.topic(quick_bootstrap, new_name(), 3)
    for partition in range(3):
        confluent.fill(quick_bootstrap, topic, 2, partition)
    TopicPartition = confluent.kafka.TopicPartition
    consumer = confluent.consumer(quick_bootstrap, group, enable_auto_commit=False)
    consumer.incremental_assign([TopicPartition(topic, 0, 1)])
    assert values(consumer, 1) == [b"1"]
    consumer.incremental_assign([TopicPartition(topic, 1, 0)])
    assert values(consumer, 2) == [b"0", b"1"]
    assert sorted(each.partition for each in consumer.assignment()) == [0, 1]
    consumer.incremental_unassign([TopicPartition(topic, 0)])
    assert [each.partition for each in consumer.assignment()] == [1]
    known, unknown = ([TopicPartition(topic, partition)] for partition in (1, 2))
    assert code_of(confluent, lambda: consumer.incremental_assign(known)) == "_CONFLICT"
    assert code_of(confluent, lambda: consumer.incremental_unassign(unknown)) == "_INVALID_ARG"
    consumer.assign([TopicPartition(topic, 2, confluent.kafka.OFFSET_BEGINNING)])
    assert values(consumer, 2) == [b"0", b"1"]
    consumer.commit(asynchronous=False)
    consumer.assign([TopicPartition(topic, 2, confluent.kafka.OFFSET_STORED)])
    assert consumer.poll(0.3) is None
    with pytest.raises(TypeError):
        consumer.assign(topic)
    with pytest.raises(TypeError):
        consumer.assign([topic])
    consumer.close()


def test_questions_about_offsets(
    confluent: Confluent, quick_bootstrap: str, topic: str, group: str
) -> None:
    confluent.fill(quick_bootstrap, topic, 3)
    kafka = confluent.kafka
    where = kafka.TopicPartition(topic, 0)
    consumer = confluent.consumer(quick_bootstrap, group)
    assert consumer.get_watermark_offsets(where, timeout=30) == (0, 3)
    start_ms = 1_700_000_000_000
    asked = [kafka.TopicPartition(topic, 0, start_ms + offset) for offset in (0, 1, 9000)]
    found = [consumer.offsets_for_times([each], 30)[0] for each in asked]
    assert [each.offset for each in found] == [0, 1, kafka.OFFSET_END]
    assert places(consumer.position([where])) == [(topic, 0, kafka.OFFSET_INVALID)]
    consumer.assign([kafka.TopicPartition(topic, 0, 1)])
    assert places(consumer.position([where])) == [(topic, 0, kafka.OFFSET_INVALID)]
    assert values(consumer, 2) == [b"1", b"2"]
    low, high = consumer.get_watermark_offsets(where, cached=True)
    assert high == 3
    assert low in (0, kafka.OFFSET_INVALID)
    for strange in (kafka.TopicPartition(topic, 9, 1), kafka.TopicPartition(f"{topic}-not", 0, 1)):
        for call in (
            lambda strange=strange: consumer.get_watermark_offsets(strange, 5),
            lambda strange=strange: consumer.offsets_for_times([strange], 5),
        ):
            assert code_of(confluent, call) == "_UNKNOWN_PARTITION"
    consumer.close()


def test_a_topic_that_does_not_exist(
    confluent: Confluent, quick_bootstrap: str, name: str, group: str
) -> None:
    consumer = confluent.consumer(quick_bootstrap, group)
    consumer.subscribe([name])
    message = first_error(consumer)
    assert message.error().name() == "UNKNOWN_TOPIC_OR_PART"
    assert message.topic() == name
    assert message.value().decode() == message.error().str()
    assert f"Subscribed topic not available: {name}" in message.error().str()
    assert (message.key(), message.offset(), message.partition()) == (None, None, 0)
    consumer.close()


@pytest.mark.parametrize("where", ["no offset", "out of range"])
def test_without_a_reset(
    confluent: Confluent, quick_bootstrap: str, topic: str, group: str, where: str
) -> None:
    confluent.fill(quick_bootstrap, topic, 1)
    consumer = confluent.consumer(quick_bootstrap, group, auto_offset_reset="error")
    offset = 100 if where == "out of range" else confluent.kafka.OFFSET_STORED
    consumer.assign([confluent.kafka.TopicPartition(topic, 0, offset)])
    message = first_error(consumer)
    assert message.error().name() == "_AUTO_OFFSET_RESET"
    assert (message.topic(), message.partition()) == (topic, 0)
    consumer.assign([confluent.kafka.TopicPartition(topic, 0, 0)])
    assert values(consumer, 1) == [b"0"]
    consumer.close()


def test_patterns(
    confluent: Confluent, quick_bootstrap: str, new_name: Callable[[], str], group: str
) -> None:
    one, two, other = (confluent.topic(quick_bootstrap, new_name()) for _ in range(3))
    for topic in (one, two, other):
        confluent.fill(quick_bootstrap, topic, 1)
    consumer = confluent.consumer(quick_bootstrap, group)
    consumer.subscribe([f"^{one[:-1]}[{one[-1]}{two[-1]}]$"])
    assert values(consumer, 2) == [b"0", b"0"]
    assert sorted(each.topic for each in consumer.assignment()) == sorted([one, two])
    consumer.subscribe([other])
    assert values(consumer, 1) == [b"0"]
    assert [each.topic for each in consumer.assignment()] == [other]
    assert code_of(confluent, lambda: consumer.subscribe([])) == "_INVALID_ARG"
    consumer.unsubscribe()
    polled_until(consumer, lambda: not consumer.assignment())
    consumer.close()


def test_the_group(confluent: Confluent, quick_bootstrap: str, topic: str, group: str) -> None:
    consumer = confluent.consumer(quick_bootstrap, group)
    assert not consumer.memberid()
    consumer.subscribe([topic])
    polled_until(consumer, consumer.assignment)
    assert len(consumer.memberid()) > 10
    assert consumer.consumer_group_metadata() is not None
    assert consumer.cluster_id(30) == consumer.list_topics(timeout=30).cluster_id
    consumer.close()


def test_what_was_closed(confluent: Confluent, quick_bootstrap: str, group: str) -> None:
    with confluent.consumer(quick_bootstrap, group) as consumer:
        assert consumer.poll(0) is None
    for call in (
        lambda: consumer.poll(0),
        lambda: consumer.consume(1, 0),
        lambda: consumer.subscribe(["t"]),
        lambda: consumer.assignment(),
        lambda: consumer.commit(),
        lambda: consumer.list_topics(),
    ):
        with pytest.raises(RuntimeError, match="closed"):
            call()
    consumer.close()


def test_statistics(confluent: Confluent, quick_bootstrap: str, topic: str, group: str) -> None:
    confluent.fill(quick_bootstrap, topic, 5)
    told: list[str] = []
    consumer = confluent.kafka.Consumer(
        {
            "bootstrap.servers": quick_bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "statistics.interval.ms": 50,
            "stats_cb": told.append,
            "enable.auto.offset.store": False,
        }
    )
    consumer.subscribe([topic])
    messages = consumer.consume(3, 30)
    consumer.commit(messages[2], asynchronous=False)

    def partition() -> dict[str, Any]:
        topics = json.loads(told[-1])["topics"] if told else {}
        return dict(topics[topic]["partitions"]["0"]) if topic in topics else {}

    for _ in until_deadline("the position and the commit"):
        messages += [each for each in [consumer.poll(0.05)] if each]
        if partition().get("app_offset") == 5 and partition().get("hi_offset") == 5:
            break
    assert json.loads(told[-1])["type"] == "consumer"
    assert partition()["lo_offset"] in (0, confluent.kafka.OFFSET_INVALID)
    consumer.close()


def test_a_static_member_that_is_replaced(
    confluent: Confluent, quick_bootstrap: str, topic: str, group: str
) -> None:
    options = {"group_instance_id": "one", "session_timeout_ms": 6000, "heartbeat_interval_ms": 100}
    first = confluent.consumer(quick_bootstrap, group, **options)
    first.subscribe([topic])
    polled_until(first, first.assignment)
    second = confluent.consumer(quick_bootstrap, group, **options)
    second.subscribe([topic])
    errors: list[Any] = []
    for _ in until_deadline("the first member to be fenced"):
        second.poll(0.05)
        message = first.poll(0.05)
        if message is not None:
            errors.append(message.error())
        if errors and second.assignment():
            break
    errors += [message.error() for message in first.consume(10, 0.3)]
    assert [error.name() for error in errors] == ["_FATAL"]  # once
    first.close()
    confluent.fill(quick_bootstrap, topic, 1)
    assert values(second, 1) == [b"0"]
    second.close()


def test_polls_too_seldom(
    confluent: Confluent, quick_bootstrap: str, topic: str, group: str
) -> None:
    lost: list[Any] = []
    consumer = confluent.consumer(
        quick_bootstrap,
        group,
        session_timeout_ms=1000,
        heartbeat_interval_ms=100,
        max_poll_interval_ms=1000,
    )
    consumer.subscribe([topic], on_lost=lambda consumer, partitions: lost.append(partitions))
    polled_until(consumer, consumer.assignment)
    watcher = confluent.admin.AdminClient({"bootstrap.servers": quick_bootstrap})
    for _ in until_deadline("the group to be empty"):
        found = watcher.describe_consumer_groups([group])[group].result(30)
        if not found.members:
            break
    assert first_error(consumer).error().name() == "_MAX_POLL_EXCEEDED"
    for _ in until_deadline("the group to be joined again"):
        consumer.poll(0.05)
        if lost and consumer.assignment():
            break
    assert [each.partition for each in lost[0]] == [0]
    consumer.close()

"""What the controller knows: topics that are to go, partitions that move, replicas that fail."""

from __future__ import annotations

from barnabas.controller.knowledge import Knowledge, Topic
from barnabas.controller.leadership import Assignment
from barnabas.metadata.cluster_view import BrokerView
from barnabas.model.ids import TopicPartition

TOPIC_ID = b"i" * 16
RESTING = Assignment((1, 2))
MOVING = Assignment((1, 2, 3), adding=(3,))


def test_a_topic_goes_once_nothing_of_it_moves() -> None:
    knowledge = Knowledge()
    knowledge.topics["t"] = Topic(TOPIC_ID, {0: RESTING, 1: MOVING})
    assert not knowledge.goes("t"), "nobody asked for it"
    knowledge.deleting.add("t")
    assert not knowledge.goes("t")
    assert knowledge.moving == [TopicPartition("t", 1)]
    knowledge.assign(TopicPartition("t", 1), RESTING)
    assert knowledge.goes("t")
    assert knowledge.moving == []
    knowledge.assign(TopicPartition("t", 0), MOVING)
    assert not knowledge.goes("t")
    assert knowledge.moving == [TopicPartition("t", 0)]


def test_a_topic_of_many_partitions_goes_without_a_look_at_each_for_each() -> None:
    """Asked for every replica in turn, that would hold up the broker for minutes."""
    looks = 0

    class Looked(Assignment):
        @property
        def is_moving(self) -> bool:
            nonlocal looks
            looks += 1
            return False

    knowledge = Knowledge()
    count = 1000
    knowledge.topics["t"] = Topic(TOPIC_ID, {n: Looked((1, 2, 3)) for n in range(count)})
    knowledge.deleting.add("t")
    assert all(knowledge.goes(key.topic) for key, _ in knowledge.replicas_of("t"))
    assert looks <= count


def test_a_failed_disk_is_tried_anew_when_its_broker_is_back() -> None:
    knowledge = Knowledge()
    key = TopicPartition("t", 0)
    for broker in (1, 2):
        knowledge.brokers[broker] = BrokerView(broker, {}, None)
    knowledge.topics["t"] = Topic(TOPIC_ID, {0: RESTING})
    knowledge.disk_failed(1, [key])
    assert not knowledge.serves(1, key)
    assert knowledge.serving(key) == {2}
    assert knowledge.disk_works(2, [key]) == []
    assert knowledge.disk_works(1, [key]) == [key]
    knowledge.disk_failed(1, [key])
    knowledge.broker_gone(1)
    knowledge.brokers[1] = BrokerView(1, {}, None)
    assert knowledge.serves(1, key)

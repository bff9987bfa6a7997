"""The target follows the source's topics, and keeps what is its own."""

from __future__ import annotations

from barnabas.mirror.topic_sync import TopicShape, plan_topics


def test_a_missing_topic_is_created_with_partitions_and_options() -> None:
    plan = plan_topics({"t": TopicShape(6, {"cleanup.policy": "compact"})}, {})
    assert plan.create == {"t": TopicShape(6, {"cleanup.policy": "compact"})}
    assert not plan.grow
    assert not plan.configure
    assert plan


def test_partitions_are_followed_upwards_only() -> None:
    source = {"a": TopicShape(6), "b": TopicShape(2)}
    plan = plan_topics(source, {"a": TopicShape(4), "b": TopicShape(3)})
    assert plan.grow == {"a": 6}


def test_options_that_differ_are_set_and_others_left_alone() -> None:
    source = TopicShape(1, {"retention.ms": "5", "segment.bytes": "1000"})
    target = TopicShape(1, {"retention.ms": "9", "segment.bytes": "1000", "flush.ms": "1"})
    assert plan_topics({"t": source}, {"t": target}).configure == {"t": {"retention.ms": "5"}}


def test_options_of_one_cluster_and_of_timestamps_stay_where_they_are() -> None:
    own = {
        "min.insync.replicas": "2",
        "message.timestamp.type": "LogAppendTime",
        "leader.replication.throttled.replicas": "*",
    }
    assert not plan_topics({"t": TopicShape(1, own)}, {"t": TopicShape(1)})
    assert plan_topics({"t": TopicShape(1, own)}, {}).create == {"t": TopicShape(1, {})}


def test_the_same_needs_nothing() -> None:
    shape = TopicShape(3, {"retention.ms": "5"})
    assert not plan_topics({"t": shape}, {"t": shape})

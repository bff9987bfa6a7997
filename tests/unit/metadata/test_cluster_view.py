"""What a broker knows of its cluster."""

from __future__ import annotations

from barnabas.metadata.cluster_view import ClusterView, PartitionView, TopicView
from barnabas.model.ids import ZERO_UUID

LED = PartitionView(0, 0, (0,), (0,))


def test_topics_are_found_by_name_and_id() -> None:
    """Both lookups see the same topic, until it is removed."""
    cluster = ClusterView("id")
    topic = TopicView("t", b"1" * 16, [LED])
    cluster.put_topic(topic)
    assert cluster.topic("t") is cluster.topic_by_id(b"1" * 16) is topic
    larger = TopicView("t", b"1" * 16, [LED, LED])
    cluster.put_topic(larger)
    assert cluster.topic("t") is cluster.topic_by_id(b"1" * 16) is larger
    cluster.remove_topic("t")
    assert cluster.topic("t") is None
    assert cluster.topic_by_id(b"1" * 16) is None
    cluster.remove_topic("t")


def test_a_name_that_is_made_again() -> None:
    """The old id does not lead to the new topic."""
    cluster = ClusterView()
    cluster.put_topic(TopicView("t", b"1" * 16, [LED]))
    cluster.put_topic(TopicView("t", b"2" * 16, [LED]))
    assert cluster.topic_by_id(b"1" * 16) is None
    assert cluster.topic_by_id(b"2" * 16) is cluster.topic("t")


def test_topics_without_an_id() -> None:
    """The zero id stands for none, and finds none."""
    cluster = ClusterView()
    cluster.put_topic(TopicView("old", ZERO_UUID, [LED]))
    assert cluster.topic("old") is not None
    assert cluster.topic_by_id(ZERO_UUID) is None


def test_order_is_that_of_creation() -> None:
    cluster = ClusterView()
    for name in ("c", "a", "b"):
        cluster.put_topic(TopicView(name, name.encode() * 16, [LED]))
    assert list(cluster.topic_names) == ["c", "a", "b"]
    assert [topic.name for topic in cluster.topics] == ["c", "a", "b"]

"""Which topics are copied: whole names, no internal ones, never a mirror's own positions."""

from __future__ import annotations

import pytest

from barnabas.mirror.replication_policy import ReplicationFlow, TopicFilter
from barnabas.model.errors import InvalidValueError
from barnabas.model.ids import TopicPartition

ORDERS = TopicPartition("orders", 3)


def test_whole_names_match_any_of_the_patterns() -> None:
    topics = TopicFilter(["orders", "pay.*"])
    assert topics.replicates("orders")
    assert topics.replicates("payments")
    assert not topics.replicates("orders-2")
    assert not topics.replicates("repay")


def test_excluded_names_are_left_out() -> None:
    topics = TopicFilter([".*"], ["test-.*", "tmp"])
    assert topics.replicates("orders")
    assert not topics.replicates("test-1")
    assert not topics.replicates("tmp")


@pytest.mark.parametrize("name", ["__consumer_offsets", "__other", "barnabas-mirror.abc"])
def test_what_clusters_and_mirrors_keep_for_themselves_is_not_copied(name: str) -> None:
    assert not TopicFilter([".*"]).replicates(name)


def test_internal_topics_are_not_copied_whatever_their_names() -> None:
    assert not TopicFilter([".*"]).replicates("orders", internal=True)


def test_a_prefix_goes_before_the_name() -> None:
    assert TopicFilter(["a"], prefix="old.").target_topic("a") == "old.a"


def test_a_broken_pattern_is_named_with_its_option() -> None:
    with pytest.raises(InvalidValueError, match=r"--exclude: 'a\(' is not a regular expression"):
        TopicFilter(["a"], ["a("])


def test_no_pattern_at_all_is_rejected() -> None:
    with pytest.raises(InvalidValueError, match="--topics"):
        TopicFilter([])


def test_partitions_map_to_the_target_and_back() -> None:
    for prefix in ("", "old."):
        flow = ReplicationFlow("s", "t", "barnabas-mirror.m", prefix)
        assert flow.target_of(ORDERS) == TopicPartition(f"{prefix}orders", 3)
        assert flow.source_of(flow.target_of(ORDERS)) == ORDERS


def test_a_topic_of_the_target_without_the_prefix_has_no_source() -> None:
    assert ReplicationFlow("s", "t", "barnabas-mirror.m", "old.").source_of(ORDERS) is None

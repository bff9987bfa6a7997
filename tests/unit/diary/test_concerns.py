"""Which entries are about something."""

from __future__ import annotations

from typing import Any

from barnabas.diary import concerns
from barnabas.diary.entry import Entry


def entry(subject: str, event: str = "isr.shrink", **data: Any) -> Entry:
    return Entry(1, 0, 1, event, subject, "lag-time", data)


def test_a_group_and_the_leader_of_the_partition_that_stores_it() -> None:
    about = concerns.about_group("billing", "__consumer_offsets-7")
    assert about(entry("group:billing", "group.rebalance"))
    assert about(entry("__consumer_offsets-7", "leader.elected"))
    assert not about(entry("__consumer_offsets-7", "isr.shrink"))
    assert not about(entry("__consumer_offsets-8", "leader.elected"))
    assert not concerns.about_group("billing")(entry("__consumer_offsets-7", "leader.elected"))


def test_a_partition_is_the_subject_or_is_named() -> None:
    about = concerns.about_partition("orders", 3)
    assert about(entry("orders-3"))
    assert about(entry("client:app@10.0.0.7", "reject.produce", partition="orders-3"))
    assert not about(entry("orders-33"))


def test_a_topic_and_its_partitions() -> None:
    about = concerns.about_topic("orders")
    assert about(entry("topic:orders"))
    assert about(entry("orders-3"))
    assert about(entry("client:x", partition="orders-0"))
    assert not about(entry("orders-old-3"))
    assert not about(entry("group:orders-3"))


def test_a_broker_and_what_happened_because_of_it() -> None:
    about = concerns.about_broker(2)
    assert about(entry("broker:2"))
    assert about(entry("orders-3", "leader.elected", leader=2))
    assert about(entry("orders-3", "leader.elected", previous=2))
    assert about(entry("orders-3", removed=[2]))
    assert about(entry("orders-3", replicas=[{"id": 2}]))
    assert not about(entry("orders-3", leader=3, replicas=["2"]))


def test_a_client_by_host_id_or_name() -> None:
    about = concerns.about_client("alice")
    assert about(entry("client:app@10.0.0.7", principal="User:alice"))
    assert not about(entry("client:app@10.0.0.7", principal="User:bob"))

"""Samples of a cluster of two brokers, for the tests of this folder."""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.cli.top.page import Page
from barnabas.cli.top.sample import GroupSample, Sample
from barnabas.client.metadata import BrokerAddress, PartitionView, TopicView
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition

BROKERS = (BrokerAddress(1, "one", 9092, "red"), BrokerAddress(2, "two", 9092))


def topic(
    name: str,
    *partitions: tuple[int, tuple[int, ...], tuple[int, ...]],
    topic_id: bytes = b"i" * 16,
    internal: bool = False,
) -> TopicView:
    """Return a topic; each partition has its leader, replicas and ISR."""
    views = {
        number: PartitionView(number, leader, 0, replicas, isr, (), ErrorCode.NONE)
        for number, (leader, replicas, isr) in enumerate(partitions)
    }
    return TopicView(name, topic_id, internal, views, ErrorCode.NONE)


ORDERS = topic("orders", (1, (1, 2), (1, 2)), (2, (2, 1), (2, 1)))


def sample(
    at_s: float,
    ends: Mapping[tuple[str, int], int],
    *,
    topics: tuple[TopicView, ...] = (ORDERS,),
    sizes: Mapping[tuple[str, int], int] | None = None,
    groups: Mapping[str, GroupSample] | None = None,
    pages: Mapping[int, Page] | None = None,
    min_isr: Mapping[str, int] | None = None,
) -> Sample:
    """Return a sample with what matters to a test."""
    return Sample(
        at_s=at_s,
        cluster_id="c1",
        controller_id=2,
        brokers=BROKERS,
        topics=topics,
        min_isr=min_isr or {},
        ends={TopicPartition(*key): end for key, end in ends.items()},
        sizes={TopicPartition(*key): size for key, size in (sizes or {}).items()},
        groups=groups or {},
        round_trips_ms={1: 0.5},
        pages=pages or {},
    )

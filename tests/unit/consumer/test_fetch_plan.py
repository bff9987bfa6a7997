"""Which broker each partition is fetched from, and on which channel."""

from __future__ import annotations

from typing import Any

from barnabas.client.metadata import ClientMetadata
from barnabas.consumer.fetch_plan import BRIEF_MS, CHANNELS, FetchPlan
from barnabas.consumer.subscription import Subscription
from barnabas.model.ids import TopicPartition
from barnabas.wire.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def cluster(**partitions: Any) -> ClientMetadata:
    """Return a view of brokers 1 and 2: `cluster(a=1, b=2)` has the leaders of A and B."""
    view = ClientMetadata()
    tell(view, **partitions)
    return view


def tell(
    view: ClientMetadata, epoch: int = 0, offline: tuple[int, ...] = (), **leaders: int
) -> None:
    view.apply(
        MetadataResponse(
            brokers=[
                MetadataResponseBroker(node_id=n, host="h", port=n, rack=None) for n in (1, 2)
            ],
            controller_id=1,
            topics=[
                MetadataResponseTopic(
                    name="t",
                    partitions=[
                        MetadataResponsePartition(
                            partition_index=index,
                            leader_id=leaders[name],
                            leader_epoch=epoch,
                            replica_nodes=[1, 2],
                            isr_nodes=[1, 2],
                            offline_replicas=list(offline),
                        )
                        for index, name in enumerate(("a", "b"))
                    ],
                )
            ],
        )
    )


def planned() -> tuple[FetchPlan, Subscription]:
    subscription = Subscription()
    subscription.assign([A, B])
    subscription.seek(A, 5)
    subscription.seek(B, 6)
    plan = FetchPlan(ahead_max=100, wait_ms=500)
    plan.follow(subscription.assigned)
    return plan, subscription


def sources(plan: FetchPlan, view: ClientMetadata, now_ms: float = 0) -> dict[int, list[int]]:
    return {
        node: [fetch.partition.partition for fetch in fetches]
        for node, fetches in plan.ready(view, now_ms).items()
    }


def test_each_from_its_leader() -> None:
    """Flows are grouped by the leaders of their partitions."""
    plan, _ = planned()
    assert sources(plan, cluster(a=1, b=2)) == {1: [0], 2: [1]}
    assert sources(plan, cluster(a=2, b=2)) == {2: [0, 1]}


def test_waiting_for_a_leader() -> None:
    """A partition without a leader is not fetched, and it is known since when."""
    plan, _ = planned()
    view = cluster(a=-1, b=2)
    assert sources(plan, view, 10) == {2: [1]}
    assert plan.leaderless()
    assert plan.fetches[A].leaderless_since_ms == 10
    sources(plan, view, 20)
    assert plan.fetches[A].leaderless_since_ms == 10
    tell(view, epoch=1, a=1, b=2)
    assert sources(plan, view, 30) == {1: [0], 2: [1]}
    assert not plan.leaderless()


def test_the_preferred_replica() -> None:
    """It is used until its time is up, or it is offline or unknown."""
    plan, _ = planned()
    view = cluster(a=1, b=1)
    plan.fetches[A].prefer(2, until_ms=100)
    assert sources(plan, view, 99) == {2: [0], 1: [1]}
    assert sources(plan, view, 100) == {1: [0, 1]}
    plan.fetches[A].prefer(2, until_ms=500)
    tell(view, epoch=1, offline=(2,), a=1, b=1)
    assert sources(plan, view, 200) == {1: [0, 1]}
    plan.fetches[A].prefer(9, until_ms=500)
    assert sources(plan, view, 200) == {1: [0, 1]}


def test_two_lanes() -> None:
    """The first channel waits as long as set, the second briefly; both busy means: wait."""
    plan, _ = planned()
    first = plan.free_channel(1)
    assert first is not None
    assert (first.name, first.wait_ms) == (CHANNELS[0], 500)
    first.busy_since_ms = 0
    second = plan.free_channel(1)
    assert second is not None
    assert (second.name, second.wait_ms) == (CHANNELS[1], BRIEF_MS)
    second.busy_since_ms = 0
    assert plan.free_channel(1) is None
    assert plan.free_channel(2) is not None
    first.busy_since_ms = None
    assert plan.free_channel(1) is first
    short = FetchPlan(ahead_max=1, wait_ms=10)
    channel = short.free_channel(1)
    assert channel is not None
    channel.busy_since_ms = 0
    channel = short.free_channel(1)
    assert channel is not None
    assert channel.wait_ms == 10


def test_brokers_that_are_left() -> None:
    """Their channels are closed once no fetch is under way, and only if all leaders are known."""
    plan, subscription = planned()
    view = cluster(a=1, b=2)
    sources(plan, view)
    for node in (1, 2):
        assert plan.free_channel(node) is not None
    busy = plan.free_channel(2)
    assert busy is not None
    busy.busy_since_ms = 0
    assert plan.remove_unused_channels() == []
    tell(view, epoch=1, a=1, b=-1)
    sources(plan, view)
    assert plan.remove_unused_channels() == [], "the leader may come back"
    tell(view, epoch=2, a=1, b=1)
    sources(plan, view)
    assert plan.remove_unused_channels() == [], "a fetch is under way"
    busy.busy_since_ms = None
    assert [(node, channel.name) for node, channel in plan.remove_unused_channels()] == [
        (2, CHANNELS[0]),
        (2, CHANNELS[1]),
    ]
    assert list(plan.channels) == [1]
    assert plan.remove_unused_channels() == []
    subscription.pause(A)
    sources(plan, view)
    assert plan.remove_unused_channels() == [], "who pauses comes back"
    subscription.unsubscribe()
    plan.follow(subscription.assigned)
    sources(plan, view)
    assert [node for node, _ in plan.remove_unused_channels()] == [1, 1]


def test_flows_follow_the_assignment() -> None:
    """Kept partitions keep their fetches; one that was revoked and assigned again restarts."""
    plan, subscription = planned()
    kept = plan.fetches[A]
    subscription.assign([A])
    plan.follow(subscription.assigned)
    assert list(plan.fetches) == [A]
    assert plan.fetches[A] is kept
    subscription.assign([B])
    subscription.assign([A, B])
    plan.follow(subscription.assigned)
    assert plan.fetches[A] is not kept
    assert plan.fetches[A].offset is None


def test_new_leaders_are_met_once() -> None:
    """A position whose record has an older epoch is to be checked, until it is validated."""
    plan, subscription = planned()
    subscription.seek(A, 5, leader_epoch=0)
    plan.follow(subscription.assigned)
    view = cluster(a=1, b=1)
    assert plan.unvalidated(view) == []
    tell(view, epoch=3, a=2, b=2)
    assert [fetch.partition for fetch in plan.unvalidated(view)] == [A]
    plan.fetches[A].validated()
    assert plan.unvalidated(view) == []


def test_the_next_due_time() -> None:
    """It is the earliest end of a pause."""
    plan, _ = planned()
    assert plan.next_ms(0) is None
    plan.fetches[A].failed(RuntimeError(), 70)
    plan.fetches[B].failed(RuntimeError(), 50)
    assert plan.next_ms(0) == 50
    assert plan.next_ms(60) == 70
    assert sources(plan, cluster(a=1, b=1), 60) == {1: [1]}

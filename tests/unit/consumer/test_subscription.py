"""What a consumer reads: by name, by pattern or by hand, with a state for each partition."""

from __future__ import annotations

import re
from typing import Any

import pytest

from barnabas.consumer.group.callbacks import ConsumerRebalanceListener
from barnabas.consumer.reset import ResetPolicy
from barnabas.consumer.subscription import Mode, Subscription
from barnabas.errors import IllegalStateError, NoOffsetForPartitionError
from barnabas.model.ids import TopicPartition
from barnabas.structs import OffsetAndMetadata

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


class Listener(ConsumerRebalanceListener):
    def on_partitions_revoked(self, revoked: set[TopicPartition]) -> Any: ...

    def on_partitions_assigned(self, assigned: set[TopicPartition]) -> Any: ...


def assigned(*partitions: TopicPartition) -> Subscription:
    subscription = Subscription()
    subscription.assign(partitions)
    return subscription


def test_topics_by_name() -> None:
    """Topics are kept in their order, each once, with the listener of the last call."""
    subscription = Subscription()
    listener = Listener()
    subscription.subscribe(["b", "a", "b"], listener=listener)
    assert subscription.topics == ("b", "a")
    assert subscription.by_group
    assert subscription.listener is listener
    subscription.subscribe(["c"])
    assert subscription.topics == ("c",)
    assert subscription.listener is None


def test_topics_by_pattern() -> None:
    """A pattern matches from the start of a name; only changes are told."""
    subscription = Subscription()
    subscription.subscribe(pattern="^ab?$")
    assert subscription.topics == ()
    assert subscription.match(["b", "ab", "a", "abc"])
    assert subscription.topics == ("a", "ab")
    assert not subscription.match(["ab", "a"])
    assert subscription.match([])
    subscription.subscribe(pattern=re.compile("b"))
    assert subscription.match(["ab", "bc"])
    assert subscription.topics == ("bc",)


@pytest.mark.parametrize(
    ("arguments", "failure"),
    [
        ({}, ValueError),
        ({"topics": "a"}, TypeError),
        ({"topics": 5}, TypeError),
        ({"topics": [5]}, TypeError),
        ({"topics": [""]}, ValueError),
        ({"topics": [".."]}, ValueError),
        ({"topics": ["a b"]}, ValueError),
        ({"topics": ["a" * 250]}, ValueError),
        ({"topics": ["a"], "pattern": "a"}, IllegalStateError),
        ({"topics": ["a"], "listener": object()}, TypeError),
        ({"pattern": "("}, ValueError),
    ],
)
def test_bad_subscriptions(arguments: dict[str, Any], failure: type[Exception]) -> None:
    """A subscription that cannot be meant is refused, and nothing changes."""
    subscription = Subscription()
    with pytest.raises(failure):
        subscription.subscribe(**arguments)
    assert subscription.mode is Mode.NONE


@pytest.mark.parametrize(
    ("partition", "failure"),
    [("a-0", TypeError), (("a", -1), ValueError), (("a", "0"), TypeError), ((5, 0), TypeError)],
)
def test_bad_partitions(partition: Any, failure: type[Exception]) -> None:
    """What is no partition is refused, and nothing changes."""
    subscription = Subscription()
    with pytest.raises(failure):
        subscription.assign([A0, partition])
    assert subscription.assigned_partitions() == set()


def test_one_way_at_a_time() -> None:
    """Names, pattern and partitions by hand exclude each other until `unsubscribe`."""
    subscription = Subscription()
    subscription.subscribe(["a"])
    with pytest.raises(IllegalStateError, match="subscribed to topics"):
        subscription.assign([A0])
    with pytest.raises(IllegalStateError):
        subscription.subscribe(pattern="a")
    subscription.unsubscribe()
    subscription.assign([A0])
    with pytest.raises(IllegalStateError, match="assigned partitions manually"):
        subscription.subscribe(["a"])


def test_partitions_that_stay_keep_their_state() -> None:
    """A new assignment starts new partitions afresh, and gives the missing ones up."""
    subscription = assigned(A0, A1)
    kept, gone = subscription.state(A0), subscription.state(A1)
    subscription.seek(A0, 7)
    table = subscription.assigned
    subscription.assign([B0, A0])
    assert subscription.state(A0) is kept
    assert kept.position == 7
    assert not gone.owned
    assert list(table) == [A0, A1], "a table that someone walks does not change"
    with pytest.raises(IllegalStateError, match="a-1 is not assigned"):
        subscription.state(A1)


def test_what_a_group_gives_and_takes() -> None:
    """The new partitions are told; a revoked one that comes back starts afresh."""
    subscription = Subscription()
    subscription.subscribe(["a", "b"])
    assert subscription.assign_from_group([A0, A1]) == [A0, A1]
    subscription.seek(A0, 3)
    assert subscription.assign_from_group([A0, B0]) == [B0]
    assert subscription.state(A0).position == 3
    subscription.revoke([A0, A1])
    assert subscription.assigned_partitions() == {B0}
    assert subscription.assign_from_group([A0]) == [A0]
    assert subscription.state(A0).position is None


def test_positions_are_found_in_steps() -> None:
    """A partition first misses its position, then waits for a reset, then can be read."""
    subscription = assigned(A0, A1)
    assert subscription.missing_positions() == [A0, A1]
    subscription.seek(A1, 5, leader_epoch=2)
    subscription.request_reset(A0)
    assert subscription.missing_positions() == []
    first, second = subscription.state(A0), subscription.state(A1)
    assert (first.reset, first.position) == (ResetPolicy.LATEST, None)
    assert (second.reset, second.position) == (None, 5)
    subscription.seek(A0, 9)
    assert (first.reset, first.position) == (None, 9)
    assert subscription.all_consumed() == {
        A0: OffsetAndMetadata(9, "", -1),
        A1: OffsetAndMetadata(5, "", 2),
    }


def test_without_a_policy_the_user_is_told() -> None:
    """auto.offset.reset=none raises instead of resetting; a seek to an end still works."""
    subscription = Subscription(ResetPolicy.NONE)
    subscription.assign([A0])
    with pytest.raises(NoOffsetForPartitionError, match="a-0"):
        subscription.request_reset(A0)
    subscription.request_reset(A0, ResetPolicy.EARLIEST)
    assert subscription.state(A0).reset == ResetPolicy.EARLIEST


def test_every_move_makes_what_was_fetched_worthless() -> None:
    """Seeks, resets and revocations change the version; pauses do not."""
    subscription = assigned(A0)
    state = subscription.state(A0)
    versions = [state.version]
    subscription.seek(A0, 1)
    versions.append(state.version)
    subscription.request_reset(A0)
    versions.append(state.version)
    subscription.unsubscribe()
    versions.append(state.version)
    assert len(set(versions)) == 4


def test_pauses() -> None:
    """A paused partition keeps its position, and what was fetched of it."""
    subscription = assigned(A0, A1)
    subscription.seek(A0, 1)
    version = subscription.state(A0).version
    subscription.pause(A0)
    assert subscription.paused() == {A0}
    subscription.resume(A0)
    assert subscription.paused() == set()
    assert subscription.state(A0).position == 1
    assert subscription.state(A0).version == version
    with pytest.raises(IllegalStateError):
        subscription.pause(B0)

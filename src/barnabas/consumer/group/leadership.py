"""What the leader of a classic group does for all: assign, and watch for changes of the topics.

The leader assigns by the partitions that it sees; when it sees others later (topics that came,
partitions that were added), the assignment is out of date and the group has to meet again.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from barnabas.assignment.contract import Member, Share
from barnabas.assignment.embedded import decode_subscription, encode_assignment
from barnabas.client.metadata import ClientMetadata
from barnabas.consumer.group.assignors import partition_counts
from barnabas.consumer.group.strategy import Strategy
from barnabas.wire.messages.join_group import JoinGroupResponseMember

_log = logging.getLogger(__name__)


class Leadership(NamedTuple):
    """What the leader has seen when it assigned."""

    topics: frozenset[str]
    counts: Mapping[str, int]

    def change(self, cluster: ClientMetadata) -> str | None:
        """Say what is different now, None if nothing is."""
        counts = partition_counts(cluster, self.topics)
        changed = [
            f"{topic} has {counts.get(topic, 0)} partitions, not {self.counts.get(topic, 0)}"
            for topic in sorted(self.topics)
            if counts.get(topic) != self.counts.get(topic)
        ]
        return "; ".join(changed) or None


def members_of(entries: Sequence[JoinGroupResponseMember]) -> list[Member]:
    """Read what the members said of themselves."""
    return [
        decode_subscription(entry.member_id, entry.group_instance_id, entry.metadata)
        for entry in entries
    ]


def topics_of(members: Sequence[Member]) -> frozenset[str]:
    """Return what anybody subscribes to."""
    return frozenset(topic for member in members for topic in member.topics)


def assign(
    strategy: Strategy, cluster: ClientMetadata, members: Sequence[Member]
) -> tuple[dict[str, bytes], Leadership]:
    """Decide for all members; every member is told something, if only that it gets nothing."""
    topics = topics_of(members)
    counts = partition_counts(cluster, topics)
    unknown = sorted(topics - set(counts))
    if unknown:
        _log.warning("nobody gets partitions of %s: no such topic is known", ", ".join(unknown))
    shares = strategy.assign(cluster, members)
    assignments = {}
    for member in members:
        share = shares.get(member.member_id, Share(()))
        assignments[member.member_id] = encode_assignment(share.partitions, share.user_data)
    return assignments, Leadership(topics, counts)

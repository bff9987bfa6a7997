"""Which replica a consumer should read from (KIP-392): one in its own rack, if there is one.

The leader decides, for consumers that send their rack, if `replica.selector.class` names the
rack-aware selector. A follower qualifies if it is alive, is in sync and has the offset.
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.metadata.cluster_view import BrokerView
from barnabas.replication.partition import Partition

RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
LEADER_ONLY = "org.apache.kafka.common.replica.LeaderSelector"
SELECTORS = (RACK_AWARE, LEADER_ONLY)
"""What `replica.selector.class` may name: Kafka's own classes, by their names."""


def preferred_replica(
    partition: Partition, offset: int, rack: str, own_id: int, brokers: Mapping[int, BrokerView]
) -> int | None:
    """Return the follower that is nearer than this leader, None if the leader should serve."""
    own = brokers.get(own_id)
    if not rack or (own is not None and own.rack == rack):
        return None
    near = [
        follower
        for follower in partition.followers
        if follower.broker_id in brokers
        and brokers[follower.broker_id].rack == rack
        and follower.broker_id in partition.isr
        and follower.log_start_offset <= offset <= follower.end_offset
    ]
    if not near:
        return None
    best = max(near, key=lambda each: (each.end_offset, each.caught_up_ms, -each.broker_id))
    return best.broker_id

"""Replication quotas: of this broker as leader, as follower, and between its log directories.

Only replicas that a topic lists as throttled are counted and throttled. A leader never throttles
an in-sync replica: it would drop out of the ISR. A follower omits throttled partitions from its
fetches while its quota is used up.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from barnabas.config.broker import BrokerOptions
from barnabas.config.topic import TopicOptions
from barnabas.timing.throttle import Throttle, WindowedRate

ALL = "*"


class ReplicationQuotas:
    """The three quotas of one broker."""

    def __init__(self, options: Callable[[], BrokerOptions]) -> None:
        count = options().replication_quota_window_num
        window_ms = options().replication_quota_window_size_seconds * 1000
        self.leader = Throttle(
            lambda: options().leader_replication_throttled_rate, WindowedRate(count, window_ms)
        )
        self.follower = Throttle(
            lambda: options().follower_replication_throttled_rate, WindowedRate(count, window_ms)
        )
        self.directories = Throttle(
            lambda: options().replica_alter_log_dirs_io_max_bytes_per_second,
            WindowedRate(
                options().alter_log_dirs_replication_quota_window_num,
                options().alter_log_dirs_replication_quota_window_size_seconds * 1000,
            ),
        )


def leads_throttled(options: TopicOptions, partition: int, broker_id: int) -> bool:
    """Return whether a leader's copies of a partition are throttled."""
    return _names(options.leader_replication_throttled_replicas, partition, broker_id)


def follows_throttled(options: TopicOptions, partition: int, broker_id: int) -> bool:
    """Return whether a follower's copy of a partition is throttled."""
    return _names(options.follower_replication_throttled_replicas, partition, broker_id)


def _names(listed: Collection[str], partition: int, broker_id: int) -> bool:
    return bool(listed) and (ALL in listed or f"{partition}:{broker_id}" in listed)

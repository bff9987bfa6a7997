"""Brokers, topics and their offsets, under the names of kafka_exporter.

A partition's leader exposes the partition, the leader of partition 0 the topic, and the controller
the brokers and what has no leader. So all brokers together expose everything once.
"""

from barnabas.metrics.metric import Kind, Metric

_PARTITION = ("topic", "partition")


def _of_partition(name: str, help: str) -> Metric:
    return Metric(f"kafka_topic_partition_{name}", Kind.GAUGE, help, _PARTITION)


BROKERS = Metric("kafka_brokers", Kind.GAUGE, "Brokers of the cluster.")
BROKER_INFO = Metric(
    "kafka_broker_info", Kind.GAUGE, "Each broker of the cluster, as 1.", ("id", "address")
)
TOPIC_PARTITIONS = Metric(
    "kafka_topic_partitions", Kind.GAUGE, "Partitions of a topic.", ("topic",)
)
CURRENT_OFFSET = _of_partition("current_offset", "The high watermark of a partition.")
OLDEST_OFFSET = _of_partition("oldest_offset", "The first offset of a partition.")
REPLICAS = _of_partition("replicas", "Replicas of a partition.")
IN_SYNC = _of_partition("in_sync_replica", "In-sync replicas of a partition.")
UNDER_REPLICATED = _of_partition(
    "under_replicated_partition", "Whether fewer replicas are in sync than there are."
)
LEADER = _of_partition("leader", "The broker that leads a partition, -1 for none.")
LEADER_IS_PREFERRED = _of_partition(
    "leader_is_preferred", "Whether a partition is led by its preferred replica."
)

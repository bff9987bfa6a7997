"""Groups that a broker coordinates: their states, rebalances, offsets and lag."""

from barnabas.metrics.metric import Kind, Metric

_TABLE = "kafka.coordinator.group:type=GroupMetadataManager,name="
_COORDINATOR = "kafka.server:type=group-coordinator-metrics"
_PARTITION = ("consumergroup", "topic", "partition")
_TOPIC = ("consumergroup", "topic")


def _of_table(name: str, help: str) -> Metric:
    return Metric(
        f"kafka_coordinator_group_groupmetadatamanager_{name.lower()}",
        Kind.GAUGE,
        help,
        bean=_TABLE + name,
    )


def _gauge(name: str, help: str, labels: tuple[str, ...] = ()) -> Metric:
    return Metric(
        f"kafka_server_group_coordinator_metrics_{name}",
        Kind.GAUGE,
        help,
        labels,
        bean=_COORDINATOR,
    )


GROUPS = _of_table("NumGroups", "Groups coordinated here, of both protocols.")
OFFSETS = _of_table("NumOffsets", "Offsets that are stored here for groups.")
PREPARING = _of_table(
    "NumGroupsPreparingRebalance", "Classic groups that wait for members to rejoin."
)
COMPLETING = _of_table(
    "NumGroupsCompletingRebalance", "Classic groups that wait for the leader's assignment."
)
STABLE = _of_table("NumGroupsStable", "Classic groups with an assignment.")
EMPTY = _of_table("NumGroupsEmpty", "Classic groups without members.")
DEAD = _of_table("NumGroupsDead", "Classic groups that are being unloaded.")

COMMIT_COUNT = _gauge("offset_commit_count", "Offsets committed since the start.")
COMMIT_RATE = _gauge("offset_commit_rate", "Offsets committed per second.")
EXPIRATION_COUNT = _gauge("offset_expiration_count", "Offsets expired since the start.")
EXPIRATION_RATE = _gauge("offset_expiration_rate", "Offsets expired per second.")
DELETION_COUNT = _gauge("offset_deletion_count", "Offsets deleted on request since the start.")
DELETION_RATE = _gauge("offset_deletion_rate", "Offsets deleted on request per second.")
REBALANCE_COUNT = _gauge(
    "group_completed_rebalance_count", "Completed rebalances of classic groups since the start."
)
REBALANCE_RATE = _gauge(
    "group_completed_rebalance_rate", "Completed rebalances of classic groups per second."
)
CONSUMER_REBALANCE_COUNT = _gauge(
    "consumer_group_rebalance_count", "New epochs of consumer groups (KIP-848) since the start."
)
CONSUMER_REBALANCE_RATE = _gauge(
    "consumer_group_rebalance_rate", "New epochs of consumer groups (KIP-848) per second."
)
CONSUMER_GROUPS = _gauge("consumer_group_count", "Consumer groups (KIP-848) by state.", ("state",))
GROUPS_BY_PROTOCOL = _gauge("group_count", "Groups by protocol.", ("protocol",))
LOAD_TIME_MAX = _gauge(
    "partition_load_time_max",
    "The longest load of a partition of offsets in the last 30 s, in milliseconds.",
)
LOAD_TIME_AVG = _gauge(
    "partition_load_time_avg",
    "The average load of a partition of offsets in the last 30 s, in milliseconds.",
)
REBALANCE_SECONDS = Metric(
    "barnabas_rebalance_seconds",
    Kind.BUCKETS,
    "Seconds from the first reason to rebalance until every member has its assignment.",
    ("protocol",),
    scale=0.001,
)

CURRENT_OFFSET = Metric(
    "kafka_consumergroup_current_offset", Kind.GAUGE, "The committed offset.", _PARTITION
)
LAG = Metric(
    "kafka_consumergroup_lag",
    Kind.GAUGE,
    "Records between the committed offset and the high watermark.",
    _PARTITION,
)
CURRENT_OFFSET_SUM = Metric(
    "kafka_consumergroup_current_offset_sum",
    Kind.GAUGE,
    "The sum of a topic's committed offsets.",
    _TOPIC,
)
LAG_SUM = Metric(
    "kafka_consumergroup_lag_sum", Kind.GAUGE, "The lag of all partitions of a topic.", _TOPIC
)
MEMBERS = Metric(
    "kafka_consumergroup_members", Kind.GAUGE, "Members of a group.", ("consumergroup",)
)
STABLE_LAG = Metric(
    "barnabas_consumergroup_stable_lag",
    Kind.GAUGE,
    "Records between the committed offset and the last stable offset: what a consumer with "
    "isolation.level=read_committed has yet to read.",
    _PARTITION,
)
STABLE_LAG_SUM = Metric(
    "barnabas_consumergroup_stable_lag_sum",
    Kind.GAUGE,
    "The lag up to the last stable offset of all partitions of a topic.",
    _TOPIC,
)
LAG_SECONDS = Metric(
    "barnabas_consumergroup_lag_seconds",
    Kind.GAUGE,
    "How long ago the record at the committed offset was appended, 0 without lag.",
    _PARTITION,
)
LAG_SECONDS_MAX = Metric(
    "barnabas_consumergroup_lag_seconds_max",
    Kind.GAUGE,
    "The lag in seconds of a topic's slowest partition.",
    _TOPIC,
)

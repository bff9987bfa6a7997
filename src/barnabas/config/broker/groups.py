"""Consumer groups and their committed offsets."""

from __future__ import annotations

from barnabas.config.option import Section, option, reserved
from barnabas.config.reasons import COMMITS


class GroupsOptions(Section):
    """Consumer groups and their committed offsets."""

    offsets_topic_num_partitions: int = option(
        "offsets.topic.num.partitions",
        "int",
        default=50,
        at_least=1,
        doc="Number of partitions of the offsets topic.",
    )
    offsets_topic_replication_factor: int = option(
        "offsets.topic.replication.factor",
        "short",
        default=3,
        at_least=1,
        doc="Replication factor of the offsets topic.",
    )
    offsets_topic_segment_bytes: int = option(
        "offsets.topic.segment.bytes",
        "int",
        default=104_857_600,
        at_least=1,
        doc="Segment size of the offsets topic.",
    )
    offsets_topic_compression_codec: int = option(
        "offsets.topic.compression.codec",
        "int",
        default=0,
        at_least=0,
        at_most=4,
        doc="Compression codec of the offsets topic, by number.",
    )
    offsets_retention_minutes: int = option(
        "offsets.retention.minutes",
        "int",
        default=10_080,
        at_least=1,
        doc="How long the offsets of an empty group are kept.",
    )
    offsets_retention_check_interval_ms: int = option(
        "offsets.retention.check.interval.ms",
        "long",
        default=600_000,
        at_least=1,
        doc="How often offsets are checked for expiry.",
    )
    offsets_commit_timeout_ms: int = option(
        "offsets.commit.timeout.ms",
        "int",
        default=5_000,
        at_least=1,
        doc="Maximum wait for an offset commit to be replicated.",
    )
    offsets_commit_required_acks: int = option(
        "offsets.commit.required.acks",
        "short",
        default=-1,
        reserved=COMMITS,
        doc="Acknowledgements required for an offset commit.",
    )
    offsets_load_buffer_size: int = option(
        "offsets.load.buffer.size",
        "int",
        default=5_242_880,
        at_least=1,
        doc="Read size when loading offsets.",
    )
    offset_metadata_max_bytes: int = option(
        "offset.metadata.max.bytes",
        "int",
        default=4_096,
        doc="Maximum size of the metadata in an offset commit.",
    )
    group_min_session_timeout_ms: int = option(
        "group.min.session.timeout.ms",
        "int",
        default=6_000,
        doc="Minimum session timeout a member may request.",
    )
    group_max_session_timeout_ms: int = option(
        "group.max.session.timeout.ms",
        "int",
        default=1_800_000,
        doc="Maximum session timeout a member may request.",
    )
    group_initial_rebalance_delay_ms: int = option(
        "group.initial.rebalance.delay.ms",
        "int",
        default=3_000,
        doc="How long an empty group waits for more members before its first rebalance.",
    )
    group_max_size: int = option(
        "group.max.size",
        "int",
        default=2**31 - 1,
        at_least=1,
        doc="Maximum number of members in a group.",
    )
    group_coordinator_rebalance_protocols: tuple[str, ...] = option(
        "group.coordinator.rebalance.protocols",
        "list",
        default=("classic", "consumer"),
        choices=("classic", "consumer", "share", "streams"),
        doc="Enabled group protocols.",
    )
    _threads = reserved(
        """
        group.coordinator.threads           int:1..  1   no  EVENT_LOOP  Threads of the group coordinator.
        group.coordinator.append.linger.ms  int:0..  10  no  AT_ONCE     How long the coordinator batches its writes.
        """  # noqa: E501
    )
    group_consumer_heartbeat_interval_ms: int = option(
        "group.consumer.heartbeat.interval.ms",
        "int",
        default=5_000,
        at_least=1,
        doc="Heartbeat interval for members of consumer groups.",
    )
    _heartbeat_bounds = reserved(
        """
        group.consumer.min.heartbeat.interval.ms  int:1..  5000   no  GROUP_BOUNDS  Minimum heartbeat interval for a consumer group.
        group.consumer.max.heartbeat.interval.ms  int:1..  15000  no  GROUP_BOUNDS  Maximum heartbeat interval for a consumer group.
        """  # noqa: E501
    )
    group_consumer_migration_policy: str = option(
        "group.consumer.migration.policy",
        "string",
        default="bidirectional",
        choices=("disabled", "upgrade", "downgrade", "bidirectional"),
        doc="Whether a group is converted to a consumer group when such a member joins (upgrade), "
        "and back to a classic group when the last one leaves (downgrade).",
    )
    group_consumer_session_timeout_ms: int = option(
        "group.consumer.session.timeout.ms",
        "int",
        default=45_000,
        at_least=1,
        doc="Session timeout for members of consumer groups.",
    )
    _session_bounds = reserved(
        """
        group.consumer.min.session.timeout.ms  int:1..  45000  no  GROUP_BOUNDS  Minimum session timeout for a consumer group.
        group.consumer.max.session.timeout.ms  int:1..  60000  no  GROUP_BOUNDS  Maximum session timeout for a consumer group.
        """  # noqa: E501
    )
    group_consumer_max_size: int = option(
        "group.consumer.max.size",
        "int",
        default=2**31 - 1,
        at_least=1,
        doc="Maximum number of members in a consumer group.",
    )
    group_consumer_assignors: tuple[str, ...] = option(
        "group.consumer.assignors",
        "list",
        default=("uniform", "range"),
        doc="Server-side assignors; the first one is the default.",
    )

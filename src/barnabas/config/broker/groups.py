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
        doc="Partitions of the topic that keeps committed offsets.",
    )
    offsets_topic_replication_factor: int = option(
        "offsets.topic.replication.factor",
        "short",
        default=3,
        at_least=1,
        doc="Replicas of the topic that keeps committed offsets.",
    )
    offsets_topic_segment_bytes: int = option(
        "offsets.topic.segment.bytes",
        "int",
        default=104_857_600,
        at_least=1,
        doc="Segment size of the topic that keeps committed offsets.",
    )
    offsets_topic_compression_codec: int = option(
        "offsets.topic.compression.codec",
        "int",
        default=0,
        at_least=0,
        at_most=4,
        doc="Codec of committed offsets, by its number.",
    )
    offsets_retention_minutes: int = option(
        "offsets.retention.minutes",
        "int",
        default=10_080,
        at_least=1,
        doc="How long the offsets of a group without members are kept.",
    )
    offsets_retention_check_interval_ms: int = option(
        "offsets.retention.check.interval.ms",
        "long",
        default=600_000,
        at_least=1,
        doc="How often offsets are looked over for expiry.",
    )
    offsets_commit_timeout_ms: int = option(
        "offsets.commit.timeout.ms",
        "int",
        default=5_000,
        at_least=1,
        doc="Longest wait for a commit to be replicated.",
    )
    offsets_commit_required_acks: int = option(
        "offsets.commit.required.acks",
        "short",
        default=-1,
        reserved=COMMITS,
        doc="Acknowledgements that a commit needs.",
    )
    offsets_load_buffer_size: int = option(
        "offsets.load.buffer.size",
        "int",
        default=5_242_880,
        at_least=1,
        doc="Bytes read at once while loading offsets.",
    )
    offset_metadata_max_bytes: int = option(
        "offset.metadata.max.bytes",
        "int",
        default=4_096,
        doc="Longest note that a client may add to a commit.",
    )
    group_min_session_timeout_ms: int = option(
        "group.min.session.timeout.ms",
        "int",
        default=6_000,
        doc="Shortest session that a member may ask for.",
    )
    group_max_session_timeout_ms: int = option(
        "group.max.session.timeout.ms",
        "int",
        default=1_800_000,
        doc="Longest session that a member may ask for.",
    )
    group_initial_rebalance_delay_ms: int = option(
        "group.initial.rebalance.delay.ms",
        "int",
        default=3_000,
        doc="Wait for more members before an empty group's first assignment.",
    )
    group_max_size: int = option(
        "group.max.size",
        "int",
        default=2**31 - 1,
        at_least=1,
        doc="Most members of a group.",
    )
    group_coordinator_rebalance_protocols: tuple[str, ...] = option(
        "group.coordinator.rebalance.protocols",
        "list",
        default=("classic", "consumer"),
        choices=("classic", "consumer", "share", "streams"),
        doc="Group protocols that are offered.",
    )
    _threads = reserved(
        """
        group.coordinator.threads           int:1..  1   no  EVENT_LOOP  Threads of the group coordinator.
        group.coordinator.append.linger.ms  int:0..  10  no  AT_ONCE     Time for which writes of the coordinator are gathered.
        """  # noqa: E501
    )
    group_consumer_heartbeat_interval_ms: int = option(
        "group.consumer.heartbeat.interval.ms",
        "int",
        default=5_000,
        at_least=1,
        doc="Heartbeat interval that members of consumer groups are given.",
    )
    _heartbeat_bounds = reserved(
        """
        group.consumer.min.heartbeat.interval.ms  int:1..  5000   no  GROUP_BOUNDS  Shortest heartbeat interval of a consumer group.
        group.consumer.max.heartbeat.interval.ms  int:1..  15000  no  GROUP_BOUNDS  Longest heartbeat interval of a consumer group.
        """  # noqa: E501
    )
    group_consumer_migration_policy: str = option(
        "group.consumer.migration.policy",
        "string",
        default="bidirectional",
        choices=("disabled", "upgrade", "downgrade", "bidirectional"),
        doc="Whether a group becomes a consumer group when a member of that protocol joins "
        "(upgrade), and a classic one when the last of them leaves (downgrade).",
    )
    group_consumer_session_timeout_ms: int = option(
        "group.consumer.session.timeout.ms",
        "int",
        default=45_000,
        at_least=1,
        doc="Session timeout that members of consumer groups are given.",
    )
    _session_bounds = reserved(
        """
        group.consumer.min.session.timeout.ms  int:1..  45000  no  GROUP_BOUNDS  Shortest session timeout of a consumer group.
        group.consumer.max.session.timeout.ms  int:1..  60000  no  GROUP_BOUNDS  Longest session timeout of a consumer group.
        """  # noqa: E501
    )
    group_consumer_max_size: int = option(
        "group.consumer.max.size",
        "int",
        default=2**31 - 1,
        at_least=1,
        doc="Most members of a consumer group.",
    )
    group_consumer_assignors: tuple[str, ...] = option(
        "group.consumer.assignors",
        "list",
        default=("uniform", "range"),
        doc="Assignors that the broker offers, the first one being the default.",
    )

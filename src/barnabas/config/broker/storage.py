"""The log: segments, retention, flushing and timestamps."""

from __future__ import annotations

from barnabas.config.option import Section, option, reserved


class StorageOptions(Section):
    """The log: segments, retention, flushing and timestamps."""

    message_max_bytes: int = option(
        "message.max.bytes",
        "int",
        default=1_048_588,
        at_least=0,
        dynamic="cluster",
        doc="Largest record batch the broker accepts.",
    )
    compression_type: str = option(
        "compression.type",
        "string",
        default="producer",
        choices=("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        dynamic="cluster",
        doc="Compression codec for stored batches; producer keeps the producer's codec.",
    )
    compression_gzip_level: int = option(
        "compression.gzip.level",
        "int",
        default=-1,
        at_least=1,
        at_most=9,
        besides=(-1,),
        dynamic="cluster",
        doc="Level of gzip when the broker recompresses; -1 for the library's default.",
    )
    compression_lz4_level: int = option(
        "compression.lz4.level",
        "int",
        default=9,
        at_least=1,
        at_most=17,
        dynamic="cluster",
        doc="Level of lz4 when the broker recompresses.",
    )
    compression_zstd_level: int = option(
        "compression.zstd.level",
        "int",
        default=3,
        at_least=-131072,
        at_most=22,
        dynamic="cluster",
        doc="Level of zstd when the broker recompresses.",
    )
    log_segment_bytes: int = option(
        "log.segment.bytes",
        "int",
        default=1_073_741_824,
        at_least=14,
        dynamic="cluster",
        doc="Size at which a segment is closed and a new one is rolled.",
    )
    log_segment_delete_delay_ms: int = option(
        "log.segment.delete.delay.ms",
        "long",
        default=60_000,
        at_least=0,
        dynamic="cluster",
        doc="Delay before a deleted segment file is removed from disk.",
    )
    log_roll_ms: int | None = option(
        "log.roll.ms",
        "long",
        default=None,
        at_least=1,
        dynamic="cluster",
        doc="Age at which a segment is rolled.",
    )
    log_roll_hours: int = option(
        "log.roll.hours",
        "int",
        default=168,
        at_least=1,
        doc="Age at which a segment is rolled if log.roll.ms is not set.",
    )
    log_roll_jitter_ms: int | None = option(
        "log.roll.jitter.ms",
        "long",
        default=None,
        at_least=0,
        dynamic="cluster",
        doc="Maximum random jitter subtracted from the segment roll time.",
    )
    log_roll_jitter_hours: int = option(
        "log.roll.jitter.hours",
        "int",
        default=0,
        at_least=0,
        doc="Maximum roll jitter if log.roll.jitter.ms is not set.",
    )
    log_retention_ms: int | None = option(
        "log.retention.ms",
        "long",
        default=None,
        at_least=1,
        besides=(-1,),
        dynamic="cluster",
        doc="How long records are kept; -1 for no time limit.",
    )
    log_retention_minutes: int | None = option(
        "log.retention.minutes",
        "int",
        default=None,
        at_least=1,
        besides=(-1,),
        doc="How long records are kept if log.retention.ms is not set.",
    )
    log_retention_hours: int = option(
        "log.retention.hours",
        "int",
        default=168,
        at_least=1,
        besides=(-1,),
        doc="How long records are kept if neither log.retention.ms nor minutes is set.",
    )
    log_retention_bytes: int = option(
        "log.retention.bytes",
        "long",
        default=-1,
        dynamic="cluster",
        doc="Partition size above which the oldest segments are deleted; -1 for no limit.",
    )
    log_retention_check_interval_ms: int = option(
        "log.retention.check.interval.ms",
        "long",
        default=300_000,
        at_least=1,
        doc="How often logs are checked for segments to delete.",
    )
    log_cleanup_policy: tuple[str, ...] = option(
        "log.cleanup.policy",
        "list",
        default=("delete",),
        choices=("compact", "delete"),
        dynamic="cluster",
        doc="Cleanup policy for old segments: delete, compact, or both.",
    )
    log_index_interval_bytes: int = option(
        "log.index.interval.bytes",
        "int",
        default=4_096,
        at_least=0,
        dynamic="cluster",
        doc="Bytes of records between offset index entries.",
    )
    log_index_size_max_bytes: int = option(
        "log.index.size.max.bytes",
        "int",
        default=10_485_760,
        at_least=4,
        dynamic="cluster",
        doc="Index file size at which the segment is rolled.",
    )
    log_preallocate: bool = option(
        "log.preallocate",
        "boolean",
        default=False,
        dynamic="cluster",
        doc="Whether new segment files are preallocated to their full size.",
    )
    log_flush_interval_messages: int = option(
        "log.flush.interval.messages",
        "long",
        default=2**63 - 1,
        at_least=1,
        dynamic="cluster",
        doc="Number of records after which a partition is flushed to disk.",
    )
    log_flush_interval_ms: int | None = option(
        "log.flush.interval.ms",
        "long",
        default=None,
        at_least=0,
        dynamic="cluster",
        doc="Maximum time before a record is flushed to disk.",
    )
    log_flush_scheduler_interval_ms: int = option(
        "log.flush.scheduler.interval.ms",
        "long",
        default=2**63 - 1,
        at_least=0,
        doc="How often partitions are checked for records to flush.",
    )
    log_flush_offset_checkpoint_interval_ms: int = option(
        "log.flush.offset.checkpoint.interval.ms",
        "int",
        default=60_000,
        at_least=0,
        doc="How often recovery points are checkpointed.",
    )
    log_flush_start_offset_checkpoint_interval_ms: int = option(
        "log.flush.start.offset.checkpoint.interval.ms",
        "int",
        default=60_000,
        at_least=0,
        doc="How often log start offsets are checkpointed.",
    )
    log_message_timestamp_type: str = option(
        "log.message.timestamp.type",
        "string",
        default="CreateTime",
        choices=("CreateTime", "LogAppendTime"),
        dynamic="cluster",
        doc="Whether records keep the producer's timestamp or get the append time.",
    )
    log_message_timestamp_before_max_ms: int = option(
        "log.message.timestamp.before.max.ms",
        "long",
        default=2**63 - 1,
        at_least=0,
        dynamic="cluster",
        doc="How far a record's timestamp may be behind the broker's clock.",
    )
    log_message_timestamp_after_max_ms: int = option(
        "log.message.timestamp.after.max.ms",
        "long",
        default=2**63 - 1,
        at_least=0,
        dynamic="cluster",
        doc="How far a record's timestamp may be ahead of the broker's clock.",
    )
    log_message_timestamp_difference_max_ms: int = option(
        "log.message.timestamp.difference.max.ms",
        "long",
        default=2**63 - 1,
        at_least=0,
        dynamic="cluster",
        reserved="use log.message.timestamp.before.max.ms and log.message.timestamp.after.max.ms",
        doc="How far a record's timestamp may differ from the broker's clock.",
    )
    log_message_downconversion_enable: bool = option(
        "log.message.downconversion.enable",
        "boolean",
        default=True,
        dynamic="cluster",
        doc="Whether batches are down-converted for old Fetch versions.",
    )
    log_message_format_version: str = option(
        "log.message.format.version",
        "string",
        default="3.0-IV1",
        reserved="records are always stored in format v2",
        doc="Record format version on disk.",
    )
    _without_effect = reserved(
        """
        log.dir.failure.timeout.ms  long:1..   30000  no       KRAFT   How long to wait for the controller to be notified of a failed directory.
        log.local.retention.ms      long:-2..  -2     cluster  TIERED  How long records are kept on the local disk.
        log.local.retention.bytes   long:-2..  -2     cluster  TIERED  Bytes of a partition kept on the local disk.
        remote.fetch.max.wait.ms    int:1..    500    cluster  TIERED  Maximum wait for a read from remote storage.
        """  # noqa: E501
    )
    num_recovery_threads_per_data_dir: int = option(
        "num.recovery.threads.per.data.dir",
        "int",
        default=1,
        at_least=1,
        dynamic="cluster",
        doc="Threads per data directory for loading logs at startup.",
    )

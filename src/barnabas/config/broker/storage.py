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
        doc="Largest record batch that is accepted.",
    )
    compression_type: str = option(
        "compression.type",
        "string",
        default="producer",
        choices=("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        dynamic="cluster",
        doc="Codec in which batches are stored; producer keeps the one they came in.",
    )
    compression_gzip_level: int = option(
        "compression.gzip.level",
        "int",
        default=-1,
        at_least=1,
        at_most=9,
        besides=(-1,),
        dynamic="cluster",
        doc="Level when the broker compresses with gzip; -1 is the library's own.",
    )
    compression_lz4_level: int = option(
        "compression.lz4.level",
        "int",
        default=9,
        at_least=1,
        at_most=17,
        dynamic="cluster",
        doc="Level when the broker compresses with lz4.",
    )
    compression_zstd_level: int = option(
        "compression.zstd.level",
        "int",
        default=3,
        at_least=-131072,
        at_most=22,
        dynamic="cluster",
        doc="Level when the broker compresses with zstd.",
    )
    log_segment_bytes: int = option(
        "log.segment.bytes",
        "int",
        default=1_073_741_824,
        at_least=14,
        dynamic="cluster",
        doc="Size at which a segment is closed and the next one begins.",
    )
    log_segment_delete_delay_ms: int = option(
        "log.segment.delete.delay.ms",
        "long",
        default=60_000,
        at_least=0,
        dynamic="cluster",
        doc="Wait between taking a file out of use and removing it.",
    )
    log_roll_ms: int | None = option(
        "log.roll.ms",
        "long",
        default=None,
        at_least=1,
        dynamic="cluster",
        doc="Age at which a segment is closed.",
    )
    log_roll_hours: int = option(
        "log.roll.hours",
        "int",
        default=168,
        at_least=1,
        doc="Age at which a segment is closed, when log.roll.ms is not set.",
    )
    log_roll_jitter_ms: int | None = option(
        "log.roll.jitter.ms",
        "long",
        default=None,
        at_least=0,
        dynamic="cluster",
        doc="Random part by which a segment is closed early.",
    )
    log_roll_jitter_hours: int = option(
        "log.roll.jitter.hours",
        "int",
        default=0,
        at_least=0,
        doc="Random part by which a segment is closed early, when log.roll.jitter.ms is not set.",
    )
    log_retention_ms: int | None = option(
        "log.retention.ms",
        "long",
        default=None,
        at_least=1,
        besides=(-1,),
        dynamic="cluster",
        doc="How long records are kept; -1 for ever.",
    )
    log_retention_minutes: int | None = option(
        "log.retention.minutes",
        "int",
        default=None,
        at_least=1,
        besides=(-1,),
        doc="How long records are kept, when log.retention.ms is not set.",
    )
    log_retention_hours: int = option(
        "log.retention.hours",
        "int",
        default=168,
        at_least=1,
        besides=(-1,),
        doc="How long records are kept, when neither ms nor minutes are set.",
    )
    log_retention_bytes: int = option(
        "log.retention.bytes",
        "long",
        default=-1,
        dynamic="cluster",
        doc="Size of a partition above which its oldest segments go; -1 sets no bound.",
    )
    log_retention_check_interval_ms: int = option(
        "log.retention.check.interval.ms",
        "long",
        default=300_000,
        at_least=1,
        doc="How often segments are looked over for deletion.",
    )
    log_cleanup_policy: tuple[str, ...] = option(
        "log.cleanup.policy",
        "list",
        default=("delete",),
        choices=("compact", "delete"),
        dynamic="cluster",
        doc="What happens to old records: delete, compact, or both.",
    )
    log_index_interval_bytes: int = option(
        "log.index.interval.bytes",
        "int",
        default=4_096,
        at_least=0,
        dynamic="cluster",
        doc="Bytes of records between two entries of the offset index.",
    )
    log_index_size_max_bytes: int = option(
        "log.index.size.max.bytes",
        "int",
        default=10_485_760,
        at_least=4,
        dynamic="cluster",
        doc="Size of an index file at which its segment is closed.",
    )
    log_preallocate: bool = option(
        "log.preallocate",
        "boolean",
        default=False,
        dynamic="cluster",
        doc="Whether a segment file is given its full size when it is made.",
    )
    log_flush_interval_messages: int = option(
        "log.flush.interval.messages",
        "long",
        default=2**63 - 1,
        at_least=1,
        dynamic="cluster",
        doc="Records after which a partition is flushed to disk.",
    )
    log_flush_interval_ms: int | None = option(
        "log.flush.interval.ms",
        "long",
        default=None,
        at_least=0,
        dynamic="cluster",
        doc="Longest time that a record waits to be flushed to disk.",
    )
    log_flush_scheduler_interval_ms: int = option(
        "log.flush.scheduler.interval.ms",
        "long",
        default=2**63 - 1,
        at_least=0,
        doc="How often partitions are looked over for flushing.",
    )
    log_flush_offset_checkpoint_interval_ms: int = option(
        "log.flush.offset.checkpoint.interval.ms",
        "int",
        default=60_000,
        at_least=0,
        doc="How often recovery points are written down.",
    )
    log_flush_start_offset_checkpoint_interval_ms: int = option(
        "log.flush.start.offset.checkpoint.interval.ms",
        "int",
        default=60_000,
        at_least=0,
        doc="How often log start offsets are written down.",
    )
    log_message_timestamp_type: str = option(
        "log.message.timestamp.type",
        "string",
        default="CreateTime",
        choices=("CreateTime", "LogAppendTime"),
        dynamic="cluster",
        doc="Whether a record keeps its producer's time or gets the time of the append.",
    )
    log_message_timestamp_before_max_ms: int = option(
        "log.message.timestamp.before.max.ms",
        "long",
        default=2**63 - 1,
        at_least=0,
        dynamic="cluster",
        doc="How far a record's time may lie in the past.",
    )
    log_message_timestamp_after_max_ms: int = option(
        "log.message.timestamp.after.max.ms",
        "long",
        default=2**63 - 1,
        at_least=0,
        dynamic="cluster",
        doc="How far a record's time may lie in the future.",
    )
    log_message_timestamp_difference_max_ms: int = option(
        "log.message.timestamp.difference.max.ms",
        "long",
        default=2**63 - 1,
        at_least=0,
        dynamic="cluster",
        reserved="use log.message.timestamp.before.max.ms and log.message.timestamp.after.max.ms",
        doc="How far a record's time may differ from the broker's.",
    )
    log_message_downconversion_enable: bool = option(
        "log.message.downconversion.enable",
        "boolean",
        default=True,
        dynamic="cluster",
        doc="Whether old fetches are answered by converting batches to old formats.",
    )
    log_message_format_version: str = option(
        "log.message.format.version",
        "string",
        default="3.0-IV1",
        reserved="records are stored in format v2 alone",
        doc="Format in which records are stored.",
    )
    _without_effect = reserved(
        """
        log.dir.failure.timeout.ms  long:1..   30000  no       KRAFT   Wait for the controller to learn of a failed directory.
        log.local.retention.ms      long:-2..  -2     cluster  TIERED  How long records stay on the local disk.
        log.local.retention.bytes   long:-2..  -2     cluster  TIERED  Bytes of a partition that stay on the local disk.
        remote.fetch.max.wait.ms    int:1..    500    cluster  TIERED  Longest wait for a read from the remote tier.
        """  # noqa: E501
    )
    num_recovery_threads_per_data_dir: int = option(
        "num.recovery.threads.per.data.dir",
        "int",
        default=1,
        at_least=1,
        dynamic="cluster",
        doc="Threads that load the logs of a directory at start.",
    )

"""Log compaction."""

from __future__ import annotations

from barnabas.config.option import Section, option


class CleanerOptions(Section):
    """Log compaction."""

    log_cleaner_enable: bool = option(
        "log.cleaner.enable",
        "boolean",
        default=True,
        doc="Whether log compaction is enabled.",
    )
    log_cleaner_threads: int = option(
        "log.cleaner.threads",
        "int",
        default=1,
        at_least=0,
        dynamic="cluster",
        doc="Number of compaction threads.",
    )
    log_cleaner_dedupe_buffer_size: int = option(
        "log.cleaner.dedupe.buffer.size",
        "long",
        default=134_217_728,
        at_least=0,
        dynamic="cluster",
        doc="Memory for the deduplication buffer of one compaction.",
    )
    log_cleaner_io_buffer_size: int = option(
        "log.cleaner.io.buffer.size",
        "int",
        default=524_288,
        at_least=0,
        dynamic="cluster",
        doc="I/O buffer size for compaction.",
    )
    log_cleaner_io_buffer_load_factor: float = option(
        "log.cleaner.io.buffer.load.factor",
        "double",
        default=0.9,
        at_least=0,
        dynamic="cluster",
        doc="Maximum load factor of the deduplication buffer.",
    )
    log_cleaner_io_max_bytes_per_second: float = option(
        "log.cleaner.io.max.bytes.per.second",
        "double",
        default=1.7976931348623157e308,
        dynamic="cluster",
        doc="Maximum bytes per second that compaction reads and writes.",
    )
    log_cleaner_backoff_ms: int = option(
        "log.cleaner.backoff.ms",
        "long",
        default=15_000,
        at_least=0,
        dynamic="cluster",
        doc="Sleep time when there is nothing to compact.",
    )
    log_cleaner_min_cleanable_ratio: float = option(
        "log.cleaner.min.cleanable.ratio",
        "double",
        default=0.5,
        at_least=0,
        at_most=1,
        dynamic="cluster",
        doc="Ratio of dirty bytes to log size at which a log is compacted.",
    )
    log_cleaner_min_compaction_lag_ms: int = option(
        "log.cleaner.min.compaction.lag.ms",
        "long",
        default=0,
        at_least=0,
        dynamic="cluster",
        doc="Minimum time a record stays uncompacted.",
    )
    log_cleaner_max_compaction_lag_ms: int = option(
        "log.cleaner.max.compaction.lag.ms",
        "long",
        default=2**63 - 1,
        at_least=1,
        dynamic="cluster",
        doc="Maximum time a record may stay ineligible for compaction.",
    )
    log_cleaner_delete_retention_ms: int = option(
        "log.cleaner.delete.retention.ms",
        "long",
        default=86_400_000,
        at_least=0,
        dynamic="cluster",
        doc="How long tombstones are kept after compaction.",
    )

"""Log compaction."""

from __future__ import annotations

from barnabas.config.option import Section, option


class CleanerOptions(Section):
    """Log compaction."""

    log_cleaner_enable: bool = option(
        "log.cleaner.enable",
        "boolean",
        default=True,
        doc="Whether compaction runs.",
    )
    log_cleaner_threads: int = option(
        "log.cleaner.threads",
        "int",
        default=1,
        at_least=0,
        dynamic="cluster",
        doc="Threads that compact.",
    )
    log_cleaner_dedupe_buffer_size: int = option(
        "log.cleaner.dedupe.buffer.size",
        "long",
        default=134_217_728,
        at_least=0,
        dynamic="cluster",
        doc="Memory for the keys of one compaction.",
    )
    log_cleaner_io_buffer_size: int = option(
        "log.cleaner.io.buffer.size",
        "int",
        default=524_288,
        at_least=0,
        dynamic="cluster",
        doc="Buffer for reading and writing while compacting.",
    )
    log_cleaner_io_buffer_load_factor: float = option(
        "log.cleaner.io.buffer.load.factor",
        "double",
        default=0.9,
        at_least=0,
        dynamic="cluster",
        doc="How full the memory for keys may become.",
    )
    log_cleaner_io_max_bytes_per_second: float = option(
        "log.cleaner.io.max.bytes.per.second",
        "double",
        default=1.7976931348623157e308,
        dynamic="cluster",
        doc="Bytes that compaction may read and write per second.",
    )
    log_cleaner_backoff_ms: int = option(
        "log.cleaner.backoff.ms",
        "long",
        default=15_000,
        at_least=0,
        dynamic="cluster",
        doc="Pause when there was nothing to compact.",
    )
    log_cleaner_min_cleanable_ratio: float = option(
        "log.cleaner.min.cleanable.ratio",
        "double",
        default=0.5,
        at_least=0,
        at_most=1,
        dynamic="cluster",
        doc="Share of uncompacted bytes at which a log is compacted.",
    )
    log_cleaner_min_compaction_lag_ms: int = option(
        "log.cleaner.min.compaction.lag.ms",
        "long",
        default=0,
        at_least=0,
        dynamic="cluster",
        doc="Time for which a record is safe from compaction.",
    )
    log_cleaner_max_compaction_lag_ms: int = option(
        "log.cleaner.max.compaction.lag.ms",
        "long",
        default=2**63 - 1,
        at_least=1,
        dynamic="cluster",
        doc="Time after which a record must become compactable.",
    )
    log_cleaner_delete_retention_ms: int = option(
        "log.cleaner.delete.retention.ms",
        "long",
        default=86_400_000,
        at_least=0,
        dynamic="cluster",
        doc="How long the marker of a deleted key stays.",
    )

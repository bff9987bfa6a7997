"""Log cleaners. A number "of the last run" is the maximum over all cleaners."""

from barnabas.metrics.metric import Kind, Metric


def _of(type_name: str, name: str, help: str) -> Metric:
    return Metric(
        f"kafka_log_{type_name.lower()}_{name.lower().replace('-', '_')}",
        Kind.GAUGE,
        help,
        bean=f"kafka.log:type={type_name},name={name}",
    )


MAX_DIRTY = _of("LogCleanerManager", "max-dirty-percent", "Highest dirty ratio of a compacted log.")
TIME_SINCE_LAST_RUN = _of(
    "LogCleanerManager",
    "time-since-last-run-ms",
    "Time since the cleaner last looked for a log to compact.",
)
UNCLEANABLE_PARTITIONS = _of(
    "LogCleanerManager",
    "uncleanable-partitions-count",
    "Logs that are no longer compacted because their compaction failed.",
)
UNCLEANABLE_BYTES = _of(
    "LogCleanerManager", "uncleanable-bytes", "Size of the logs that are no longer compacted."
)
RECOPY = _of(
    "LogCleaner",
    "cleaner-recopy-percent",
    "Bytes that the last runs kept, in percent of those they read.",
)
MAX_CLEAN_TIME = _of("LogCleaner", "max-clean-time-secs", "Duration of the last run.")
MAX_COMPACTION_DELAY = _of(
    "LogCleaner",
    "max-compaction-delay-secs",
    "How much longer than max.compaction.lag.ms a record waited for the last run.",
)
MAX_BUFFER_UTILIZATION = _of(
    "LogCleaner",
    "max-buffer-utilization-percent",
    "Part of the offset map that the last run filled.",
)
DEAD_THREADS = _of("LogCleaner", "DeadThreadCount", "Cleaners that crashed.")

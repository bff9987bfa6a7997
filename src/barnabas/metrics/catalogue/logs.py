"""Logs on disk: their sizes and offsets, flushes, directories, what retention deleted."""

from barnabas.metrics.metric import Kind, Metric


def _of_log(name: str, help: str) -> Metric:
    return Metric(
        f"kafka_log_log_{name.lower()}",
        Kind.GAUGE,
        help,
        ("topic", "partition"),
        bean=f"kafka.log:type=Log,name={name}",
    )


SIZE = _of_log("Size", "Bytes of records in all segments of a replica.")
SEGMENTS = _of_log("NumLogSegments", "Segments of a replica.")
LOG_START = _of_log("LogStartOffset", "The first offset of a replica.")
LOG_END = _of_log("LogEndOffset", "The next offset of a replica.")

FLUSH_TIME = Metric(
    "kafka_log_logflushstats_logflushrateandtimems",
    Kind.QUANTILES,
    "Milliseconds in which the files of a log were flushed to the disk.",
    bean="kafka.log:type=LogFlushStats,name=LogFlushRateAndTimeMs",
    scale=0.001,
)

OFFLINE_DIRECTORIES = Metric(
    "kafka_log_logmanager_offlinelogdirectorycount",
    Kind.GAUGE,
    "Directories of log.dirs that failed.",
    bean="kafka.log:type=LogManager,name=OfflineLogDirectoryCount",
)
DIRECTORY_OFFLINE = Metric(
    "kafka_log_logmanager_logdirectoryoffline",
    Kind.GAUGE,
    "Whether a directory of log.dirs failed.",
    ("logDirectory",),
    bean="kafka.log:type=LogManager,name=LogDirectoryOffline",
)
LOGS_TO_RECOVER = Metric(
    "kafka_log_logmanager_remaininglogstorecover",
    Kind.GAUGE,
    "Logs that are not opened yet after an unclean stop.",
    ("dir",),
    bean="kafka.log:type=LogManager,name=remainingLogsToRecover",
)
RECOVERED_LOGS = Metric(
    "barnabas_log_recovered_logs",
    Kind.GAUGE,
    "Logs that were recovered at the last start, 0 after a clean stop.",
    ("logDirectory",),
)
RECOVERY_SECONDS = Metric(
    "barnabas_log_recovery_seconds",
    Kind.GAUGE,
    "How long the recovery of a directory took at the last start, 0 after a clean stop.",
    ("logDirectory",),
)

RETENTION_BYTES = Metric(
    "barnabas_log_retention_deleted_bytes_total",
    Kind.COUNTER,
    "Bytes of segments that retention deleted.",
)
RETENTION_SEGMENTS = Metric(
    "barnabas_log_retention_deleted_segments_total",
    Kind.COUNTER,
    "Segments that retention deleted.",
)

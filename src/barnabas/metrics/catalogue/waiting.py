"""Requests that wait in the broker, the fetch sessions, and work queued for other threads."""

from barnabas.metrics.metric import Kind, Metric


def _purgatory(name: str, help: str) -> Metric:
    return Metric(
        f"kafka_server_delayedoperationpurgatory_{name.lower()}",
        Kind.GAUGE,
        help,
        ("delayedOperation",),
        bean=f"kafka.server:type=DelayedOperationPurgatory,name={name}",
    )


def _sessions(name: str, exposed: str, kind: Kind, help: str) -> Metric:
    return Metric(
        f"kafka_server_fetchsessioncache_{exposed}",
        kind,
        help,
        bean=f"kafka.server:type=FetchSessionCache,name={name}",
    )


PURGATORY_SIZE = _purgatory(
    "PurgatorySize", "Waiting requests, each as often as it has partitions that it waits for."
)
DELAYED_OPERATIONS = _purgatory("NumDelayedOperations", "Waiting requests.")
EXPIRED_FETCHES = Metric(
    "kafka_server_delayedfetchmetrics_expires_total",
    Kind.COUNTER,
    "Fetches that were answered because their time was up; of consumers at the end of their "
    "partitions all are.",
    ("fetcherType",),
    bean="kafka.server:type=DelayedFetchMetrics,name=ExpiresPerSec",
)
EXPIRED_APPENDS = Metric(
    "kafka_server_delayedproducemetrics_expires_total",
    Kind.COUNTER,
    "Appends that were not committed in time. The series without a topic is the total.",
    ("topic", "partition"),
    bean="kafka.server:type=DelayedProduceMetrics,name=ExpiresPerSec",
)
FETCH_SESSIONS = _sessions(
    "NumIncrementalFetchSessions",
    "numincrementalfetchsessions",
    Kind.GAUGE,
    "Fetch sessions.",
)
SESSION_PARTITIONS = _sessions(
    "NumIncrementalFetchPartitionsCached",
    "numincrementalfetchpartitionscached",
    Kind.GAUGE,
    "Partitions in all fetch sessions.",
)
SESSION_EVICTIONS = _sessions(
    "IncrementalFetchSessionEvictionsPerSec",
    "incrementalfetchsessionevictions_total",
    Kind.COUNTER,
    "Fetch sessions that had to make room for others.",
)
EXECUTOR_QUEUE = Metric(
    "barnabas_executor_queue_size",
    Kind.GAUGE,
    "Work that waits for one of the num.io.threads threads.",
)

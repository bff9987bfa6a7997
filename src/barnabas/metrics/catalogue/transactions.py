"""Transactions that a broker coordinates, and what it verifies with other coordinators."""

from barnabas.metrics.metric import Kind, Metric

_COORDINATOR = "kafka.server:type=transaction-coordinator-metrics"
_MARKERS = "kafka.coordinator.transaction:type=TransactionMarkerChannelManager,name="

LOAD_TIME_MAX = Metric(
    "kafka_server_transaction_coordinator_metrics_partition_load_time_max",
    Kind.GAUGE,
    "The longest load of a partition of transactions in the last 30 s, in milliseconds.",
    bean=_COORDINATOR,
)
LOAD_TIME_AVG = Metric(
    "kafka_server_transaction_coordinator_metrics_partition_load_time_avg",
    Kind.GAUGE,
    "The average load of a partition of transactions in the last 30 s, in milliseconds.",
    bean=_COORDINATOR,
)
OPEN = Metric("barnabas_transactions_open", Kind.GAUGE, "Transactions that are open or ending.")
OLDEST_OPEN = Metric(
    "barnabas_transactions_oldest_open_seconds",
    Kind.GAUGE,
    "The age of the oldest transaction that is open or ending, 0 without one.",
)
TRANSACTIONAL_IDS = Metric(
    "barnabas_transactional_ids", Kind.GAUGE, "Transactional ids that are coordinated here."
)
TIMED_OUT = Metric(
    "barnabas_transactions_timed_out_total",
    Kind.COUNTER,
    "Transactions that were aborted because their time-out had passed.",
)
UNKNOWN_DESTINATION = Metric(
    "kafka_coordinator_transaction_transactionmarkerchannelmanager_unknowndestinationqueuesize",
    Kind.GAUGE,
    "Transaction markers that are sent again later, because a leader was missing or failed.",
    bean=_MARKERS + "UnknownDestinationQueueSize",
)
APPEND_RETRIES = Metric(
    "kafka_coordinator_transaction_transactionmarkerchannelmanager_logappendretryqueuesize",
    Kind.GAUGE,
    "Ended transactions whose completion is written again later, because that failed.",
    bean=_MARKERS + "LogAppendRetryQueueSize",
)
MARKERS_PENDING = Metric(
    "barnabas_transaction_markers_pending",
    Kind.GAUGE,
    "Partitions of ended transactions that have yet to get their marker.",
)
VERIFICATION_TIME = Metric(
    "kafka_server_addpartitionstotxnmanager_verificationtimems",
    Kind.QUANTILES,
    "Milliseconds in which another broker verified a transaction before its first append.",
    bean="kafka.server:type=AddPartitionsToTxnManager,name=VerificationTimeMs",
    scale=0.001,
)
VERIFICATION_FAILURES = Metric(
    "kafka_server_addpartitionstotxnmanager_verificationfailurerate_count",
    Kind.GAUGE,
    "Partitions of transactions that could not be verified, since the start.",
    bean="kafka.server:type=AddPartitionsToTxnManager,name=VerificationFailureRate",
)

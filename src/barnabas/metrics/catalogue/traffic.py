"""Traffic: bytes and records per topic and in total, and requests that failed.

A series with a topic exists from its first value above 0 on, and as long as this broker hosts the
topic. The one without is the total since the start, also of topics that are gone.
"""

from barnabas.metrics.metric import Kind, Metric


def _of(name: str, help: str, *labels: str) -> Metric:
    return Metric(
        f"kafka_server_brokertopicmetrics_{name.removesuffix('PerSec').lower()}_total",
        Kind.COUNTER,
        help,
        labels,
        bean=f"kafka.server:type=BrokerTopicMetrics,name={name}",
    )


def _of_topic(name: str, help: str) -> Metric:
    return _of(name, help, "topic")


BYTES_IN = _of_topic("BytesInPerSec", "Bytes of records appended, as clients sent them.")
BYTES_OUT = _of_topic("BytesOutPerSec", "Bytes of records sent to consumers.")
MESSAGES_IN = _of_topic("MessagesInPerSec", "Records appended.")
PRODUCE_REQUESTS = _of_topic(
    "TotalProduceRequestsPerSec", "Appends that were tried: one per partition of a request."
)
FETCH_REQUESTS = _of_topic(
    "TotalFetchRequestsPerSec", "Reads that were tried: one per partition of a request."
)
FAILED_PRODUCE = _of_topic(
    "FailedProduceRequestsPerSec",
    "Appends that failed, except for a wrong broker, a batch that is too large or corrupt, and a "
    "disk.",
)
FAILED_FETCH = _of_topic(
    "FailedFetchRequestsPerSec",
    "Reads that failed, except for a wrong broker or epoch, an offset outside of the log, and a "
    "disk.",
)
BYTES_REJECTED = _of_topic("BytesRejectedPerSec", "Bytes of batches larger than max.message.bytes.")
PRODUCE_CONVERSIONS = _of_topic(
    "ProduceMessageConversionsPerSec",
    "Records that were converted from an old format or compressed again.",
)
FETCH_CONVERSIONS = _of_topic(
    "FetchMessageConversionsPerSec", "Records that were converted for an old consumer."
)
NO_KEY = _of_topic(
    "NoKeyCompactedTopicRecordsPerSec", "Records without a key for a compacted topic."
)
INVALID_MAGIC = _of_topic("InvalidMagicNumberRecordsPerSec", "Batches in a wrong format.")
INVALID_CRC = _of_topic("InvalidMessageCrcRecordsPerSec", "Batches that were corrupt.")
INVALID_OFFSET = _of_topic(
    "InvalidOffsetOrSequenceRecordsPerSec",
    "Batches and records whose offsets or sequence numbers do not count.",
)
REPLICATION_BYTES_IN = _of("ReplicationBytesInPerSec", "Bytes of records copied from leaders.")
REPLICATION_BYTES_OUT = _of("ReplicationBytesOutPerSec", "Bytes of records sent to followers.")
REASSIGNMENT_BYTES_IN = _of(
    "ReassignmentBytesInPerSec", "The part of them that is for replicas being added here."
)
REASSIGNMENT_BYTES_OUT = _of(
    "ReassignmentBytesOutPerSec", "The part of them that is for replicas being added elsewhere."
)

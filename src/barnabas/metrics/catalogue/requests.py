"""Requests: how many, how long each phase took, and what they were answered.

The label `request` is an API. A fetch is counted twice, as `Fetch` and as `FetchConsumer` or
`FetchFollower`, as Kafka does: a sum over all values counts it double. Requests between brokers
that only verify partitions of a transaction are `AddPartitionsToTxnVerification`.
"""

from barnabas.metrics.metric import Kind, Metric

_BEAN = "kafka.network:type=RequestMetrics,name="


def _time(name: str, help: str) -> Metric:
    return Metric(
        f"kafka_network_requestmetrics_{name.lower()}",
        Kind.QUANTILES,
        help,
        ("request",),
        bean=_BEAN + name,
        scale=0.001,
    )


REQUESTS = Metric(
    "kafka_network_requestmetrics_requests_total",
    Kind.COUNTER,
    "Requests that were answered, or that expect no response.",
    ("request", "version"),
    bean=f"{_BEAN}RequestsPerSec",
)
ERRORS = Metric(
    "kafka_network_requestmetrics_errors_total",
    Kind.COUNTER,
    "Error codes in responses, each as often as it occurs in one; NONE is success.",
    ("request", "error"),
    bean=f"{_BEAN}ErrorsPerSec",
)
QUEUE_TIME = _time(
    "RequestQueueTimeMs",
    "Milliseconds for which a request that had arrived waited for its handler.",
)
LOCAL_TIME = _time("LocalTimeMs", "Milliseconds that the handler of a request took.")
REMOTE_TIME = _time(
    "RemoteTimeMs",
    "Milliseconds for which a request waited for other brokers, for records or for a disk.",
)
THROTTLE_TIME = _time(
    "ThrottleTimeMs",
    "Milliseconds for which a response asked its client to wait because of a quota.",
)
RESPONSE_QUEUE_TIME = _time(
    "ResponseQueueTimeMs",
    "Always 0: there is no queue between a handler and its connection.",
)
SEND_TIME = _time(
    "ResponseSendTimeMs",
    "Milliseconds for which a response waited for its client to read.",
)
TOTAL_TIME = _time("TotalTimeMs", "Milliseconds from the arrival of a request to its response.")
REQUEST_BYTES = Metric(
    "kafka_network_requestmetrics_requestbytes",
    Kind.QUANTILES,
    "Bytes of a request.",
    ("request",),
    bean=f"{_BEAN}RequestBytes",
)
REQUEST_SECONDS = Metric(
    "barnabas_request_seconds",
    Kind.BUCKETS,
    "Seconds of each phase of requests: queue, local, remote, throttle, send and total. A phase "
    "that never took time is left out.",
    ("api", "phase"),
    scale=1e-6,
)

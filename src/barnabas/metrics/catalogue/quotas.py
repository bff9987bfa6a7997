"""Quotas of clients: what they use, and how long they were throttled."""

from barnabas.metrics.metric import Kind, Metric

_SENSOR = ("resource", "user", "clientId")

BYTE_RATE = Metric(
    "kafka_server_quota_byte_rate",
    Kind.GAUGE,
    "Bytes per second of clients with a quota.",
    _SENSOR,
    bean="kafka.server:type={resource}",
)
REQUEST_TIME = Metric(
    "kafka_server_quota_request_time",
    Kind.GAUGE,
    "Percent of the event loop's time that clients with a quota use.",
    _SENSOR,
    bean="kafka.server:type=Request",
)
MUTATION_RATE = Metric(
    "kafka_server_quota_mutation_rate",
    Kind.GAUGE,
    "Partitions per second that clients with a quota create or delete.",
    _SENSOR,
    bean="kafka.server:type=ControllerMutation",
)
THROTTLE_TIME = Metric(
    "kafka_server_quota_throttle_time",
    Kind.GAUGE,
    "Average milliseconds for which clients were throttled.",
    _SENSOR,
    bean="kafka.server:type={resource}",
)
TOKENS = Metric(
    "kafka_server_quota_tokens",
    Kind.GAUGE,
    "Partitions that a client may create or delete at once.",
    _SENSOR,
    bean="kafka.server:type=ControllerMutation",
)
QUEUE_SIZE = Metric(
    "kafka_server_quota_queue_size",
    Kind.GAUGE,
    "Connections that are unread because of a quota.",
    ("resource",),
    bean="kafka.server:type={resource}",
)
EXEMPT_REQUEST_TIME = Metric(
    "kafka_server_quota_exempt_request_time",
    Kind.GAUGE,
    "Percent of the event loop's time taken by requests of brokers.",
    bean="kafka.server:type=Request",
)

"""Metrics that clients push (KIP-714): how many clients do, and how their requests end."""

from barnabas.metrics.metric import Kind, Metric

INSTANCES = Metric(
    "kafka_server_clientmetrics_clientmetricsinstancecount",
    Kind.GAUGE,
    "Clients that have asked this broker which metrics to push.",
    bean="kafka.server:type=ClientMetrics,name=ClientMetricsInstanceCount",
)
PUSHING = Metric(
    "barnabas_client_telemetry_pushing_clients",
    Kind.GAUGE,
    "Clients whose metrics this broker holds.",
)
PUSHES = Metric(
    "barnabas_client_telemetry_pushes_total",
    Kind.COUNTER,
    "Pushes of clients by result: ok, or the name of the error.",
    ("result",),
)
PUSHED_BYTES = Metric(
    "barnabas_client_telemetry_pushed_bytes_total",
    Kind.COUNTER,
    "Bytes of the accepted pushes, compressed as they were.",
)

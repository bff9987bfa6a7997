"""Requests: how many, how long each phase took, and what they were answered."""

from barnabas.metrics.metric import Kind, Metric

TOTAL_TIME = Metric(
    "kafka_network_requestmetrics_totaltimems",
    Kind.QUANTILES,
    "Milliseconds from the arrival of a request to its response.",
    ("request",),
    bean="kafka.network:type=RequestMetrics,name=TotalTimeMs",
    scale=0.001,
)

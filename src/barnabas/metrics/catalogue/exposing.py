"""Scrapes: how many, how long they took, and what they left out."""

from barnabas.metrics.metric import Kind, Metric

SCRAPES = Metric(
    "barnabas_scrapes_total",
    Kind.COUNTER,
    "Scrapes by path; those that were answered with the bytes of another one included.",
    ("path",),
)
SCRAPE_DURATION = Metric(
    "barnabas_scrape_duration_seconds",
    Kind.BUCKETS,
    "Seconds from the start of a scrape until its last byte was ready.",
    ("path",),
    scale=1e-6,
)
SCRAPE_FAILURES = Metric(
    "barnabas_scrape_failures_total",
    Kind.COUNTER,
    "Metrics that could not be read and were left out of a scrape; the log has the reasons.",
)
OMITTED_FAMILIES = Metric(
    "barnabas_scrape_omitted_metrics",
    Kind.GAUGE,
    "Metrics that this scrape leaves out because they have more series per partition than "
    "barnabas.metrics.partitions.max; ?collect[]=partitions has them.",
)
BROKER_ANSWERED = Metric(
    "barnabas_cluster_scrape_broker_answered",
    Kind.GAUGE,
    "Whether a broker has answered all that /metrics/cluster asked it (1), or not (0).",
    ("broker",),
)

"""The push of this broker's metrics by OTLP."""

from barnabas.metrics.metric import Kind, Metric

EXPORTS = Metric(
    "barnabas_otel_exports_total",
    Kind.COUNTER,
    "Pushes of this broker's metrics by OTLP, by result: ok or failed.",
    ("result",),
)
EXPORTED_POINTS = Metric(
    "barnabas_otel_exported_points_total",
    Kind.COUNTER,
    "Series that were pushed by OTLP.",
)

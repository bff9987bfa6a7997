"""What the broker rejects and throttles, by reason."""

from barnabas.metrics.metric import Kind, Metric

REJECTIONS = Metric(
    "barnabas_rejections_total",
    Kind.COUNTER,
    "What was rejected, by reason. Of connections: connection-limit, connection-rate, frame-size, "
    "tls, authentication, unsupported-version, unreadable. Of record batches: too-large, "
    "not-enough-replicas, no-key-compacted, bad-timestamp, corrupt, sequence, fenced, transaction, "
    "authorization, storage, invalid, policy.",
    ("reason",),
)
THROTTLES = Metric(
    "barnabas_throttles_total",
    Kind.COUNTER,
    "Responses after which a client was throttled, by the quota that it had exceeded.",
    ("quota",),
)

"""The coordination service: the session with it, and how fast it responds."""

from barnabas.metrics.metric import Kind, Metric


def _of_session(name: str, help: str) -> Metric:
    return Metric(
        f"kafka_server_sessionexpirelistener_zookeeper{name.lower()}_total",
        Kind.COUNTER,
        help,
        bean=f"kafka.server:type=SessionExpireListener,name=ZooKeeper{name}PerSec",
    )


DISCONNECTS = _of_session("Disconnects", "How often the connection to ZooKeeper was lost.")
CONNECTS = _of_session("SyncConnects", "How often a connection to ZooKeeper was established.")
EXPIRES = _of_session("Expires", "Sessions with ZooKeeper that expired.")
AUTH_FAILURES = _of_session(
    "AuthFailures", "Attempts to open another session that ZooKeeper rejected."
)
ZOOKEEPER_LATENCY = Metric(
    "kafka_server_zookeeperclientmetrics_zookeeperrequestlatencyms",
    Kind.QUANTILES,
    "Milliseconds from a request to ZooKeeper to its response.",
    bean="kafka.server:type=ZooKeeperClientMetrics,name=ZooKeeperRequestLatencyMs",
    scale=0.001,
)
LATENCY = Metric(
    "barnabas_coordination_request_seconds",
    Kind.BUCKETS,
    "Seconds from a request to the coordination service, embedded or not, to its response.",
    scale=0.000001,
)
CONNECTED = Metric(
    "barnabas_coordination_connected",
    Kind.GAUGE,
    "Whether the broker has a live session with the coordination service.",
)

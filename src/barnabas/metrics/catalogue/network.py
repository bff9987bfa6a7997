"""Listeners and connections: how many come and go, who logs in, who waits."""

from barnabas.metrics.metric import Kind, Metric


def _of_listener(name: str, kind: Kind, help: str) -> Metric:
    return Metric(
        f"kafka_server_socket_server_metrics_{name}",
        kind,
        help,
        ("listener",),
        bean="kafka.server:type=socket-server-metrics",
    )


ACCEPT_RATE = _of_listener("connection_accept_rate", Kind.GAUGE, "New connections per second.")
ACCEPT_THROTTLE_TIME = _of_listener(
    "connection_accept_throttle_time",
    Kind.GAUGE,
    "Average milliseconds for which accepting waited.",
)
IP_ACCEPT_THROTTLE_TIME = _of_listener(
    "connection_ip_accept_throttle_time",
    Kind.GAUGE,
    "Average milliseconds until connections of an address above its rate were closed.",
)
SUCCESSFUL_AUTHENTICATIONS = _of_listener(
    "successful_authentication_total", Kind.COUNTER, "Clients that have logged in."
)
FAILED_AUTHENTICATIONS = _of_listener(
    "failed_authentication_total", Kind.COUNTER, "Clients that were rejected."
)
SUCCESSFUL_REAUTHENTICATIONS = _of_listener(
    "successful_reauthentication_total", Kind.COUNTER, "Sessions that were renewed."
)
FAILED_REAUTHENTICATIONS = _of_listener(
    "failed_reauthentication_total", Kind.COUNTER, "Sessions that were not renewed."
)
EXPIRED_CONNECTIONS = _of_listener(
    "expired_connections_killed_total",
    Kind.COUNTER,
    "Connections closed because their session had ended.",
)

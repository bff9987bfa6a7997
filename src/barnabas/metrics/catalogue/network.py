"""Listeners and connections: how many come and go, who logs in, who waits."""

from barnabas.metrics.metric import Kind, Metric

NETWORK_PROCESSOR = "0"
"""The number of the one network thread, which Kafka's dashboards ask for."""


def _of_listener(name: str, kind: Kind, help: str) -> Metric:
    return Metric(
        f"kafka_server_socket_server_metrics_{name}",
        kind,
        help,
        ("listener",),
        bean="kafka.server:type=socket-server-metrics",
    )


def _of_processor(name: str, kind: Kind, help: str, *labels: str) -> Metric:
    return Metric(
        f"kafka_server_socket_server_metrics_{name}",
        kind,
        help,
        (*labels, "listener", "networkProcessor"),
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
SUCCESSFUL_AUTHENTICATIONS = _of_processor(
    "successful_authentication_total", Kind.COUNTER, "Clients that have logged in."
)
FAILED_AUTHENTICATIONS = _of_processor(
    "failed_authentication_total", Kind.COUNTER, "Clients that were rejected."
)
SUCCESSFUL_REAUTHENTICATIONS = _of_processor(
    "successful_reauthentication_total", Kind.COUNTER, "Sessions that were renewed."
)
FAILED_REAUTHENTICATIONS = _of_processor(
    "failed_reauthentication_total", Kind.COUNTER, "Sessions that were not renewed."
)
EXPIRED_CONNECTIONS = _of_processor(
    "expired_connections_killed_total",
    Kind.COUNTER,
    "Connections closed because their session had ended.",
)
CONNECTIONS = _of_processor("connection_count", Kind.GAUGE, "Open connections.")
CONNECTIONS_OPENED = _of_processor(
    "connection_creation_total", Kind.COUNTER, "Connections that were admitted."
)
CONNECTIONS_CLOSED = _of_processor(
    "connection_close_total", Kind.COUNTER, "Connections that were closed, by either side."
)
OPENING_RATE = _of_processor(
    "connection_creation_rate", Kind.GAUGE, "Connections that are admitted per second."
)
CLOSING_RATE = _of_processor(
    "connection_close_rate", Kind.GAUGE, "Connections that are closed per second."
)
INCOMING_BYTES = _of_processor(
    "incoming_byte_total", Kind.COUNTER, "Bytes received, without those of TLS."
)
OUTGOING_BYTES = _of_processor(
    "outgoing_byte_total", Kind.COUNTER, "Bytes sent, without those of TLS."
)
SOFTWARE = _of_processor(
    "connections_software",
    Kind.GAUGE,
    "Open connections by the client's software, as it says itself.",
    "clientSoftwareName",
    "clientSoftwareVersion",
)
REQUEST_QUEUE_SIZE = Metric(
    "kafka_network_requestchannel_requestqueuesize",
    Kind.GAUGE,
    "Requests that wait because queued.max.requests others run, or behind the control plane.",
    bean="kafka.network:type=RequestChannel,name=RequestQueueSize",
)
RESPONSE_QUEUE_SIZE = Metric(
    "kafka_network_requestchannel_responsequeuesize",
    Kind.GAUGE,
    "Connections whose client has not read the response yet.",
    bean="kafka.network:type=RequestChannel,name=ResponseQueueSize",
)
ACCEPTOR_BLOCKED = Metric(
    "kafka_network_acceptor_acceptorblocked_percent",
    Kind.GAUGE,
    "Always 0: connections are accepted and served by one thread.",
    ("listener",),
    bean="kafka.network:type=Acceptor,name=AcceptorBlockedPercent",
)

"""The event loop: how busy it is, and how late what it should do.

The broker has one loop in one thread, and no other number says better how loaded it is. Kafka's
two idle percentages are both the loop's.
"""

from barnabas.metrics.metric import Kind, Metric

LOOP_LAG = Metric(
    "barnabas_loop_lag_seconds",
    Kind.BUCKETS,
    "How late a timer of 100 ms was: for so long a request waits unread in its socket.",
    scale=1e-6,
)
LOOP_BUSY = Metric(
    "barnabas_loop_busy_ratio",
    Kind.GAUGE,
    "Part of the last ten seconds in which the event loop computed, or waited for a disk.",
)
PROCESSOR_IDLE = Metric(
    "kafka_network_socketserver_networkprocessoravgidle_percent",
    Kind.GAUGE,
    "Part of the last minute in which the event loop was idle, from 0 to 1.",
    bean="kafka.network:type=SocketServer,name=NetworkProcessorAvgIdlePercent",
)
HANDLER_IDLE = Metric(
    "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent",
    Kind.GAUGE,
    "Part of the last minute in which the event loop was idle, from 0 to 1.",
    bean="kafka.server:type=KafkaRequestHandlerPool,name=RequestHandlerAvgIdlePercent",
)
ONE_PROCESSOR_IDLE = Metric(
    "kafka_network_processor_idle_percent",
    Kind.GAUGE,
    "Part of the last minute in which the event loop was idle, from 0 to 1.",
    ("networkProcessor",),
    bean="kafka.network:type=Processor,name=IdlePercent",
)

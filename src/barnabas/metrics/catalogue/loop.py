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
LOOP_STALLS = Metric(
    "barnabas_loop_stalls_total",
    Kind.COUNTER,
    "How often the event loop stood still for 100 ms or more, by what ran: a request, a task, a "
    "garbage-collection, many short steps (busy), or nothing of this broker (waiting).",
    ("cause",),
)
GC_PAUSE = Metric(
    "barnabas_gc_pause_seconds",
    Kind.BUCKETS,
    "Duration of Python's garbage collections, each of which holds up all threads.",
    scale=1e-6,
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

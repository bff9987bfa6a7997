"""The process of the broker: its state and version, memory, descriptors, garbage, disk traffic."""

from barnabas.metrics.metric import Kind, Metric

BROKER_STATE = Metric(
    "kafka_server_kafkaserver_brokerstate",
    Kind.GAUGE,
    "What the broker does: 0 not running, 1 starting, 2 loading its logs, 3 running, 6 in a "
    "controlled shutdown, 7 shutting down.",
    bean="kafka.server:type=KafkaServer,name=BrokerState",
)
BUILD_INFO = Metric(
    "barnabas_build_info",
    Kind.GAUGE,
    "Always 1; the labels say which version runs, with which kernels, on which Python.",
    ("version", "kernels", "python"),
)
CPU_SECONDS = Metric(
    "process_cpu_seconds_total", Kind.COUNTER, "Seconds of CPU time, user and system."
)
RESIDENT_BYTES = Metric("process_resident_memory_bytes", Kind.GAUGE, "Resident memory in bytes.")
VIRTUAL_BYTES = Metric("process_virtual_memory_bytes", Kind.GAUGE, "Virtual memory in bytes.")
START_TIME = Metric(
    "process_start_time_seconds", Kind.GAUGE, "When the process began, in seconds since 1970."
)
OPEN_FDS = Metric("process_open_fds", Kind.GAUGE, "Open file descriptors.")
MAX_FDS = Metric("process_max_fds", Kind.GAUGE, "Limit of open file descriptors.")
THREADS = Metric("process_threads", Kind.GAUGE, "Threads of the process.")
GC_COLLECTIONS = Metric(
    "python_gc_collections_total",
    Kind.COUNTER,
    "How often a generation was collected.",
    ("generation",),
)
GC_COLLECTED = Metric(
    "python_gc_objects_collected_total",
    Kind.COUNTER,
    "Objects that the garbage collector has freed.",
    ("generation",),
)
GC_UNCOLLECTABLE = Metric(
    "python_gc_objects_uncollectable_total",
    Kind.COUNTER,
    "Objects that the garbage collector found and could not free.",
    ("generation",),
)
DISK_READ_BYTES = Metric(
    "kafka_server_kafkaserver_linux_disk_read_bytes",
    Kind.GAUGE,
    "Bytes that the process had read from disks, in total.",
    bean="kafka.server:type=KafkaServer,name=linux-disk-read-bytes",
)
DISK_WRITE_BYTES = Metric(
    "kafka_server_kafkaserver_linux_disk_write_bytes",
    Kind.GAUGE,
    "Bytes that the process had written to disks, in total.",
    bean="kafka.server:type=KafkaServer,name=linux-disk-write-bytes",
)

"""The broker's loggers: their names, what each one logs, and Kafka's names for them.

Levels are set by these names (BROKER_LOGGER resources), and files are chosen by them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

SERVER_LOG = "server.log"
CONTROLLER_LOG = "controller.log"
STATE_CHANGE_LOG = "state-change.log"
AUTHORIZER_LOG = "kafka-authorizer.log"
REQUEST_LOG = "kafka-request.log"
CLEANER_LOG = "log-cleaner.log"

ROOT = "root"
"""Kafka's name of the logger from which all others have their level."""

ALL = "barnabas"
"""The parent of all of ours."""

BROKER = "barnabas.broker"
REQUEST = "barnabas.request"
AUTHORIZER = "barnabas.authorizer"
AUDIT = "barnabas.audit"


@dataclass(frozen=True, slots=True)
class BrokerLogger:
    """A logger of the broker."""

    name: str
    meaning: str
    file: str = SERVER_LOG
    """The file of `barnabas.log.dir` that has its lines."""
    kafka_names: tuple[str, ...] = ()
    """Loggers of Apache Kafka that log the same; their levels are this one's."""


LOGGERS = (
    BrokerLogger(
        ALL,
        "Everything; the loggers below have this level unless they were given one.",
        kafka_names=("kafka",),
    ),
    BrokerLogger(
        BROKER,
        "Start and stop, a broker that gives up or goes silent, what concerns several parts.",
        kafka_names=("kafka.server", "kafka.server.KafkaServer"),
    ),
    BrokerLogger(
        "barnabas.network",
        "Listeners, connections and why they were closed, TLS.",
        kafka_names=("kafka.network", "kafka.network.SocketServer", "kafka.network.Processor"),
    ),
    BrokerLogger(
        "barnabas.authentication",
        "Logins, SCRAM users, bearer and delegation tokens.",
        kafka_names=("org.apache.kafka.common.security",),
    ),
    BrokerLogger(
        "barnabas.router",
        "Requests that failed unexpectedly, with their traceback.",
        kafka_names=("kafka.server.KafkaApis",),
    ),
    BrokerLogger(
        REQUEST,
        "At DEBUG: a line per request, with its client, sizes and times.",
        REQUEST_LOG,
        ("kafka.request.logger", "kafka.network.RequestChannel$"),
    ),
    BrokerLogger(
        "barnabas.state_change",
        "Every election, role, ISR change, rejection and fenced request, with epochs.",
        STATE_CHANGE_LOG,
        ("state.change.logger",),
    ),
    BrokerLogger(
        "barnabas.controller",
        "The controller: its terms, brokers that join and leave, topics, reassignments.",
        CONTROLLER_LOG,
        ("kafka.controller", "kafka.controller.KafkaController"),
    ),
    BrokerLogger(
        "barnabas.replication",
        "Followers and leaders: fetchers, truncation, in-sync replicas.",
        kafka_names=(
            "kafka.cluster.Partition",
            "kafka.server.ReplicaFetcherThread",
            "kafka.server.ReplicaManager",
        ),
    ),
    BrokerLogger(
        "barnabas.groups",
        "The group coordinator: rebalances, members, offsets.",
        kafka_names=("kafka.coordinator.group", "kafka.coordinator.group.GroupCoordinator"),
    ),
    BrokerLogger(
        "barnabas.transactions",
        "The transaction coordinator, and the markers that it sends.",
        kafka_names=("kafka.coordinator.transaction",),
    ),
    BrokerLogger(
        "barnabas.logs",
        "Partition logs on disk: recovery, moves between directories, failed disks.",
        kafka_names=("kafka.log", "kafka.log.LogManager", "kafka.log.UnifiedLog"),
    ),
    BrokerLogger(
        "barnabas.cleaner",
        "Compaction.",
        CLEANER_LOG,
        ("kafka.log.LogCleaner", "org.apache.kafka.storage.internals.log.LogCleaner"),
    ),
    BrokerLogger("barnabas.retention", "Segments that were deleted by time or size."),
    BrokerLogger(
        "barnabas.quotas",
        "Client quotas.",
        kafka_names=("kafka.server.ClientQuotaManager",),
    ),
    BrokerLogger(
        AUTHORIZER,
        "ACLs, and denied requests in Kafka's words; at DEBUG allowed ones, too.",
        AUTHORIZER_LOG,
        ("kafka.authorizer.logger",),
    ),
    BrokerLogger(
        AUDIT,
        "One JSON object per denied request, failed login and change of security or configs.",
        AUTHORIZER_LOG,
    ),
    BrokerLogger(
        "barnabas.coordination",
        "The session with ZooKeeper, or the embedded tree.",
        kafka_names=("kafka.zookeeper", "kafka.zookeeper.ZooKeeperClient", "org.apache.zookeeper"),
    ),
    BrokerLogger(
        "barnabas.config",
        "Options and dynamic configs without effect.",
        kafka_names=("kafka.server.KafkaConfig", "kafka.server.DynamicBrokerConfig"),
    ),
    BrokerLogger("barnabas.metrics", "The metrics endpoint, and what it reads from other brokers."),
    BrokerLogger("barnabas.telemetry", "Metrics that clients push (KIP-714)."),
    BrokerLogger("barnabas.opentelemetry", "The export of metrics and traces by OpenTelemetry."),
    BrokerLogger("barnabas.workers", "The supervisor of several brokers: starts, ends, restarts."),
    BrokerLogger("barnabas.console", "The web console: its listener, log-ins and changes."),
)
"""In the order in which the reference page lists them."""


def _own_names() -> dict[str, str]:
    names = {ROOT: ""}
    for each in LOGGERS:
        names[each.name] = each.name
        names |= dict.fromkeys(each.kafka_names, each.name)
    return names


OWN_NAMES: Mapping[str, str] = MappingProxyType(_own_names())
"""By each name that a client may use: ours, or Kafka's, the name for `logging.getLogger`."""

FILES = tuple(dict.fromkeys(each.file for each in LOGGERS))
"""Kafka's set of files."""

_FILE_OF: Mapping[str, str] = MappingProxyType({each.name: each.file for each in LOGGERS})


def files_of(name: str, event: str) -> tuple[str, ...]:
    """Return the files that have the lines of a logger; those about the ISR are in two.

    Kafka has them in server.log, where tools look for them.
    """
    while name not in _FILE_OF and "." in name:
        name = name.rpartition(".")[0]
    file = _FILE_OF.get(name, SERVER_LOG)
    if event.startswith("isr.") and file != SERVER_LOG:
        return file, SERVER_LOG
    return (file,)

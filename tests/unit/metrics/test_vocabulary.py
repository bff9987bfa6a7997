"""Names in three vocabularies, which follow from the beans; the examples are from dashboards."""

from __future__ import annotations

import pytest

from barnabas.metrics.catalogue import metrics
from barnabas.metrics.metric import Kind, Metric
from barnabas.metrics.vocabulary import Names, exposed_label, exposed_name, name_by_rule

ALL = [each for subject in metrics().values() for each in subject]


def metric(name: str, bean: str, kind: Kind = Kind.COUNTER) -> Metric:
    return Metric(name, kind, "Help.", bean=bean)


EXAMPLES = [
    # bean, kind, jmx, reporter, confluent
    (
        "kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec",
        Kind.COUNTER,
        "kafka_server_brokertopicmetrics_bytesin_total",
        "kafka_server_brokertopicmetrics_bytesinpersec_total",
        "kafka_server_brokertopicmetrics_bytesinpersec",
    ),
    (
        "kafka.controller:type=ControllerStats,name=UncleanLeaderElectionsPerSec",
        Kind.COUNTER,
        "kafka_controller_controllerstats_uncleanleaderelections_total",
        "kafka_controller_controllerstats_uncleanleaderelectionspersec_total",
        "kafka_controller_controllerstats_uncleanleaderelectionspersec",
    ),
    (
        "kafka.network:type=SocketServer,name=NetworkProcessorAvgIdlePercent",
        Kind.GAUGE,
        "kafka_network_socketserver_networkprocessoravgidle_percent",
        "kafka_network_socketserver_networkprocessoravgidlepercent",
        "kafka_network_socketserver_networkprocessoravgidlepercent",
    ),
    (
        "kafka.server:type=KafkaRequestHandlerPool,name=RequestHandlerAvgIdlePercent",
        Kind.GAUGE,
        "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent",
        "kafka_server_kafkarequesthandlerpool_requesthandleravgidlepercent",
        "kafka_server_kafkarequesthandlerpool_requesthandleravgidlepercent_oneminuterate",
    ),
    (
        "kafka.server:type=KafkaServer,name=linux-disk-read-bytes",
        Kind.GAUGE,
        *["kafka_server_kafkaserver_linux_disk_read_bytes"] * 3,
    ),
    (
        "kafka.network:type=RequestMetrics,name=TotalTimeMs",
        Kind.QUANTILES,
        *["kafka_network_requestmetrics_totaltimems"] * 3,
    ),
    (
        "kafka.log:type=LogCleanerManager,name=max-dirty-percent",
        Kind.GAUGE,
        "kafka_log_logcleanermanager_max_dirty_percent",
        "kafka_log_logcleanermanager_max_dirty_percent",
        "kafka_log_logcleanermanager_max_dirty_percent",
    ),
    (
        "kafka.server:type=FetchSessionCache,name=IncrementalFetchSessionEvictionsPerSec",
        Kind.COUNTER,
        "kafka_server_fetchsessioncache_incrementalfetchsessionevictions_total",
        "kafka_server_fetchsessioncache_incrementalfetchsessionevictionspersec_total",
        "kafka_server_fetchsessioncache_incrementalfetchsessionevictionspersec",
    ),
    (
        "kafka.coordinator.group:type=GroupMetadataManager,name=NumGroups",
        Kind.GAUGE,
        *["kafka_coordinator_group_groupmetadatamanager_numgroups"] * 3,
    ),
]
ATTRIBUTES = [
    # bean, declared name, and what it is for Confluent
    (
        "kafka.server:type=socket-server-metrics",
        "kafka_server_socket_server_metrics_connection_count",
        "kafka_server_socketservermetrics_connection_count",
    ),
    (
        "kafka.server:type=socket-server-metrics",
        "kafka_server_socket_server_metrics_connections_software",
        "kafka_server_socketservermetrics_connections",
    ),
    (
        "kafka.server:type=transaction-coordinator-metrics",
        "kafka_server_transaction_coordinator_metrics_partition_load_time_max",
        "kafka_server_transaction_coordinator_metrics_partition_load_time_max",
    ),
    (
        "kafka.server:type=Request",
        "kafka_server_quota_request_time",
        "kafka_server_request_request_time",
    ),
]


@pytest.mark.parametrize(("bean", "kind", "jmx", "reporter", "confluent"), EXAMPLES)
def test_names_follow_from_beans(
    bean: str, kind: Kind, jmx: str, reporter: str, confluent: str
) -> None:
    declared = metric(jmx, bean, kind)
    assert name_by_rule(declared, Names.JMX) == jmx
    assert exposed_name(declared, Names.JMX) == jmx
    assert exposed_name(declared, Names.REPORTER) == reporter
    assert exposed_name(declared, Names.CONFLUENT) == confluent


@pytest.mark.parametrize(("bean", "declared", "confluent"), ATTRIBUTES)
def test_attributes_keep_their_names(bean: str, declared: str, confluent: str) -> None:
    row = metric(declared, bean, Kind.GAUGE)
    assert exposed_name(row, Names.JMX) == declared
    assert exposed_name(row, Names.CONFLUENT) == confluent


@pytest.mark.parametrize("resource", ["Produce", "Fetch"])
def test_a_quota_is_named_by_its_resource(resource: str) -> None:
    row = metric("kafka_server_quota_byte_rate", "kafka.server:type={resource}", Kind.GAUGE)
    expected = f"kafka_server_{resource.lower()}_byte_rate"
    assert exposed_name(row, Names.CONFLUENT, resource) == expected
    assert exposed_name(row, Names.JMX, resource) == row.name


def test_our_own_metrics_have_one_name() -> None:
    own = metric("barnabas_scrapes_total", "")
    assert {exposed_name(own, names) for names in Names} == {own.name}
    assert {exposed_label(own, "clientId", names) for names in Names} == {"clientId"}


@pytest.mark.parametrize("each", [row for row in ALL if ",name=" in row.bean], ids=lambda r: r.name)
def test_the_catalogue_has_the_names_of_its_beans(each: Metric) -> None:
    """Up to what the JMX exporter adds for an attribute of a bean: `_count`, `_rate`."""
    rule, plain = name_by_rule(each, Names.JMX), name_by_rule(each, Names.CONFLUENT)
    attributes = {
        f"{name}_{attribute}" for name in (rule, plain) for attribute in ("count", "rate")
    }
    assert each.name in {rule} | attributes


@pytest.mark.parametrize("names", Names)
def test_no_two_metrics_get_the_same_name(names: Names) -> None:
    exposed = [exposed_name(each, names, "produce") for each in ALL]
    assert sorted(exposed) == sorted(set(exposed))


@pytest.mark.parametrize(
    ("label", "confluent", "reporter"),
    [
        ("clientId", "clientid", "clientId"),
        ("delayedOperation", "delayedoperation", "delayedOperation"),
        ("clientSoftwareName", "client_software_name", "clientSoftwareName"),
        ("topic", "topic", "topic"),
    ],
)
def test_labels_in_each_vocabulary(label: str, confluent: str, reporter: str) -> None:
    row = metric("kafka_server_x", "kafka.server:type=X,name=Y", Kind.GAUGE)
    assert exposed_label(row, label, Names.CONFLUENT) == confluent
    assert exposed_label(row, label, Names.REPORTER) == reporter
    assert exposed_label(row, label, Names.JMX) == label

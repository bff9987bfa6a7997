"""Names of metrics in the vocabularies that dashboards are written in.

    name                                                    vocabulary
    kafka_server_brokertopicmetrics_bytesin_total           jmx: Strimzi's JMX exporter
    kafka_server_brokertopicmetrics_bytesinpersec_total     reporter: Strimzi's Metrics Reporter
    kafka_server_brokertopicmetrics_bytesinpersec           confluent: Confluent's monitoring stacks

A metric is declared under its name in `jmx`. The other names follow from its bean by rule, and a
metric without a bean has the same name everywhere.
"""

from __future__ import annotations

import re
from enum import Enum

from barnabas.metrics.metric import Kind, Metric

_QUOTA = "kafka_server_quota_"
_JOINED = {"socket-server-metrics": "socketservermetrics"}
"""Types whose words Confluent's rules join; those of others stay apart."""
_CONFLUENT = {
    "kafka_server_kafkarequesthandlerpool_requesthandleravgidlepercent": (
        "kafka_server_kafkarequesthandlerpool_requesthandleravgidlepercent_oneminuterate"
    ),
    "kafka_server_socketservermetrics_connections_software": (
        "kafka_server_socketservermetrics_connections"
    ),
}
_CONFLUENT_LABELS = {
    "clientSoftwareName": "client_software_name",
    "clientSoftwareVersion": "client_software_version",
}


class Names(Enum):
    """A vocabulary; the value is what `?names=` asks for."""

    JMX = "jmx"
    REPORTER = "reporter"
    CONFLUENT = "confluent"


def exposed_name(metric: Metric, names: Names, resource: str = "") -> str:
    """Return the name of a metric in a vocabulary.

    `resource` is the value of the label that is a part of the bean's type (`split_label`).
    """
    if names is Names.JMX or not metric.bean:
        return metric.name
    return name_by_rule(metric, names, resource)


def name_by_rule(metric: Metric, names: Names, resource: str = "") -> str:
    """Return the name that the rules of a vocabulary make of a metric's bean."""
    domain, properties = _parsed(metric.bean)
    kind, name = properties["type"], properties.get("name")
    if name is None:
        return _of_attribute(metric, names, domain, re.sub(r"\{\w+\}", resource, kind))
    full = _plain(f"{domain}_{kind}_{name}")
    if names is Names.CONFLUENT:
        return _CONFLUENT.get(full, full)
    if metric.kind is Kind.COUNTER:
        return f"{full if names is Names.REPORTER else full.removesuffix('persec')}_total"
    if names is Names.JMX and metric.kind is Kind.GAUGE:
        return re.sub(r"_?percent$", "_percent", full)
    return full


def split_label(metric: Metric, names: Names) -> str | None:
    """Return the label whose value is a part of the names in this vocabulary; None if none is."""
    found = None if names is Names.JMX else re.search(r"\{(\w+)\}", metric.bean)
    return found[1] if found else None


def exposed_label(metric: Metric, label: str, names: Names) -> str:
    """Return the name of a label in a vocabulary."""
    if label == label.lower() or names is Names.JMX or not metric.bean:
        return label
    if metric.name.startswith(_QUOTA):
        return re.sub("(?<=[a-z])(?=[A-Z])", "_", label).lower()
    if names is Names.REPORTER:
        return label
    return _CONFLUENT_LABELS.get(label, label.lower())


def _of_attribute(metric: Metric, names: Names, domain: str, kind: str) -> str:
    """Return the name of a metric that is an attribute of its bean, without a bean of its own."""
    declared = _plain(f"{domain}_{_parsed(metric.bean)[1]['type']}")
    attribute = metric.name.removeprefix(_QUOTA).removeprefix(f"{declared}_")
    if names is Names.CONFLUENT:
        kind = _JOINED.get(kind, kind)
    full = f"{_plain(f'{domain}_{kind}')}_{attribute}"
    return _CONFLUENT.get(full, full) if names is Names.CONFLUENT else full


def _parsed(bean: str) -> tuple[str, dict[str, str]]:
    domain, _, rest = bean.partition(":")
    properties = (part.partition("=") for part in rest.split(","))
    return domain, {key: value for key, _, value in properties}


def _plain(name: str) -> str:
    return re.sub("[^a-z0-9:_]+", "_", name.lower())

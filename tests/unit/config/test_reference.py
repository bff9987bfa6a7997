"""The declared options against the shared table of Kafka's: none missing, none different.

The table lies beside the checkout, not in it; without it these tests are skipped.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from barnabas.config.broker import BrokerOptions
from barnabas.config.option import Option
from barnabas.config.topic import TopicOptions

TABLE = Path(__file__).parents[4] / "shared" / "reference" / "configs.md"
DYNAMIC_ONLY = (
    "follower.replication.throttled.rate",
    "leader.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
)
KAFKA_4_DEFAULTS = {"group.coordinator.rebalance.protocols": "classic,consumer"}
JAVA_11_DEFAULTS = {"ssl.enabled.protocols": "TLSv1.2,TLSv1.3", "ssl.protocol": "TLSv1.3"}
"""What Kafka's defaults are on Java 11 and later; the table has those of Java 8."""
KAFKA_4_NAMES = {"group.consumer.migration.policy"}
"""Where Kafka 4 is followed and not 3.9, which the table is of (docs/design/decisions.md)."""
JVM_NAMES = {
    "java.security.auth.login.config",
    "zookeeper.sasl.client",
    "zookeeper.sasl.clientconfig",
}
"""What is a property of the JVM in Kafka, and an option here."""
OTHER_DEFAULTS = KAFKA_4_DEFAULTS | JAVA_11_DEFAULTS
SCOPES = {"no": "no", "per broker": "broker", "cluster": "cluster"}


class Row(NamedTuple):
    name: str
    kind: str
    default: str
    fourth: str


def _section(number: int) -> str:
    if not TABLE.exists():
        pytest.skip("the shared table of Kafka's options is not beside this checkout")
    text = TABLE.read_text()
    return text[text.index(f"\n## {number}.") : text.index(f"\n## {number + 1}.")]


def _rows(number: int) -> list[Row]:
    rows = []
    for line in _section(number).splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| ") and cells[0] != "name":
            rows.append(Row(*cells[:4]))
    return rows


def _other_names() -> dict[str, str]:
    """Names and defaults of the paragraph "Other broker names"."""
    _, _, paragraph = _section(2).partition("Other broker names (default): ")
    pairs = re.split(r", (?=[a-z])", paragraph.strip().rstrip("."))
    return dict(pair.split("=", 1) for pair in pairs)


def _shown_default(option: Option) -> str:
    """The default of an option the way the table writes it."""
    if option.default is None:
        return "null"
    return option.text(option.default) or '""'


def _same_default(option: Option, written: str) -> bool:
    # The built-in classes and lists are ours to name.
    return written.startswith("(built-in") or _shown_default(option) == written


def test_every_broker_option_of_the_table_is_declared_with_its_type_default_and_scope() -> None:
    rows = _rows(2)
    assert len(rows) > 150
    for row in rows:
        option = BrokerOptions.options.get(row.name)
        assert option is not None, f"{row.name} is not declared"
        assert option.kind.name.lower() == row.kind, row.name
        assert _same_default(option, OTHER_DEFAULTS.get(row.name, row.default)), row.name
        assert option.dynamic == SCOPES[row.fourth], row.name


def test_every_other_broker_name_is_declared_with_its_default() -> None:
    others = _other_names()
    assert len(others) > 90
    for name, default in others.items():
        assert name in BrokerOptions.options, f"{name} is not declared"
        assert _same_default(BrokerOptions.options[name], OTHER_DEFAULTS.get(name, default)), name


def test_nothing_else_is_declared_but_our_own_options() -> None:
    known = {row.name for row in _rows(2)} | set(_other_names()) | set(DYNAMIC_ONLY)
    assert all(name in _section(2) for name in DYNAMIC_ONLY)
    for name in set(BrokerOptions.options) - known - KAFKA_4_NAMES - JVM_NAMES:
        assert name.startswith("barnabas."), name


def test_every_topic_option_of_the_table_is_declared_with_its_type_default_and_synonym() -> None:
    rows = _rows(3)
    others = set(TopicOptions.options) - {row.name for row in rows}
    assert others == {name for name in TopicOptions.options if name.startswith("barnabas.")}
    for row in rows:
        option = TopicOptions.options[row.name]
        assert option.kind.name.lower() == row.kind, row.name
        assert _same_default(option, row.default), row.name
        assert (option.synonym or "null") == row.fourth, row.name
        assert option.dynamic == "cluster", row.name


def test_the_defaults_of_topics_follow_from_those_of_brokers() -> None:
    resolved = TopicOptions.resolve(BrokerOptions.parse({}), {})
    for row in _rows(3):
        option = TopicOptions.options[row.name]
        assert resolved.value(row.name) == option.default, row.name

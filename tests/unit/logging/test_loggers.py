"""The table of loggers: names, Kafka's names and files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from barnabas.logging.loggers import FILES, LOGGERS, OWN_NAMES, files_of

SOURCES = Path(__file__).resolve().parents[3] / "src" / "barnabas"
CLIENTS = (
    "barnabas.client",
    "barnabas.compat.confluent_kafka",
    "barnabas.producer",
    "barnabas.streams",
)
"""Loggers of programs that use our clients."""


def test_every_name_of_the_sources_is_listed() -> None:
    used = {
        name
        for path in SOURCES.rglob("*.py")
        for name in re.findall(r'getLogger\(\s*"([a-z_.]+)"', path.read_text("utf-8"))
    }
    ours = {name for name in used if name.startswith("barnabas") and name not in CLIENTS}
    assert "barnabas.controller" in ours
    assert ours <= {each.name for each in LOGGERS}


def test_each_name_is_listed_once() -> None:
    names = [name for each in LOGGERS for name in (each.name, *each.kafka_names)]
    assert len(names) == len(set(names))
    assert OWN_NAMES["state.change.logger"] == "barnabas.state_change"
    assert OWN_NAMES["barnabas.state_change"] == "barnabas.state_change"
    assert OWN_NAMES["root"] == ""


@pytest.mark.parametrize(
    ("name", "event", "files"),
    [
        ("barnabas.broker", "", ("server.log",)),
        ("barnabas.controller", "topic.deleted", ("controller.log",)),
        ("barnabas.controller.term", "", ("controller.log",)),
        ("barnabas.state_change", "leader.elected", ("state-change.log",)),
        ("barnabas.state_change", "isr.shrink", ("state-change.log", "server.log")),
        ("barnabas.broker", "isr.shrink", ("server.log",)),
        ("barnabas.audit", "", ("kafka-authorizer.log",)),
        ("barnabas.authorizer", "", ("kafka-authorizer.log",)),
        ("barnabas.request", "", ("kafka-request.log",)),
        ("barnabas.cleaner", "", ("log-cleaner.log",)),
        ("asyncio", "", ("server.log",)),
        ("", "", ("server.log",)),
    ],
)
def test_lines_are_in_the_files_where_kafka_has_them(
    name: str, event: str, files: tuple[str, ...]
) -> None:
    assert files_of(name, event) == files
    assert set(files) <= set(FILES)

"""Levels of loggers, by our names and by Kafka's."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from barnabas.broker.cluster.broker_loggers import BrokerLoggers
from barnabas.config.alteration import Change, Operation
from barnabas.config.sources import Source
from barnabas.logging.loggers import OWN_NAMES
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError


@pytest.fixture(autouse=True)
def levels() -> Iterator[None]:
    """Restore the levels, which belong to the process."""
    before = {own: logging.getLogger(own).level for own in OWN_NAMES.values()}
    logging.getLogger().setLevel(logging.WARNING)
    yield
    for own, level in before.items():
        logging.getLogger(own).setLevel(level)


def shown(loggers: BrokerLoggers, name: str) -> str | None:
    (described,) = loggers.describe([name])
    return described.value


def set_to(loggers: BrokerLoggers, name: str, level: str | None, *, dry_run: bool = False) -> None:
    operation = Operation.DELETE if level is None else Operation.SET
    loggers.alter([Change(name, operation, level)], dry_run=dry_run)


def test_all_loggers_are_described() -> None:
    described = {each.name: each for each in BrokerLoggers().describe(None)}
    assert {"root", "barnabas", "barnabas.request", "kafka.controller"} <= described.keys()
    assert described.keys() == OWN_NAMES.keys()
    for each in described.values():
        assert (each.value, each.source) == ("WARN", Source.DYNAMIC_BROKER_LOGGER)
        assert (each.read_only, each.sensitive, each.synonyms) == (False, False, ())
    assert BrokerLoggers().describe(["no.such"]) == []
    assert len(BrokerLoggers().describe([])) == len(described)


@pytest.mark.parametrize(
    ("level", "number"),
    [("FATAL", 50), ("ERROR", 40), ("WARN", 30), ("INFO", 20), ("DEBUG", 10), ("TRACE", 5)],
)
def test_levels_are_kafkas(level: str, number: int) -> None:
    loggers = BrokerLoggers()
    set_to(loggers, "barnabas.controller", level)
    assert logging.getLogger("barnabas.controller").level == number
    assert shown(loggers, "barnabas.controller") == level
    assert shown(loggers, "kafka.controller") == level


def test_a_reset_logger_has_the_level_of_its_parent() -> None:
    loggers = BrokerLoggers()
    set_to(loggers, "state.change.logger", "TRACE")
    set_to(loggers, "root", "ERROR")
    assert shown(loggers, "barnabas.state_change") == "TRACE"
    set_to(loggers, "barnabas.state_change", None)
    assert shown(loggers, "barnabas.state_change") == "ERROR"
    set_to(loggers, "kafka", "INFO")
    assert shown(loggers, "barnabas.state_change") == "INFO"
    assert shown(loggers, "root") == "ERROR"


def test_levels_between_kafkas_are_shown_as_the_stricter_side_has_them() -> None:
    logging.getLogger("barnabas.controller").setLevel(25)
    assert shown(BrokerLoggers(), "barnabas.controller") == "INFO"
    logging.getLogger("barnabas.controller").setLevel(1)
    assert shown(BrokerLoggers(), "barnabas.controller") == "TRACE"


INVALID, REQUEST = ErrorCode.INVALID_CONFIG, ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        (Change("no.such", Operation.SET, "INFO"), INVALID, "Logger no.such does not exist!"),
        (Change("no.such", Operation.DELETE), INVALID, "Logger no.such does not exist!"),
        (
            Change("kafka.controller", Operation.SET, "LOUD"),
            INVALID,
            "Cannot set the log level of kafka.controller to LOUD as it is not a supported log "
            "level. Valid log levels are FATAL, ERROR, WARN, INFO, DEBUG, TRACE",
        ),
        (Change("kafka.controller", Operation.SET, "info"), INVALID, "not a supported log level"),
        (Change("kafka.controller", Operation.SET, ""), INVALID, "not a supported log level"),
        (Change("root", Operation.DELETE), REQUEST, "Removing the log level of the root logger"),
        (Change("root", Operation.APPEND, "INFO"), REQUEST, "APPEND operation is not allowed"),
        (Change("root", Operation.SUBTRACT, "INFO"), REQUEST, "SUBTRACT operation is not allowed"),
        (Change("root", 9, "INFO"), REQUEST, "Unknown operation type 9 operation is not allowed"),
    ],
)
def test_what_kafka_rejects_is_rejected(change: Change, code: ErrorCode, message: str) -> None:
    loggers = BrokerLoggers()
    changed: list[str] = []
    loggers.watch(lambda: changed.append("now"))
    good = Change("barnabas.request", Operation.SET, "DEBUG")
    with pytest.raises(RequestError) as refused:
        loggers.alter([good, change], dry_run=False)
    assert refused.value.code == code
    assert message in str(refused.value.message)
    assert shown(loggers, "barnabas.request") == "WARN"  # all or none
    assert changed == []


def test_watchers_are_notified_of_changes_only() -> None:
    loggers = BrokerLoggers()
    seen: list[str | None] = []
    loggers.watch(lambda: seen.append(shown(loggers, "kafka.request.logger")))
    set_to(loggers, "kafka.request.logger", "DEBUG", dry_run=True)
    assert seen == []
    assert shown(loggers, "barnabas.request") == "WARN"
    set_to(loggers, "kafka.request.logger", "DEBUG")
    assert seen == ["DEBUG"]

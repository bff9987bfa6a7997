"""How a line looks: for people, as in Kafka's files, as JSON, or as JSON in Elastic's schema.

    2026-11-17 14:02:11,418 INFO barnabas.controller: topic orders deleted
    [2026-11-17 14:02:11,418] INFO topic orders deleted (barnabas.controller)
    {"ts":"2026-11-17T14:02:11.418Z","level":"INFO","logger":"barnabas.controller",
     "event":"topic.deleted","message":"topic orders deleted","broker":1,"topic":"orders"}

A record brings its own keys along, and a shorter `summary` if its message repeats them:

    extra={"event": "topic.deleted", "fields": {"topic": "orders"}}

In each format an event is one line; only the traceback of a plain one follows in lines that are
indented. Whatever clients chose is cut, and escaped where it could look like another line.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from math import isfinite
from typing import Any

from barnabas.logging.text import cut, printable

PLAIN, JSON, ECS = "plain", "json", "ecs"
FORMATS = (PLAIN, JSON, ECS)

ECS_VERSION = "8.11"

FAILURE_MAX = 1000
"""Characters of an exception's message in a line."""
MESSAGE_MAX = 10_000
TRACEBACK_MAX = 50_000
ITEMS_MAX = 100
"""Elements of a list or mapping in a field."""
DEPTH_MAX = 4

BrokerId = Callable[[], int | None]
"""Returns the id of the broker whose lines these are; None while it is not known."""

_KAFKA_LEVELS = {"WARNING": "WARN", "CRITICAL": "FATAL"}


class PlainFormatter(logging.Formatter):
    """Lines for people, on standard error."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line; a traceback follows in lines that are indented."""
        at, level = self.formatTime(record), record.levelname
        return f"{at} {level} {record.name}: {message_of(record)}{_indented(self, record)}"


class KafkaFormatter(logging.Formatter):
    """Lines as in Kafka's own files: `[%d] %p %m (%c)`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line; a traceback follows in lines that are indented."""
        at, level = self.formatTime(record), record.levelname
        level = _KAFKA_LEVELS.get(level, level)
        return f"[{at}] {level} {message_of(record)} ({record.name}){_indented(self, record)}"


class JsonFormatter(logging.Formatter):
    """One flat JSON object per line, with keys in snake case."""

    def __init__(self, broker_id: BrokerId) -> None:
        super().__init__()
        self._broker_id = broker_id

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line: dict[str, Any] = {
            "ts": timestamp(record),
            "level": record.levelname,
            "logger": record.name,
        }
        event = event_of(record)
        if event:
            line["event"] = event
        line["message"] = getattr(record, "summary", None) or message_of(record)
        broker = self._broker_id()
        if broker is not None:
            line["broker"] = broker
        traceback = _traceback(self, record)
        if traceback:
            line["exception"] = traceback
        for name, value in fields_of(record).items():
            key = name if name not in line else f"{name}_"
            line[key] = _plain_value(value)
        return _dumped(line)


class EcsFormatter(logging.Formatter):
    """One JSON object per line in the Elastic Common Schema; what it has no key for is a label."""

    def __init__(self, broker_id: BrokerId) -> None:
        super().__init__()
        self._broker_id = broker_id

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line: dict[str, Any] = {
            "@timestamp": timestamp(record),
            "log.level": record.levelname,
            "message": getattr(record, "summary", None) or message_of(record),
            "ecs.version": ECS_VERSION,
            "log.logger": record.name,
        }
        event = event_of(record)
        if event:
            line["event.action"] = event
        labels: dict[str, Any] = {}
        broker = self._broker_id()
        if broker is not None:
            labels["broker"] = broker
        labels |= {
            name if name not in labels else f"{name}_": _label(_plain_value(value))
            for name, value in fields_of(record).items()
        }
        if labels:
            line["labels"] = labels
        traceback = _traceback(self, record)
        if traceback and record.exc_info and record.exc_info[0] is not None:
            line["error.type"] = record.exc_info[0].__name__
            line["error.message"] = _failure_text(record.exc_info[1])
        if traceback:
            line["error.stack_trace"] = traceback
        return _dumped(line)


def formatter_of(name: str, broker_id: BrokerId) -> logging.Formatter:
    """Return what writes lines for standard error in a format of `barnabas.log.format`."""
    if name == JSON:
        return JsonFormatter(broker_id)
    return EcsFormatter(broker_id) if name == ECS else PlainFormatter()


def file_formatter_of(name: str, broker_id: BrokerId) -> logging.Formatter:
    """Return what writes lines for files, which look as Kafka's unless they are for machines."""
    return KafkaFormatter() if name == PLAIN else formatter_of(name, broker_id)


def event_of(record: logging.LogRecord) -> str:
    """Return the name of what happened; empty if the record does not say."""
    return str(getattr(record, "event", ""))


def fields_of(record: logging.LogRecord) -> Mapping[str, object]:
    """Return the record's own fields."""
    fields: Mapping[str, object] = getattr(record, "fields", None) or {}
    return fields


def message_of(record: logging.LogRecord) -> str:
    """Return a record's message on one line; long arguments are cut.

    A message that is nothing but one argument was composed, and cut, by its caller.
    """
    text = str(record.msg)
    if text == "%s" and isinstance(record.args, tuple) and len(record.args) == 1:
        text = str(record.args[0])
    elif isinstance(record.args, Mapping):
        text %= {name: _argument(value) for name, value in record.args.items()}
    elif record.args:
        text %= tuple(_argument(value) for value in record.args)
    return printable(cut(text, MESSAGE_MAX))


def timestamp(record: logging.LogRecord) -> str:
    """Return a record's time as RFC 3339 has it: UTC, with milliseconds."""
    at = datetime.fromtimestamp(record.created, UTC)
    return at.isoformat(timespec="milliseconds")[:-6] + "Z"


def _argument(value: object) -> object:
    if isinstance(value, str):
        return cut(value)
    return _failure_text(value) if isinstance(value, BaseException) else value


def _failure_text(failure: BaseException | None) -> str:
    return cut(str(failure), FAILURE_MAX)


def _traceback(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    text = ""
    if record.exc_info:
        text = formatter.formatException(record.exc_info)
    if record.stack_info:
        text += ("\n" if text else "") + formatter.formatStack(record.stack_info)
    return cut(text, TRACEBACK_MAX)


def _indented(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    lines = _traceback(formatter, record).splitlines()
    return "".join(f"\n    {printable(line)}" for line in lines)


def _plain_value(value: object, depth: int = 0) -> Any:
    """Return a value as JSON has it, within bounds."""
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, str):
        return cut(value)
    if isinstance(value, float):
        return value if isfinite(value) else str(value)
    if depth < DEPTH_MAX:
        if isinstance(value, Mapping):
            items = list(value.items())[:ITEMS_MAX]
            return {cut(str(name)): _plain_value(each, depth + 1) for name, each in items}
        if isinstance(value, (list, tuple, set, frozenset)):
            return [_plain_value(each, depth + 1) for each in list(value)[:ITEMS_MAX]]
    return cut(str(value))


def _label(value: Any) -> Any:
    """Return a value as a label has it: a scalar, or a list of scalars."""
    if isinstance(value, dict) or (
        isinstance(value, list) and any(isinstance(each, (dict, list)) for each in value)
    ):
        return _dumped(value)
    return value


def _dumped(value: object) -> str:
    # ASCII only: no direction mark or line separator reaches a terminal that shows the line.
    return json.dumps(value, separators=(",", ":"))

"""Lines for people and for machines, and what clients chose in them."""

from __future__ import annotations

import json
import logging
import re
import sys
from typing import Any

import pytest

from barnabas.logging.formats import (
    FORMATS,
    EcsFormatter,
    JsonFormatter,
    KafkaFormatter,
    PlainFormatter,
    file_formatter_of,
    formatter_of,
)

FORGED = "billing\n2026-11-17 14:02:11,418 INFO barnabas.audit: nothing happened"


def record(
    message: str = "topic %s deleted",
    *arguments: object,
    level: int = logging.INFO,
    name: str = "barnabas.controller",
    failure: BaseException | None = None,
    **extra: object,
) -> logging.LogRecord:
    exc_info = (type(failure), failure, failure.__traceback__) if failure else None
    made = logging.LogRecord(name, level, __file__, 1, message, arguments, exc_info)
    made.created = 1794924131.418
    made.msecs = 418.0
    for key, value in extra.items():
        setattr(made, key, value)
    return made


def raised(text: str) -> ValueError:
    try:
        raise ValueError(text)
    except ValueError as failure:
        return failure


def as_json(made: logging.LogRecord, broker: int | None = 1) -> dict[str, Any]:
    line = JsonFormatter(lambda: broker).format(made)
    assert "\n" not in line
    return json.loads(line)


def as_ecs(made: logging.LogRecord) -> dict[str, Any]:
    line = EcsFormatter(lambda: 1).format(made)
    assert "\n" not in line
    return json.loads(line)


def test_a_line_for_people() -> None:
    line = PlainFormatter().format(record("topic %s deleted", "orders"))
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,418 INFO barnabas\.controller: topic orders deleted", line
    )


def test_a_line_in_kafkas_form() -> None:
    line = KafkaFormatter().format(record("topic %s deleted", "orders"))
    assert re.fullmatch(
        r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,418\] INFO topic orders deleted \(barnabas\..*\)",
        line,
    )
    assert "] WARN x (" in KafkaFormatter().format(record("x", level=logging.WARNING))
    assert "] FATAL x (" in KafkaFormatter().format(record("x", level=logging.CRITICAL))


def test_a_line_as_json_has_the_keys_of_its_event() -> None:
    made = record(
        "topic %s deleted", "orders", event="topic.deleted", fields={"topic": "orders", "isr": (1,)}
    )
    assert as_json(made) == {
        "ts": "2026-11-17T14:02:11.418Z",
        "level": "INFO",
        "logger": "barnabas.controller",
        "event": "topic.deleted",
        "message": "topic orders deleted",
        "broker": 1,
        "topic": "orders",
        "isr": [1],
    }


def test_a_line_as_json_without_event_and_broker() -> None:
    line = as_json(record("x"), broker=None)
    assert list(line) == ["ts", "level", "logger", "message"]


def test_fields_do_not_replace_the_keys_of_the_line() -> None:
    line = as_json(record("x", fields={"level": "none", "ts": 1, "api": "Fetch"}))
    assert (line["level"], line["level_"], line["ts_"], line["api"]) == ("INFO", "none", 1, "Fetch")


def test_a_summary_replaces_a_message_that_repeats_the_fields() -> None:
    assert as_json(record('{"api":"Fetch"}', summary="audit"))["message"] == "audit"
    assert as_ecs(record('{"api":"Fetch"}', summary="audit"))["message"] == "audit"
    assert PlainFormatter().format(record('{"api":"Fetch"}', summary="a")).endswith('"Fetch"}')


def test_fields_are_bounded() -> None:
    deep: Any = "end"
    for _ in range(10):
        deep = [deep]
    line = as_json(
        record(
            "x",
            fields={
                "client_id": "x" * 1000,
                "ids": range(5),
                "list": list(range(1000)),
                "deep": deep,
                "mapping": {"k" * 1000: {1, 2}},
                "none": None,
                "yes": True,
                "nan": float("nan"),
                "share": 0.5,
            },
        )
    )
    assert line["client_id"] == "x" * 200 + "…"
    assert line["ids"] == "range(0, 5)"
    assert len(line["list"]) == 100
    assert "end" in str(line["deep"])
    assert line["mapping"] == {"k" * 200 + "…": [1, 2]}
    assert (line["none"], line["yes"], line["nan"], line["share"]) == (None, True, "nan", 0.5)


def test_a_line_in_elastics_schema() -> None:
    made = record(
        "topic %s deleted",
        "orders",
        event="topic.deleted",
        fields={"topic": "orders", "broker": 7, "replicas": [{"id": 3}], "isr": [1, 2]},
    )
    assert as_ecs(made) == {
        "@timestamp": "2026-11-17T14:02:11.418Z",
        "log.level": "INFO",
        "message": "topic orders deleted",
        "ecs.version": "8.11",
        "log.logger": "barnabas.controller",
        "event.action": "topic.deleted",
        "labels": {
            "broker": 1,
            "topic": "orders",
            "broker_": 7,
            "replicas": '[{"id":3}]',
            "isr": [1, 2],
        },
    }


def test_a_traceback_is_one_string_for_machines() -> None:
    made = record("could not write", failure=raised("disk\nfull"), level=logging.ERROR)
    assert as_json(made)["exception"].startswith("Traceback (most recent call last):\n")
    line = as_ecs(made)
    assert line["error.type"] == "ValueError"
    assert line["error.message"] == "disk\nfull"
    assert line["error.stack_trace"].endswith("ValueError: disk\nfull")


def test_a_traceback_is_indented_for_people() -> None:
    made = record("could not write", failure=raised(FORGED), level=logging.ERROR)
    for formatter in (PlainFormatter(), KafkaFormatter()):
        first, *rest = formatter.format(made).split("\n")
        assert "could not write" in first
        assert rest[0] == "    Traceback (most recent call last):"
        assert all(line.startswith("    ") for line in rest)
        assert "nothing happened" in rest[-1]


def test_a_stack_is_a_traceback_too() -> None:
    made = record("here")
    made.stack_info = "Stack (most recent call last):\n  here"
    assert as_json(made)["exception"] == made.stack_info
    assert PlainFormatter().format(made).count("\n    ") == 2


@pytest.mark.parametrize("name", FORMATS)
def test_clients_forge_no_line(name: str) -> None:
    hostile = FORGED + "\r\x1b[1A\u2028" + "x" * 100_000
    made = record(
        "group %s failed: %s", hostile, ValueError(hostile), fields={"group": hostile}, event="e"
    )
    for formatter in (formatter_of(name, lambda: 1), file_formatter_of(name, lambda: 1)):
        line = formatter.format(made)
        assert len(line.splitlines()) == 1
        assert line.isprintable()
        assert len(line) < 3000
        assert "group billing" in line


def test_arguments_by_name_are_cut_too() -> None:
    made = record("group %(group)s", {"group": "x" * 300})
    assert PlainFormatter().format(made).endswith(": group " + "x" * 200 + "…")


def test_numbers_are_formatted_as_numbers() -> None:
    assert PlainFormatter().format(record("%d of %5.1f", 3, 2.5)).endswith(": 3 of   2.5")


def test_which_format_is_used_where() -> None:
    assert isinstance(formatter_of("plain", lambda: 1), PlainFormatter)
    assert isinstance(file_formatter_of("plain", lambda: 1), KafkaFormatter)
    for choose in (formatter_of, file_formatter_of):
        assert isinstance(choose("json", lambda: 1), JsonFormatter)
        assert isinstance(choose("ecs", lambda: 1), EcsFormatter)


def test_the_current_exception_is_not_needed() -> None:
    made = record("x")
    made.exc_info = (None, None, None)
    assert sys.exc_info() == (None, None, None)
    assert "error.type" not in as_ecs(made)


def test_a_message_that_its_caller_composed_is_whole() -> None:
    """Such as the lines about decisions, which are longer than a value may be."""
    text = "[Broker id=1] Leader orders-0 starts at leader epoch 7 " + "x" * 500
    assert PlainFormatter().format(record("%s", text)).endswith(text)
    hostile = PlainFormatter().format(record("%s", "a\nb" + "x" * 100_000))
    assert hostile.isprintable()
    assert len(hostile) < 11_000

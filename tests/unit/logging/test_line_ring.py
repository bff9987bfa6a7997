"""The last lines of the log: which are kept, and how they are found."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from barnabas.logging.line_ring import LINE_MAX, LineRing


@pytest.fixture
def log() -> Iterator[logging.Logger]:
    made = logging.getLogger("ringed")
    made.setLevel(logging.DEBUG)
    yield made
    for handler in list(made.handlers):
        made.removeHandler(handler)


def ringed(log: logging.Logger, **bounds: int) -> LineRing:
    ring = LineRing(**bounds)
    log.addHandler(ring)
    return ring


def texts(ring: LineRing, **filters: object) -> list[str]:
    return [line.text for line in ring.lines(**filters)]  # type: ignore[arg-type]


def test_the_newest_line_is_first(log: logging.Logger) -> None:
    ring = ringed(log)
    log.info("topic %s deleted", "orders")
    log.warning("disk full")
    warned, told = ring.lines()
    assert (told.text, told.level_name, told.logger, told.number) == (
        "topic orders deleted",
        "INFO",
        "ringed",
        1,
    )
    assert (warned.text, warned.level_name, warned.number) == ("disk full", "WARN", 2)
    assert warned.time_ms >= told.time_ms > 0
    assert texts(ring, limit=1) == ["disk full"]


def test_lines_are_found_by_level_logger_and_text(log: logging.Logger) -> None:
    ring = ringed(log)
    log.debug("one")
    log.getChild("a").info("Two of ORDERS")
    log.getChild("ab").error("three")
    assert texts(ring, level=logging.INFO) == ["three", "Two of ORDERS"]
    assert texts(ring, logger="ringed.a") == ["Two of ORDERS"], "not ringed.ab"
    assert texts(ring, logger="ringed") == ["three", "Two of ORDERS", "one"]
    assert texts(ring, text="orders") == ["Two of ORDERS"]
    assert texts(ring, text="RINGED.AB") == ["three"]
    assert texts(ring, text="absent") == []


def test_lines_and_their_size_are_bounded(log: logging.Logger) -> None:
    ring = ringed(log, lines_max=3, characters_max=30)
    for number in range(5):
        log.info("line %d", number)
    assert texts(ring) == ["line 4", "line 3", "line 2"]
    assert ring.count == 5
    log.info("x" * 25)
    assert texts(ring) == ["x" * 25], "the others had to make room"
    log.info("y" * 40)
    assert texts(ring) == [], "a line that is too large for the ring"
    log.info("z")
    assert texts(ring) == ["z"]


def test_a_traceback_is_below_its_line_and_cut(log: logging.Logger) -> None:
    ring = ringed(log)
    try:
        raise ValueError("a\x1b[31mred" + "x" * LINE_MAX)
    except ValueError:
        log.exception("failed")
    [line] = ring.lines()
    assert line.text.startswith("failed\nTraceback (most recent call last):\n")
    assert "\x1b" not in line.text
    assert len(line.text) <= LINE_MAX + 100


def test_a_mistake_in_a_log_call_is_said() -> None:
    ring = LineRing()
    ring.handle(logging.LogRecord("a", logging.INFO, "", 1, "%d partitions", ("many",), None))
    [line] = ring.lines()
    assert line.text.startswith("%d partitions (its arguments could not be written: ")

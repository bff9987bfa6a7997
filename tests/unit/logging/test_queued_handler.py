"""Lines are written by a thread; what a slow reader does not take is dropped, and counted."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from threading import Event

import pytest

from barnabas.logging import queued_handler
from barnabas.logging.formats import PlainFormatter
from barnabas.logging.queued_handler import Line, QueuedHandler

TIMEOUT_S = 30


class Pipe:
    """Takes lines only while it is open."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.open = Event()
        self.reached = Event()
        self.closed = Event()
        self.failure: Exception | None = None

    def write(self, lines: Sequence[Line]) -> None:
        self.reached.set()
        assert self.open.wait(TIMEOUT_S)
        if self.failure is not None:
            raise self.failure
        self.lines += lines

    def close(self) -> None:
        self.closed.set()

    @property
    def messages(self) -> list[str]:
        return [line.text.partition(": ")[2] for line in self.lines]


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    pipe = Pipe()
    yield pipe
    pipe.open.set()


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    logger = logging.getLogger("barnabas.test_queued_handler")
    logger.propagate = False
    logger.setLevel(logging.DEBUG)
    yield logger
    for handler in logger.handlers[:]:
        logger.removeHandler(handler)
        handler.close()
    logger.setLevel(logging.NOTSET)
    logger.propagate = True


def handler_of(pipe: Pipe, logger: logging.Logger, waiting_max: int = 100_000) -> QueuedHandler:
    handler = QueuedHandler(pipe, PlainFormatter(), waiting_max)
    logger.addHandler(handler)
    return handler


def test_lines_are_written_in_order(pipe: Pipe, logger: logging.Logger) -> None:
    pipe.open.set()
    handler = handler_of(pipe, logger)
    for number in range(1000):
        logger.info("line %d", number, extra={"event": "counted"})
    handler.flush()
    assert pipe.messages == [f"line {number}" for number in range(1000)]
    assert {(line.logger, line.event) for line in pipe.lines} == {(logger.name, "counted")}


def test_closing_writes_what_waits(pipe: Pipe, logger: logging.Logger) -> None:
    handler = handler_of(pipe, logger)
    for number in range(100):
        logger.info("line %d", number)
    pipe.open.set()
    handler.close()
    assert len(pipe.lines) == 100
    assert pipe.closed.is_set()
    logger.info("late")
    handler.flush()
    assert len(pipe.lines) == 100


def test_a_handler_without_lines_has_no_thread(pipe: Pipe, logger: logging.Logger) -> None:
    handler = handler_of(pipe, logger)
    handler.flush()
    assert handler._thread is None
    handler.close()
    assert pipe.closed.is_set()


def test_a_stuck_reader_costs_debug_lines_first(pipe: Pipe, logger: logging.Logger) -> None:
    handler = handler_of(pipe, logger, waiting_max=100_000)
    logger.info("first")
    assert pipe.reached.wait(TIMEOUT_S)  # the thread hangs in the pipe from here on
    written = {"DEBUG": 0, "INFO": 0, "WARNING": 0}
    for level in written:
        for number in range(1000):
            logger.log(logging.getLevelName(level), "%s", f"{number:050}")
    pipe.open.set()
    handler.close()
    for line in pipe.lines:
        level = line.text.split()[2]
        if level in written and "dropped" not in line.text and "first" not in line.text:
            written[level] += 1
    # Each level has filled its share of the queue, and no more.
    size = len(pipe.lines[-1].text) - len("WARNING")
    assert written["DEBUG"] == 50_000 // (size + len("DEBUG")) - 1  # the first line is there, too
    assert 0 < written["INFO"] <= 25_000 / size
    assert 0 < written["WARNING"] <= 25_000 / size
    (dropped,) = [line for line in pipe.lines if line.event == "log.dropped"]
    assert dropped.logger == "barnabas.broker"
    expected = " ".join(f"{level}={1000 - count}" for level, count in written.items())
    assert dropped.text.endswith(f"log lines dropped, they are not read fast enough: {expected}")


def test_drops_are_reported_once(pipe: Pipe, logger: logging.Logger) -> None:
    handler = handler_of(pipe, logger, waiting_max=300)
    logger.error("first")
    assert pipe.reached.wait(TIMEOUT_S)
    for _ in range(10):
        logger.error("x" * 100)
    pipe.open.set()
    handler.flush()
    logger.error("then")
    handler.flush()
    reports = [text for text in pipe.messages if "dropped" in text]
    assert len(reports) == 1
    assert pipe.messages[-1] == "then"
    assert "ERROR=" in reports[0]


def test_a_reader_that_never_comes_does_not_hold_the_end(
    pipe: Pipe, logger: logging.Logger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queued_handler, "FLUSH_S", 0.01)
    handler = handler_of(pipe, logger)
    logger.info("first")
    assert pipe.reached.wait(TIMEOUT_S)
    handler.flush()
    handler.close()
    assert not pipe.closed.is_set()
    pipe.open.set()
    assert pipe.closed.wait(TIMEOUT_S)


@pytest.mark.parametrize("failure", [BrokenPipeError("no reader"), ValueError("closed file")])
def test_a_closed_stream_is_survived(
    pipe: Pipe, logger: logging.Logger, failure: Exception
) -> None:
    pipe.failure = failure
    pipe.open.set()
    handler = handler_of(pipe, logger)
    logger.info("lost")
    handler.flush()
    pipe.failure = None
    logger.info("kept")
    handler.flush()
    assert pipe.messages == ["kept"]


def test_a_mistake_in_a_log_call_is_a_line(pipe: Pipe, logger: logging.Logger) -> None:
    pipe.open.set()
    handler = handler_of(pipe, logger)
    handler.handle(logger.makeRecord("a", logging.INFO, "", 0, "%s and %s", ("one",), None))
    handler.flush()
    (text,) = pipe.messages
    assert text.startswith("%s and %s (its arguments could not be written: ")

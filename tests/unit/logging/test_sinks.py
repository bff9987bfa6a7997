"""Standard error, past its buffer, and the set of files."""

from __future__ import annotations

import io
import os
from pathlib import Path
from threading import Thread

import pytest

from barnabas.logging.queued_handler import Line
from barnabas.logging.sinks import FileSink, StreamSink


def line(text: str, logger: str = "barnabas.broker", event: str = "") -> Line:
    return Line(logger, event, text)


def test_a_stream_without_a_descriptor_is_written_to() -> None:
    stream = io.StringIO()
    sink = StreamSink(stream)
    sink.write([line("one"), line("two")])
    sink.close()
    assert stream.getvalue() == "one\ntwo\n"


def test_a_stream_with_a_descriptor_is_written_to_past_its_buffer(tmp_path: Path) -> None:
    path = tmp_path / "err"
    with path.open("w", encoding="ascii") as stream:
        sink = StreamSink(stream)
        sink.write([line("Grüße"), line("two")])
        assert path.read_bytes() == b"Gr\\xfc\\xdfe\ntwo\n"
        sink.close()
        assert not stream.closed


def test_a_pipe_that_another_process_made_non_blocking_is_waited_for() -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with os.fdopen(writer, "w") as stream:
        sink = StreamSink(stream)
        text = "x" * 1_000_000
        thread = Thread(target=sink.write, args=([line(text)],))
        thread.start()
        received = 0
        while received < len(text) + 1:
            received += len(os.read(reader, 65_536))
        thread.join()
    os.close(reader)
    assert received == len(text) + 1


def test_each_line_is_in_the_files_of_its_logger(tmp_path: Path) -> None:
    sink = FileSink(str(tmp_path / "a" / "logs"), 1_000_000, 1)
    sink.open(["server.log", "controller.log"])
    sink.write(
        [
            line("one"),
            line("two", "barnabas.controller"),
            line("three", "barnabas.state_change", "isr.expand"),
            line("Größe", "asyncio"),
        ]
    )
    sink.close()
    written = {path.name: path.read_text("utf-8") for path in (tmp_path / "a" / "logs").iterdir()}
    assert written == {
        "server.log": "one\nthree\nGröße\n",
        "controller.log": "two\n",
        "state-change.log": "three\n",
    }


def test_one_file_that_fails_does_not_cost_the_others(tmp_path: Path) -> None:
    (tmp_path / "controller.log").mkdir()
    sink = FileSink(str(tmp_path), 1_000_000, 1)
    with pytest.raises(IsADirectoryError):
        sink.write([line("lost", "barnabas.controller"), line("kept")])
    sink.close()
    assert (tmp_path / "server.log").read_text() == "kept\n"

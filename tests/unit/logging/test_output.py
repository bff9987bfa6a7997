"""What the process of one broker logs, and where."""

from __future__ import annotations

import io
import json
import logging
from pathlib import Path

import pytest

from barnabas.logging.loggers import FILES
from barnabas.logging.output import LogOutput


class Process:
    """The loggers of a process of its own, without handlers."""

    def __init__(self) -> None:
        self.root = logging.RootLogger(logging.WARNING)
        self.logger = logging.Manager(self.root).getLogger("barnabas.controller")


@pytest.fixture
def process() -> Process:
    return Process()


def test_lines_change_their_format_and_their_broker(process: Process) -> None:
    stream = io.StringIO()
    output = LogOutput(stream, "INFO", process.root)
    process.logger.info("plain")
    output.use_format("json")
    process.logger.info("no id yet")
    output.broker_id = 7
    process.logger.info("with an id")
    process.logger.debug("not shown")
    output.close()
    assert process.root.handlers == []
    plain, first, second = stream.getvalue().splitlines()
    assert plain.endswith(" INFO barnabas.controller: plain")
    assert "broker" not in json.loads(first)
    assert json.loads(second)["broker"] == 7


def test_files_are_written_beside_the_stream(process: Process, tmp_path: Path) -> None:
    stream = io.StringIO()
    output = LogOutput(stream, "INFO", process.root)
    output.use_files(str(tmp_path), bytes_max=1_000_000, backups=1)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(FILES)
    process.logger.warning("both")
    output.close()
    assert stream.getvalue().endswith(" WARNING barnabas.controller: both\n")
    assert (tmp_path / "controller.log").read_text().endswith("] WARN both (barnabas.controller)\n")
    assert (tmp_path / "server.log").read_text() == ""


def test_files_have_the_format_for_machines(process: Process, tmp_path: Path) -> None:
    output = LogOutput(io.StringIO(), "INFO", process.root)
    output.use_format("ecs")
    output.use_files(str(tmp_path), bytes_max=1_000_000, backups=1)
    process.logger.info("both")
    output.close()
    assert json.loads((tmp_path / "controller.log").read_text())["message"] == "both"


def test_a_directory_that_cannot_be_written_is_refused(process: Process, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    output = LogOutput(io.StringIO(), "INFO", process.root)
    with pytest.raises(FileExistsError):
        output.use_files(str(tmp_path / "file"), bytes_max=1_000_000, backups=1)
    output.close()


def test_the_handlers_of_an_embedding_program_are_left_alone(process: Process) -> None:
    own = logging.NullHandler()
    process.root.addHandler(own)
    level = process.root.level
    stream = io.StringIO()
    output = LogOutput(stream, "DEBUG", process.root)
    output.use_format("json")
    process.logger.error("theirs")
    output.close()
    assert process.root.handlers == [own]
    assert process.root.level == level
    assert stream.getvalue() == ""
    process.root.removeHandler(own)


FIRST = {"event": "leader.elected", "fields": {"cause": "first"}}
LOADED = {"event": "role.leads", "fields": {"previous_epoch": -1}}
ELECTED = {"event": "leader.elected", "fields": {"cause": "broker-gone"}}
TAKEN = {"event": "role.follows", "fields": {"previous_epoch": 6}}


@pytest.mark.parametrize(
    ("level", "log_format", "shown"),
    [
        ("INFO", "plain", ["elected", "taken"]),
        ("DEBUG", "plain", ["first", "loaded", "elected", "taken"]),
        ("INFO", "json", ["first", "loaded", "elected", "taken"]),
    ],
)
def test_new_partitions_do_not_fill_a_terminal(
    process: Process, tmp_path: Path, level: str, log_format: str, shown: list[str]
) -> None:
    stream = io.StringIO()
    output = LogOutput(stream, level, process.root)
    output.use_format(log_format)
    output.use_files(str(tmp_path), bytes_max=1_000_000, backups=1)
    for word, extra in {
        "first": FIRST,
        "loaded": LOADED,
        "elected": ELECTED,
        "taken": TAKEN,
    }.items():
        process.logger.info("<%s>", word, extra=extra)
    output.close()
    found = [
        word for word in ("first", "loaded", "elected", "taken") if f"<{word}>" in stream.getvalue()
    ]
    assert found == shown
    assert (tmp_path / "controller.log").read_text().count("<") == 4

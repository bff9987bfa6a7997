"""Lines of workers, each with its mark, and none torn apart."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from barnabas.workers.log_lines import LINE_BYTES_MAX, LineCopier, LineMarker


def test_each_line_gets_its_mark_once() -> None:
    marker = LineMarker(b"[1] ")
    assert marker.take(b"a") == b""
    assert marker.take(b"b\nc\n\nd") == b"[1] ab\n[1] c\n[1] \n"
    assert marker.end() == b"[1] d\n"
    assert marker.end() == b""


def test_without_a_mark_lines_stay_as_they_are() -> None:
    marker = LineMarker(b"")
    assert marker.take(b'{"a":1}\n{') + marker.end() == b'{"a":1}\n{\n'


def test_a_line_without_an_end_is_cut() -> None:
    marker = LineMarker(b"! ")
    assert len(marker.take(b"x" * (LINE_BYTES_MAX + 1))) == LINE_BYTES_MAX + 4
    assert marker.end() == b""


def test_copiers_of_one_stream_keep_lines_whole(tmp_path: Path) -> None:
    target = os.open(tmp_path / "lines", os.O_WRONLY | os.O_CREAT)
    turns = threading.Lock()
    copiers = [LineCopier(target, b"[%d] " % number, turns) for number in (1, 2)]
    writers = [os.fdopen(os.dup(copier.descriptor), "w") for copier in copiers]
    for copier in copiers:
        copier.start()
    for number in range(2000):
        for writer in writers:
            writer.write(f"{'x' * 50}{number}\n")
    for writer in writers:
        writer.write("end")
        writer.close()
    for copier in copiers:
        copier.join(60)
    os.close(target)
    lines = (tmp_path / "lines").read_text().splitlines()
    for mark in ("[1] ", "[2] "):
        own = [line.removeprefix(mark) for line in lines if line.startswith(mark)]
        assert own == [f"{'x' * 50}{number}" for number in range(2000)] + ["end"]
    assert len(lines) == 4002

"""A worker's process, with a script in the place of the broker."""

from __future__ import annotations

import asyncio
import logging
import os
import stat
import sys
import threading
from pathlib import Path

import pytest

from barnabas.workers.channel import InSync, Orders, Report
from barnabas.workers.child import Child
from barnabas.workers.log_lines import LineCopier

SCRIPT = f"""#!{sys.executable}
import json, signal, socket, sys
words = sys.argv[1:]
assert words[:4] == ["-m", "barnabas.cli", "start", "--worker"], words
assert words[5:] == ["--log-level", "debug"], words
channel = socket.socket(fileno=int(words[4]))
orders = json.loads(channel.makefile().readline())
assert orders == {{"number": 2, "values": {{"broker.id": "2"}}, "tree": None}}, orders
def leave(number, frame):
    print("leaving", file=sys.stderr)
    sys.exit(7)
signal.signal(signal.SIGTERM, leave)
print("hello", file=sys.stderr, flush=True)
channel.sendall(b'noise\\n{{"InSync":{{}}}}\\n')
signal.pause()
"""


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "python"
    path.write_text(SCRIPT)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(sys, "executable", str(path))


@pytest.mark.usefixtures("script")
@pytest.mark.parametrize(("end", "code", "said"), [("terminate", 7, "leaving"), ("kill", -9, "")])
def test_a_process_from_its_start_to_its_end(
    end: str,
    code: int,
    said: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "barnabas.workers")
    target = os.open(tmp_path / "lines", os.O_WRONLY | os.O_CREAT)
    reports: list[Report] = []

    async def live() -> int:
        def take(report: Report) -> None:
            reports.append(report)
            getattr(child, end)()

        copier = LineCopier(target, b"[2] ", threading.Lock())
        child = Child(Orders(2, {"broker.id": "2"}, None), "debug", copier, take)
        async with asyncio.timeout(60):
            return await child.run()

    assert asyncio.run(live()) == code
    os.close(target)
    assert reports == [InSync()]
    assert (tmp_path / "lines").read_text().split() == ["[2]", "hello", *(said and ["[2]", said])]
    started, unreadable = caplog.messages
    assert started.startswith("worker 2: started, pid=")
    assert unreadable.startswith("worker 2: unreadable report")


@pytest.mark.usefixtures("script")
def test_one_that_is_to_leave_before_it_has_started_leaves_at_once() -> None:
    async def live() -> int:
        copier = LineCopier(2, b"", threading.Lock())
        child = Child(Orders(2, {"broker.id": "2"}, None), "debug", copier, lambda report: None)
        child.terminate()
        async with asyncio.timeout(60):
            return await child.run()

    assert asyncio.run(live()) in (-15, 7)


def test_a_program_that_is_not_there_is_the_callers_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "nowhere"))
    copier = LineCopier(2, b"", threading.Lock())
    child = Child(Orders(1, {}, None), "info", copier, lambda report: None)
    with pytest.raises(FileNotFoundError):
        asyncio.run(child.run())

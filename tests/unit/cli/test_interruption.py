"""What Ctrl-C and SIGTERM do to a command: raised, held back, lost, or too early to matter."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.cli.interruption import INTERRUPTION, Interruption
from barnabas.cli.session import on_loop

SOURCE = Path(__file__).parents[3] / "src"


@pytest.fixture
def interruption() -> Iterator[Interruption]:
    """The one of this process, which is not its own."""
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    INTERRUPTION.begin()
    yield INTERRUPTION
    INTERRUPTION.begin()
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


@pytest.mark.parametrize(
    ("number", "serves", "code"),
    [
        (signal.SIGINT, False, 130),
        (signal.SIGINT, True, 130),
        (signal.SIGTERM, False, 143),
        (signal.SIGTERM, True, 0),
    ],
)
def test_what_is_open_is_closed(
    interruption: Interruption, number: int, serves: bool, code: int
) -> None:
    done = []
    with pytest.raises(KeyboardInterrupt), interruption.at_work("test"):  # noqa: PT012
        if serves:
            interruption.serve()
        try:
            os.kill(os.getpid(), number)
            signal.pause()
        finally:
            done.append("closed")
    assert done == ["closed"]
    assert interruption.exit_code(0) == code
    assert interruption.exit_code(1) == 1


def test_the_last_line_is_printed_once(
    interruption: Interruption, capfd: pytest.CaptureFixture[str]
) -> None:
    assert interruption.exit_code(0) == 0
    for _ in range(2):
        with interruption.at_work("test"):
            interruption.raised_elsewhere()
        assert interruption.exit_code(0) == 130
    assert capfd.readouterr().err == "barnabas test: interrupted\n"
    interruption.begin()
    interruption.raised_elsewhere()
    interruption.closed()
    assert interruption.exit_code(0) == 130
    assert capfd.readouterr().err == ""


def test_a_second_signal_soon_after_is_the_same(interruption: Interruption) -> None:
    done = []
    with pytest.raises(KeyboardInterrupt), interruption.at_work("test"):  # noqa: PT012
        try:
            os.kill(os.getpid(), signal.SIGINT)
        finally:
            os.kill(os.getpid(), signal.SIGINT)
            done.append("closed")
    assert done == ["closed"]


def test_what_is_held_is_asked_to_end_and_raised_afterwards(interruption: Interruption) -> None:
    done = []
    with pytest.raises(KeyboardInterrupt), interruption.at_work("test"):  # noqa: PT012
        with interruption.held() as hold, interruption.held():
            os.kill(os.getpid(), signal.SIGINT)
            done.append("not broken off")
            hold.ends_by(lambda: done.append("asked"))
            hold.ends_by(lambda: done.append("asked again"))
        done.append("not reached")
    assert done == ["not broken off", "asked"]


def test_a_failure_of_what_is_held_stays_one(interruption: Interruption) -> None:
    with pytest.raises(ValueError, match="of its own"), interruption.at_work("test"):  # noqa: PT012, SIM117
        with interruption.held():
            os.kill(os.getpid(), signal.SIGINT)
            raise ValueError("of its own")
    assert not interruption.was_raised


@pytest.mark.parametrize("busy", [False, True])
def test_a_loop_is_cancelled_in_order(interruption: Interruption, busy: bool) -> None:
    done = []

    async def work() -> None:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.01)
            done.append("closed")

    with pytest.raises(KeyboardInterrupt), interruption.at_work("test"):
        on_loop(work(), busy=busy)
    assert done == ["closed"]


def test_a_loop_that_has_not_begun_does_not(interruption: Interruption) -> None:
    async def work() -> None:
        await asyncio.sleep(0)
        done.append("not reached")

    done: list[str] = []
    with pytest.raises(KeyboardInterrupt), interruption.at_work("test"), interruption.held():  # noqa: PT012
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(asyncio.CancelledError):
            on_loop(work())
    assert done == []


def test_what_is_ignored_stays_ignored(interruption: Interruption) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with interruption.at_work("test"):
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
            assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
            interruption.listen(in_background=True)
            assert signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


# Processes that are a command's own.

ACT = """
import os, signal, sys
sys.argv = ["barnabas", "acting"]
import barnabas.cli.console as console
import barnabas.cli.main as main

def interrupt():
    os.kill(os.getpid(), signal.SIGINT)

def configure(parser):
    parser.set_defaults(run=run)

@BODY@

main.COMMANDS = (main.Command("acting", "__main__", "act"),)
sys.exit(console.main())
"""


def act(body: str, tmp_path: Path, **streams: int) -> subprocess.CompletedProcess[str]:
    """Run a command whose body is a function `run(arguments)`, by `python -m` as ours are."""
    (tmp_path / "acting.py").write_text(ACT.replace("@BODY@", body))
    return subprocess.run(
        [sys.executable, "-m", "acting"],
        env={
            **os.environ,
            "PYTHONPATH": f"{SOURCE}{os.pathsep}{tmp_path}",
            "PYTHONUNBUFFERED": "",
        },
        text=True,
        timeout=60,
        check=False,
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams},  # type: ignore[call-overload]
    )


INTERRUPTED = (130, "", "barnabas acting: interrupted\n")


@pytest.mark.parametrize(
    "body",
    [
        # Caught, it is no death by the signal, although it has left an exec of a text.
        "def run(arguments):\n  exec('interrupt()', globals())",
        # Lost where nothing can be raised, it comes again.
        "class Lost:\n"
        "  def __del__(self):\n"
        "    interrupt()\n"
        "def run(arguments):\n"
        "  Lost()\n"
        "  while True: signal.pause()",
        # What a library makes of it is not told.
        "def run(arguments):\n"
        "  try:\n"
        "    interrupt()\n"
        "  except BaseException:\n"
        "    raise RuntimeError('made of it')",
        # Neither are coroutines and files that are left as they are.
        "async def never():\n"
        "  pass\n"
        "def run(arguments):\n"
        "  left = never(), open('/dev/null')\n"
        "  interrupt()",
        # Arguments are read.
        "def configure(parser):\n  interrupt()",
        # The work is over, the process is not.
        "import atexit, threading\ndef run(arguments):\n  atexit.register(interrupt)",
        "import threading\n"
        "def run(arguments):\n"
        "  main = threading.main_thread()\n"
        "  threading.Thread(target=lambda: (main.join(), interrupt())).start()",
    ],
)
def test_the_end_is_the_same_everywhere(body: str, tmp_path: Path) -> None:
    done = act(body, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == INTERRUPTED


def test_an_import_is_not_broken_off(tmp_path: Path) -> None:
    """The locks of modules would be held for ever."""
    (tmp_path / "imported.py").write_text("print('begun')\ninterrupt()\nprint('whole')")
    done = act(
        "import builtins\n"
        "builtins.interrupt = interrupt\n"
        "def run(arguments):\n"
        "  try:\n"
        "    import imported\n"
        "    while True: signal.pause()\n"
        "  finally:\n"
        "    import imported",
        tmp_path,
    )
    assert (done.returncode, done.stdout) == (130, "begun\nwhole\n")
    assert done.stderr == "barnabas acting: interrupted\n"


def test_impatience_leaves_at_once(tmp_path: Path) -> None:
    done = act(
        "import barnabas.cli.interruption as interruption\n"
        "interruption.PATIENCE_S = 0\n"
        "def run(arguments):\n"
        "  interruption.INTERRUPTION.last_resort(lambda: print('last', flush=True))\n"
        "  try:\n"
        "    interrupt()\n"
        "  finally:\n"
        "    interrupt()\n"
        "    print('not reached', flush=True)",
        tmp_path,
    )
    assert (done.returncode, done.stdout) == (130, "last\n")
    assert done.stderr == "barnabas acting: interrupted\n"


def test_an_interpreter_that_takes_itself_apart_is_left_alone(tmp_path: Path) -> None:
    done = act(
        "class Late:\n"
        "  def __del__(self, kill=os.kill, number=os.getpid()):\n"
        "    kill(number, 2)\n"
        "    print('late', flush=True)\n"
        "def run(arguments):\n"
        "  sys.late = Late()",
        tmp_path,
    )
    assert (done.returncode, done.stderr) == (0, ""), done


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_reader_that_is_gone_does_not_change_the_code(stream: str, tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = act(
            "def run(arguments):\n  print('unread')\n  interrupt()", tmp_path, **{stream: writing}
        )
    finally:
        os.close(writing)
    assert done.returncode == 130
    assert "Traceback" not in (done.stderr or "")
    assert "Exception" not in (done.stderr or "")

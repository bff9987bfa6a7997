"""`barnabas top` in a terminal: a real broker's load is seen, keys work, Ctrl-C restores all."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator
from types import TracebackType

import pytest

from barnabas import KafkaConsumer, KafkaProducer, TopicPartition
from barnabas.cli.main import main
from barnabas.testing import Cluster

pytestmark = pytest.mark.system

DEADLINE_S = 60.0
RATE = 200
"""Records per second that are sent."""
LAG = 37
MAIN_SCREEN = b"\x1b[?1049l"
SHOW_CURSOR = b"\x1b[?25h"
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


class Terminal:
    """A command on a terminal of its own, and what it has drawn."""

    def __init__(self, *words: str, columns: int = 120, rows: int = 40) -> None:
        self._ours, theirs = pty.openpty()
        self._before = termios.tcgetattr(theirs)
        self._theirs = theirs
        self.resize(columns, rows)
        self.said = b""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "barnabas.cli", *words],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=_own_terminal,
            env={
                **{name: text for name, text in os.environ.items() if name != "COLUMNS"},
                "TERM": "xterm-256color",
            },
        )

    def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def press(self, keys: bytes) -> None:
        os.write(self._ours, keys)

    @property
    def screen(self) -> str:
        """The last whole screen, without colours."""
        screens = self.said.split(b"\x1b[H")
        return ESCAPES.sub("", screens[-2 if len(screens) > 2 else -1].decode(errors="replace"))

    def wait_for(self, holds: Callable[[str], object], what: str) -> str:
        """Read until a screen is as wanted, and return it."""
        deadline_s = time.monotonic() + DEADLINE_S
        while not holds(self.screen):
            assert time.monotonic() < deadline_s, f"{what}: {self.screen}"
            assert self._read(), f"{what}: it has ended: {self.said[-2000:]!r}"
        return self.screen

    def end(self) -> int:
        """Read to the end, and return the exit code."""
        deadline_s = time.monotonic() + DEADLINE_S
        while self.process.poll() is None:
            assert time.monotonic() < deadline_s, self.said[-2000:]
            self._read()
        while select.select([self._ours], [], [], 0)[0] and self._read():
            pass
        return self.process.returncode

    def is_as_before(self) -> bool:
        """Return whether the terminal echoes, and waits for whole lines, as it did."""
        return termios.tcgetattr(self._theirs) == self._before

    def _read(self) -> bool:
        if not select.select([self._ours], [], [], 0.1)[0]:
            return True
        try:
            self.said += os.read(self._ours, 1 << 16)
        except OSError:
            return False
        return True

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._ours)
        os.close(self._theirs)


def _own_terminal() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@pytest.fixture(scope="module")
def loaded() -> Iterator[Cluster]:
    """A broker to which records are sent, and a group that is behind on another topic."""
    with Cluster(metrics=True) as cluster:
        for topic in ("orders", "audit"):
            words = ["topics", "create", topic, "--partitions", "1"]
            assert main([*words, "--bootstrap", cluster.bootstrap]) == 0
        with KafkaProducer(bootstrap_servers=cluster.bootstrap) as producer:
            for _ in range(LAG + 3):
                producer.send("audit", b"x" * 100)
        audit = TopicPartition("audit", 0)
        with KafkaConsumer(bootstrap_servers=cluster.bootstrap, group_id="billing") as consumer:
            consumer.assign([audit])
            consumer.seek(audit, 3)
            consumer.commit()
        with _sending(cluster.bootstrap):
            yield cluster


@contextlib.contextmanager
def _sending(bootstrap: str) -> Iterator[None]:
    """Send RATE records per second, in ten steps."""
    ended = threading.Event()

    def send() -> None:
        with KafkaProducer(bootstrap_servers=bootstrap) as producer:
            due_s = time.monotonic()
            while not ended.is_set():
                for _ in range(RATE // 10):
                    producer.send("orders", b"x" * 100)
                due_s += 0.1
                ended.wait(max(due_s - time.monotonic(), 0.0))

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def top(cluster: Cluster, *words: str) -> list[str]:
    metrics = ["--metrics", f"0={cluster.metrics_url()}"]
    return ["top", "--bootstrap", cluster.bootstrap, "--interval", "2", *metrics, *words]


def rate_of(screen: str, topic: str) -> float:
    """Return the records per second that a screen shows for a topic; -1 if none."""
    row = re.search(rf"^{topic} +\d+ +([\d.,]+) ", screen, re.MULTILINE)
    return -1.0 if row is None else float(row[1].replace(",", ""))


def test_load_and_lag_are_seen_and_ctrl_c_restores_the_terminal(loaded: Cluster) -> None:
    with Terminal(*top(loaded)) as terminal:
        screen = terminal.wait_for(
            lambda screen: (
                RATE * 0.7 <= rate_of(screen, "orders") <= RATE * 1.3
                and re.search(r"^Produce .* ms", screen, re.MULTILINE)
            ),
            "about as many records per second as are sent, and how long requests took",
        )
        group = re.search(r"^billing .*$", screen, re.MULTILINE)
        assert group is not None, screen
        assert re.search(rf" {LAG} +[\d.]+ (s|min) ", group[0]), group[0]
        assert rate_of(screen, "audit") == 0
        assert "controller 0" in screen
        assert not terminal.is_as_before()
        terminal.press(b"\x03")
        assert terminal.end() == 130
        assert terminal.said.rfind(MAIN_SCREEN) > terminal.said.rfind(b"\x1b[?1049h") >= 0
        assert terminal.said.rfind(SHOW_CURSOR) > terminal.said.rfind(b"\x1b[?25l")
        assert b"barnabas top: interrupted" in terminal.said
        assert b"Traceback" not in terminal.said
        assert terminal.is_as_before()
        assert terminal.said.count(b"\x1b[2J") <= 2, "it is not erased for each screen"


def test_keys_and_a_narrow_terminal(loaded: Cluster) -> None:
    with Terminal(*top(loaded, "--sort", "name"), columns=60, rows=20) as terminal:
        terminal.wait_for(lambda screen: "billing" in screen, "the group")
        terminal.press(b"h")
        terminal.wait_for(lambda screen: "q  quit" in screen, "the help")
        terminal.press(b"h")
        terminal.wait_for(lambda screen: "billing" in screen, "the tables again")
        terminal.press(b"t")
        terminal.resize(160, 40)  # the terminal's driver sends SIGWINCH
        screen = terminal.wait_for(lambda screen: "sort seconds" in screen, "the wide screen")
        assert max(map(len, screen.splitlines())) <= 160
        terminal.press(b"q")
        assert terminal.end() == 0
        assert terminal.is_as_before()


def test_a_broker_that_stops_answering_is_said_and_waited_for() -> None:
    with Cluster() as cluster:
        words = ["top", "--bootstrap", cluster.bootstrap, "--interval", "0.2", "--timeout", "1"]
        with Terminal(*words) as terminal:
            terminal.wait_for(lambda screen: "controller " in screen, "the cluster")
            cluster.stop()
            terminal.wait_for(lambda screen: "no answer" in screen, "that nobody answers")
            cluster.start()
            terminal.wait_for(
                lambda screen: "no answer" not in screen and "controller " in screen, "it again"
            )
            terminal.press(b"q")
            assert terminal.end() == 0

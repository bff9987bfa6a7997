"""The terminal: the other screen, drawn again without a flicker, and keys as they are pressed.

The terminal is as it was after the end, however that comes: also if the process is ended at once.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from barnabas.cli.interruption import INTERRUPTION
from barnabas.cli.top.screen import Line

STYLES = {"title": "bold", "head": "reverse", "bad": "bold red", "note": "yellow"}
MAIN_SCREEN = b"\x1b[?1049l\x1b[?25h"


class View:
    """The screen and the keyboard, inside `with`; to be used on the event loop."""

    def __init__(self, pressed: Callable[[str], None], resized: Callable[[], None]) -> None:
        """`pressed` is called with each key, `resized` when the terminal's size has changed."""
        self._pressed = pressed
        self._resized = resized
        self._console = Console()
        self._live = Live(
            console=self._console, screen=True, auto_refresh=False, vertical_overflow="crop"
        )
        self._loop = asyncio.get_running_loop()
        self._before: list[Any] | None = None

    @property
    def size(self) -> tuple[int, int]:
        """The columns and rows of the terminal."""
        return self._console.size

    def show(self, lines: Sequence[Line]) -> None:
        """Draw the screen."""
        texts = [Text(text, STYLES.get(kind, ""), no_wrap=True) for text, kind in lines]
        self._live.update(Group(*texts), refresh=True)

    def __enter__(self) -> View:
        INTERRUPTION.last_resort(self._restore)
        self._live.__enter__()
        self._loop.add_signal_handler(signal.SIGWINCH, self._resized)
        if sys.stdin.isatty():
            import termios
            import tty

            descriptor = sys.stdin.fileno()
            self._before = termios.tcgetattr(descriptor)
            tty.setcbreak(descriptor)
            self._loop.add_reader(descriptor, self._read)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._loop.remove_signal_handler(signal.SIGWINCH)
        if self._before is not None:
            self._loop.remove_reader(sys.stdin.fileno())
        self._live.__exit__(kind, value, traceback)
        self._restore_keyboard()
        INTERRUPTION.last_resort(None)

    def _read(self) -> None:
        descriptor = sys.stdin.fileno()
        data = os.read(descriptor, 1024)
        if not data:
            self._loop.remove_reader(descriptor)  # the terminal is gone
            self._pressed("q")
        if data.startswith(b"\x1b"):
            return  # an arrow, or another key that has no letter
        for key in data.decode(errors="replace"):
            self._pressed(key)

    def _restore(self) -> None:
        os.write(sys.stdout.fileno(), MAIN_SCREEN)
        self._restore_keyboard()

    def _restore_keyboard(self) -> None:
        if self._before is not None:
            import termios

            termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, self._before)
            self._before = None

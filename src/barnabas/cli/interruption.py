"""What Ctrl-C (SIGINT) and SIGTERM do to a command, at any moment of its life.

- Before its work begins, while modules are imported and arguments are read, there is nothing to
  undo: the process leaves at once. The same holds when its work is over.
- While it works, the first signal raises KeyboardInterrupt, once, and what is open is closed on the
  way out. Where an exception would do harm (in an event loop, while a child starts, while things
  are being closed) `held` keeps it back, asks for the end instead, and raises it afterwards. It
  waits for the end of an import as well, and comes again if it was lost in a finalizer.
- Another signal leaves at once as well, from `PATIENCE_S` on: before that it is taken for the same
  one, which a terminal and a program in front of ours may both deliver.

Either way the command's last line is printed, once, and the exit code is 128 and the signal's
number: 130 or 143. Commands that run for as long as nobody stops them are services: SIGTERM is how
they are stopped, and that is no failure.

`barnabas.cli.console` has this before anything else is imported. So nothing is imported here that
the interpreter has not loaded anyway: `_signal` is what `signal` wraps.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import _thread
import atexit
import os
import sys
from time import monotonic, sleep

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType, TracebackType
    from typing import Any

PATIENCE_S = 1.0
ECHO_S = 0.01

_SIGNALS = (_signal.SIGINT, _signal.SIGTERM)
_SHOW_CURSOR = b"\x1b[?25h"


class Interruption:
    """The signal that ends this process, if one has come, and how it is to end."""

    def __init__(self) -> None:
        self._owns_process = False
        self._main_thread = 0
        self.begin()

    def begin(self) -> None:
        """Begin with a command of which nothing is known; what came before is forgotten."""
        self._number: Any = None
        self._came_s = 0.0
        self._is_raised = False
        self._is_echo = False
        self._at_work = False
        self._is_service = False
        self._name: str | None = None
        self._said = False
        self._hold: Hold | None = None
        self._last_resort: Callable[[], None] | None = None

    @property
    def owns_process(self) -> bool:
        """Whether the process runs this command alone, and may be left at once."""
        return self._owns_process

    def own_process(self) -> None:
        """Take the signals for the rest of this process's life."""
        self._owns_process = True
        for word in sys.argv[1:2]:
            self._name = word if word.isalpha() else None
        # The first to be registered is the last to be called. After that the interpreter would
        # have the signal kill it, while it takes itself apart.
        atexit.register(_signal.signal, _signal.SIGINT, _signal.SIG_IGN)
        sys.unraisablehook = self._unraisable
        self.listen()

    def listen(self, *, in_background: bool = False) -> dict[int, Any]:
        """Take the signals, and return who had them.

        A shell has what it runs in the background ignore Ctrl-C: so does this, unless told.
        """
        before = {}
        self._main_thread = _thread.get_ident()
        for number in _SIGNALS:
            handler = _signal.getsignal(number)
            if in_background or handler is not _signal.SIG_IGN:
                before[number] = handler
                _signal.signal(number, self._take)
        return before

    # The command.

    def at_work(self, name: str) -> Work:
        """Return a context in which the first signal raises KeyboardInterrupt."""
        self._name = name
        return Work(self)

    def serve(self) -> None:
        """Say that this command runs until it is stopped, by SIGTERM also."""
        self._is_service = True

    def closed(self) -> None:
        """Say that the command has printed its last line, or does without one."""
        self._said = True

    def held(self, *, patient: bool = False) -> Hold:
        """Return a context in which nothing is raised; a patient one is never left at once."""
        return Hold(self, patient)

    def last_resort(self, end: Callable[[], None] | None) -> None:
        """Have something called before the process leaves at once: `end` must not wait."""
        self._last_resort = end

    # The end.

    @property
    def was_raised(self) -> bool:
        """Whether a signal has come and was raised: what fails afterwards may fail of that."""
        return self._is_raised

    def raised_elsewhere(self) -> None:
        """Take in a KeyboardInterrupt that this object has not raised."""
        if self._number is None:
            self._number = _signal.SIGINT
        self._is_raised = True

    def exit_code(self, code: int) -> int:
        """Return how a command ends that would end with a code; print its last line if needed."""
        if self._number is None:
            return code
        # The interpreter takes note of a KeyboardInterrupt that leaves code compiled from a string
        # (as of dataclasses), and would in the end kill itself by the signal, although it was
        # caught meanwhile. Code of the same kind that ends well has it forget.
        eval("0")
        self._say()
        return code or self._own_code()

    def _own_code(self) -> int:
        stopped = self._is_service and self._number == _signal.SIGTERM
        return 0 if stopped else 128 + int(self._number)

    def _say(self) -> None:
        if self._said or self._name is None:
            return
        self._said = True
        word = "terminated" if self._number == _signal.SIGTERM else "interrupted"
        line = f"barnabas {self._name}: {word}\n".encode()
        try:
            os.write(2, _SHOW_CURSOR + line if os.isatty(2) else line)
        except OSError:
            return  # nobody reads it

    def _leave(self) -> None:
        try:
            self._say()
            if self._last_resort is not None:
                self._last_resort()
        finally:
            os._exit(self._own_code())

    # Signals.

    @property
    def is_pending(self) -> bool:
        """Whether a signal has come that was not raised yet."""
        return self._number is not None and not self._is_raised

    def raise_pending(self) -> None:
        """Raise what has come."""
        self._is_raised = True
        if self._owns_process and "warnings" in sys.modules:
            sys.modules["warnings"].simplefilter("ignore")  # of what is broken off
        raise KeyboardInterrupt

    def _take(self, number: int, frame: FrameType | None) -> None:
        first, echo, self._is_echo = self._number is None, self._is_echo, False
        if first:
            self._number, self._came_s = number, monotonic()
        hold = self._hold
        if not self._at_work and self._owns_process:
            self._leave()
        elif not first and not echo:
            if monotonic() - self._came_s >= PATIENCE_S and not (hold and hold.patient):
                if self._owns_process:
                    self._leave()
                raise KeyboardInterrupt
        elif hold is not None:
            hold.ask()
        elif self.is_pending:
            # An import that is broken off keeps the locks of its modules: the next one would wait
            # forever.
            if _is_importing(frame):
                self._echo()
            else:
                self.raise_pending()

    def _unraisable(self, arguments: Any) -> None:
        """Have the signal come again whose exception was lost, in a finalizer for example."""
        if self._number is not None and issubclass(arguments.exc_type, KeyboardInterrupt):
            self._is_raised = False
            self._echo()
        else:
            sys.__unraisablehook__(arguments)

    def _echo(self) -> None:
        _thread.start_new_thread(self._come_again, ())

    def _come_again(self) -> None:
        sleep(ECHO_S)
        self._is_echo = True
        _signal.pthread_kill(self._main_thread, self._number)


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


class Work:
    """A command at work, from `with` on.

    Where the process is not ours (a program that calls `main`) its signals are taken for so long.
    """

    def __init__(self, interruption: Interruption) -> None:
        self._interruption = interruption
        self._before: dict[int, Any] = {}

    def __enter__(self) -> None:
        if not self._interruption.owns_process and _is_main_thread():
            self._before = self._interruption.listen()
        self._interruption._at_work = True

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._interruption._at_work = False
        for number, handler in self._before.items():
            _signal.signal(number, handler)


def _is_main_thread() -> bool:
    import threading

    return threading.current_thread() is threading.main_thread()


class Hold:
    """A stretch in which a signal raises nothing, from `with` on; it is raised at the end of it."""

    def __init__(self, interruption: Interruption, patient: bool) -> None:
        self._interruption = interruption
        self._outer: Hold | None = None
        self._end: Callable[[], object] | None = None
        self._asked = False
        self.patient = patient

    def ends_by(self, end: Callable[[], object] | None) -> None:
        """Set what a signal calls, once, to have the work inside end; at once if one has come."""
        self._end = end
        if self._interruption.is_pending:
            self.ask()

    def ask(self) -> None:
        """Have the work inside end."""
        if self._end is not None and not self._asked:
            self._asked = True
            self._end()

    def __enter__(self) -> Hold:
        self._outer, self._interruption._hold = self._interruption._hold, self
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._interruption._hold = self._outer
        failed = kind is not None and issubclass(kind, Exception)
        if self._outer is None and self._interruption.is_pending and not failed:
            self._interruption.raise_pending()


INTERRUPTION = Interruption()

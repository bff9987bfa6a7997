"""What Ctrl-C (SIGINT) and SIGTERM do to a command, at any time.

- Before its work begins, while modules are imported and arguments are parsed, there is nothing to
  undo: the process exits at once. The same applies when its work is over.
- While it works, the first signal raises KeyboardInterrupt, once, and open resources are closed on
  the way out. If an exception would do harm (in an event loop, while a child starts, during
  cleanup), `held` defers it, asks the work to end instead, and raises it afterwards. It also waits
  for the end of an import, and is sent again if it was lost in a finalizer.
- Another signal also exits at once, after `PATIENCE_S`: before that it is considered the same
  signal, which both a terminal and a parent process may deliver.

Either way, the command's last line is printed, once, and the exit code is 128 plus the signal
number: 130 or 143. Commands that run until they are stopped are services: SIGTERM is how they are
stopped, and is not a failure.

`barnabas.cli.console` imports this before anything else. So nothing is imported here that the
interpreter has not loaded anyway: `_signal` is what `signal` wraps.
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
    """The signal that ends this process, if one was received, and how to end."""

    def __init__(self) -> None:
        self._owns_process = False
        self._main_thread = 0
        self.begin()

    def begin(self) -> None:
        """Reset for a new command; earlier signals are forgotten."""
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
        """Whether the process runs only this command, and may exit at once."""
        return self._owns_process

    def own_process(self) -> None:
        """Handle the signals for the rest of the process's lifetime."""
        self._owns_process = True
        for word in sys.argv[1:2]:
            is_name = word[:1].isalpha() and word.replace("-", "").isalpha()
            self._name = word if is_name else None
        # The first to be registered is the last to be called. After that, during its shutdown, the
        # interpreter would be killed by the signal.
        atexit.register(_signal.signal, _signal.SIGINT, _signal.SIG_IGN)
        sys.unraisablehook = self._unraisable
        self.listen()

    def listen(self, *, in_background: bool = False) -> dict[int, Any]:
        """Install the signal handlers, and return the previous ones.

        A shell lets background jobs ignore Ctrl-C, and so does this, unless `in_background`.
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
        """Declare that this command runs until it is stopped, also by SIGTERM."""
        self._is_service = True

    def closed(self) -> None:
        """Declare that the command has printed its last line, or needs none."""
        self._said = True

    def held(self, *, patient: bool = False) -> Hold:
        """Return a context in which nothing is raised; a patient one never exits at once."""
        return Hold(self, patient)

    def last_resort(self, end: Callable[[], None] | None) -> None:
        """Call `end` before the process exits at once; it must not block."""
        self._last_resort = end

    # The end.

    @property
    def was_raised(self) -> bool:
        """Whether a signal was received and raised: it may be the cause of later failures."""
        return self._is_raised

    def raised_elsewhere(self) -> None:
        """Record a KeyboardInterrupt that this object has not raised."""
        if self._number is None:
            self._number = _signal.SIGINT
        self._is_raised = True

    def exit_code(self, code: int) -> int:
        """Return the exit code for a command's own `code`; print its last line if needed."""
        if self._number is None:
            return code
        # The interpreter remembers a KeyboardInterrupt that leaves code compiled from a string (as
        # in dataclasses), and would finally kill itself by the signal, although it was caught
        # meanwhile. Running such code successfully resets that.
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
            return  # no one reads it

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
        """Whether a signal was received and not raised yet."""
        return self._number is not None and not self._is_raised

    def raise_pending(self) -> None:
        """Raise the pending signal as KeyboardInterrupt."""
        self._is_raised = True
        if self._owns_process and "warnings" in sys.modules:
            sys.modules["warnings"].simplefilter("ignore")  # about interrupted work
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
            # An interrupted import keeps the locks of its modules: the next one would wait forever.
            if _is_importing(frame):
                self._echo()
            else:
                self.raise_pending()

    def _unraisable(self, arguments: Any) -> None:
        """Send the signal again if its exception was lost, in a finalizer for example."""
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

    If the process is not ours (a program calls `main`), its signals are only handled meanwhile.
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
    """A `with` block in which a signal raises nothing; it is raised at the end of the block."""

    def __init__(self, interruption: Interruption, patient: bool) -> None:
        self._interruption = interruption
        self._outer: Hold | None = None
        self._end: Callable[[], object] | None = None
        self._asked = False
        self.patient = patient

    def ends_by(self, end: Callable[[], object] | None) -> None:
        """Set what a signal calls, once, to end the work inside; now, if one is pending."""
        self._end = end
        if self._interruption.is_pending:
            self.ask()

    def ask(self) -> None:
        """Ask the work inside to end."""
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

"""Spark for a command: a session whose JVM says nothing, and that ends with the command.

The JVM's words are kept aside, and shown only where it does not start; what fails later comes back
as exceptions. It leaves when the process does that has started it, however that ends. Ctrl-C and
SIGTERM wait until it is up, and are then what they were before: a command ends its work in order,
and then the session.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar

from barnabas.model.errors import ConfigError
from barnabas.spark.master import SCHEME, check_master

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Result = TypeVar("Result")

DEFAULTS = {"spark.ui.enabled": "false", "spark.log.level": "OFF"}

NO_ANSWER = "who listens there does not answer as a master of Spark"

STOP_S = 10.0
"""How long a session may take to end; its JVM ends with this process in any case."""


def open_session(master: str, name: str, conf: Mapping[str, str]) -> SparkSession:
    """Start Spark; raise ConfigError, which names the master, if that cannot be done."""
    try:
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError as failure:
        raise ConfigError(
            "--engine spark: PySpark is not installed: pip install 'barnabas[spark]'; "
            "--engine local does without"
        ) from failure
    check_master(master)
    # Workers must run the Python that has this package, unless somebody chose for them.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master).appName(name)
    for option, value in {**DEFAULTS, **conf}.items():
        builder = builder.config(option, value)
    with _stderr_aside() as said, signals_kept():
        try:
            session = apart(builder.getOrCreate)
        except Py4JError as failure:
            why = why_not_started(failure)
            raise ConfigError(f"Spark did not start on --master {master}: {why}") from failure
        except (PySparkException, OSError) as failure:
            lines = [line for line in said().splitlines() if line.strip()]
            raise ConfigError(
                f"Spark did not start ({lines[-1] if lines else failure}); it needs Java 17 or "
                "later; --engine local does without"
            ) from failure
    hush(session.sparkContext)
    if not is_registered(session.sparkContext):
        close_session(session)
        raise ConfigError(f"Spark did not start on --master {master}: {NO_ANSWER}")
    return session


def hush(context: Any) -> None:
    """Have the thread that hears of accumulators say nothing when the JVM ends before us.

    A signal to all processes ends it first; the thread would print a stack of calls.
    """
    context._accumulatorServer.handle_error = lambda request, address: None


def close_session(session: SparkSession) -> None:
    """End a session.

    By a thread of its own, as this one may have been interrupted in the middle of a call.
    """
    stopping = threading.Thread(target=_stop, args=(session,), daemon=True)
    with signals_kept():
        stopping.start()
        stopping.join(STOP_S)


def _stop(session: SparkSession) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with suppress(Exception):  # a signal to all processes has ended the JVM already
            session.stop()


def is_registered(context: Any) -> bool:
    """Tell whether the master has taken the application.

    One that does not answer ends it a minute later, some time after the start seems to have gone
    well; only the id shows at once that the master has given none.
    """
    application = context._jsc.sc()
    own_id = str(application.applicationId()).startswith("spark-application-")
    return not application.isStopped() and not (context.master.startswith(SCHEME) and own_id)


def why_not_started(failure: Exception) -> str:
    """Return why Spark did not start; of a master that is none it only says that it has stopped."""
    text = reason(failure)
    return NO_ANSWER if "stopped SparkContext" in text else text


def reason(failure: Exception) -> str:
    """Return what the JVM says, without its stack."""
    cause = getattr(failure, "java_exception", None)
    text = str(cause if cause is not None else failure).strip()
    return text.splitlines()[0] if text else type(failure).__name__


def apart(work: Callable[[], Result]) -> Result:
    """Return what a call returns, made by a thread of its own.

    No signal breaks it off there, PySpark leaves the handler of Ctrl-C alone, and a wait that is
    interrupted does not wait for the end of a job.
    """
    done: Future[Result] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as failure:  # noqa: BLE001  # raised again by whoever waits
            done.set_exception(failure)

    threading.Thread(target=run, daemon=True).start()
    return done.result()


@contextmanager
def signals_kept() -> Iterator[None]:
    """Hold Ctrl-C and SIGTERM back while Spark starts or stops, and keep what they do.

    A start that is broken off leaves a JVM behind that never learns that it is alone. A second
    signal is not held back: whoever sends it does not want to wait.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # where no signal arrives
        return
    came: list[int] = []
    before: dict[int, Any] = {}

    def give_back() -> None:
        while before:
            signal.signal(*before.popitem())

    def keep(number: int, frame: FrameType | None) -> None:
        came.append(number)
        if len(came) > 1:
            give_back()
            signal.raise_signal(came.pop())

    for each in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(each) is not signal.SIG_IGN:
            before[each] = signal.signal(each, keep)
    try:
        yield
    finally:
        give_back()
        for number in came[:1]:
            signal.raise_signal(number)


@contextmanager
def _stderr_aside() -> Iterator[Callable[[], str]]:
    """Have the JVM, which inherits it, write to a file instead of our stderr."""
    sys.stderr.flush()
    kept = os.dup(2)
    with tempfile.TemporaryFile() as aside:

        def said() -> str:
            aside.seek(0)
            return aside.read().decode(errors="replace")

        os.dup2(aside.fileno(), 2)
        try:
            yield said
        finally:
            os.dup2(kept, 2)
            os.close(kept)

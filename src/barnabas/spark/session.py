"""Spark for a command: a session whose JVM prints nothing, and that ends with the command.

The JVM's output is captured, and shown only if it does not start; later failures are exceptions.
The JVM exits with the process that started it, however that ends. Ctrl-C and SIGTERM wait until it
has started, and then do what they did before: a command stops its work in order, and then the
session.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from time import monotonic
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar

from barnabas.model.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Result = TypeVar("Result")

REDACTION = {
    "spark.redaction.regex": "(?i)secret|password|token|access[.]?key|jaas",
    "spark.sql.redaction.options.regex": "(?i)url|secret|password|token|jaas|[.]key$|[.]key[.]pem",
}
"""Names whose values Spark is to hide in its logs and plans: its defaults, and more options of
clients that have secrets, such as sasl.jaas.config.
"""

DEFAULTS = {"spark.ui.enabled": "false", "spark.log.level": "OFF", **REDACTION}

NO_ANSWER = "the listener there does not respond as a Spark master"

SCHEME = "spark://"
CONNECT_S = 5.0
"""How long a master may take to accept a connection."""

STOP_S = 10.0
"""How long a session may take to stop; its JVM exits with this process in any case."""


def check_master(master: str) -> None:
    """Raise ConfigError if no standalone master listens at its address; skip other masters.

    Spark retries a standalone master for a minute, and then fails with stack traces that do not
    name it.
    """
    if not master.startswith(SCHEME):
        return
    failures = []
    for address in master.removeprefix(SCHEME).split(","):
        host, _, port = address.rpartition(":")
        if not host or not port.isdigit():
            raise ConfigError(f"--master {master}: {address} must be HOST:PORT")
        try:
            with socket.create_connection((host.strip("[]"), int(port)), CONNECT_S):
                return  # one of several is enough: the others are on standby
        except (OSError, OverflowError) as failure:
            failures.append(f"{address}: {getattr(failure, 'strerror', None) or failure}")
    raise ConfigError(
        f"--master {master}: no Spark master listens there ({'; '.join(failures)}); "
        "without --master, Spark runs on this machine alone"
    )


def open_session(master: str, name: str, conf: Mapping[str, str]) -> SparkSession:
    """Start Spark; raise ConfigError, which names the master, if it does not start."""
    try:
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError as failure:
        raise ConfigError(
            "--engine spark: PySpark is not installed: pip install 'barnabas[spark]'; "
            "--engine local does not need it"
        ) from failure
    check_master(master)
    # Workers must run the Python that has this package, unless the user chose another.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master).appName(name)
    for option, value in {**DEFAULTS, **conf}.items():
        builder = builder.config(option, value)
    with _stderr_captured() as output, signals_kept():
        try:
            session = apart(builder.getOrCreate)
        except Py4JError as failure:
            why = why_not_started(failure)
            raise ConfigError(f"Spark did not start on --master {master}: {why}") from failure
        except (PySparkException, OSError) as failure:
            lines = [line for line in output().splitlines() if line.strip()]
            raise ConfigError(
                f"Spark did not start ({lines[-1] if lines else failure}); it needs Java 17 or "
                "later; --engine local does not need it"
            ) from failure
    hush(session.sparkContext)
    if not is_registered(session.sparkContext):
        close_session(session)
        raise ConfigError(f"Spark did not start on --master {master}: {NO_ANSWER}")
    return session


def hush(context: Any) -> None:
    """Silence threads that talk to the JVM, for when it exits before this process.

    A signal to the process group ends the JVM first. The thread that receives accumulators would
    print a stack trace, and py4j would log one with the root logger; it raises the error, too.
    """
    context._accumulatorServer.handle_error = lambda request, address: None
    logging.getLogger().addFilter(is_not_of_py4j)


def is_not_of_py4j(record: logging.LogRecord) -> bool:
    """Return whether a record of the root logger was logged by others than py4j."""
    return record.module not in ("java_gateway", "clientserver")


def close_session(session: SparkSession) -> None:
    """Stop a session, and wait for the end of calls that an interruption has left running.

    In a thread of its own, as this one may have been interrupted in the middle of a call. A thread
    that is inside of Arrow when the interpreter shuts down would abort the process.
    """
    deadline_s = monotonic() + STOP_S
    stopping = threading.Thread(target=_stop, args=(session,), daemon=True)
    with signals_kept():
        stopping.start()
        stopping.join(STOP_S)
        for thread in threading.enumerate():
            if isinstance(thread, _CallApart):
                thread.join(max(0.0, deadline_s - monotonic()))


def _stop(session: SparkSession) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with suppress(Exception):  # a signal to the process group may have ended the JVM
            session.stop()


def is_registered(context: Any) -> bool:
    """Return whether the master has registered the application.

    If the master does not respond, Spark stops the application a minute later, well after it seemed
    to have started; only the id shows at once that the master has assigned none.
    """
    application = context._jsc.sc()
    own_id = str(application.applicationId()).startswith("spark-application-")
    return not application.isStopped() and not (context.master.startswith(SCHEME) and own_id)


def why_not_started(failure: Exception) -> str:
    """Return why Spark did not start; without a master it only reports a stopped context."""
    text = reason(failure)
    return NO_ANSWER if "stopped SparkContext" in text else text


def reason(failure: Exception) -> str:
    """Return the JVM's message, without its stack trace."""
    cause = getattr(failure, "java_exception", None)
    text = str(cause if cause is not None else failure).strip()
    return text.splitlines()[0] if text else type(failure).__name__


def apart(work: Callable[[], Result]) -> Result:
    """Make a call in a thread of its own, and return its result.

    No signal interrupts it there, PySpark keeps its hands off the Ctrl-C handler, and an
    interrupted wait does not wait for the end of a job.
    """
    done: Future[Result] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as failure:  # noqa: BLE001  # raised again in the caller
            done.set_exception(failure)

    _CallApart(target=run, daemon=True).start()
    return done.result()


class _CallApart(threading.Thread):
    """Makes one call of `apart`."""


@contextmanager
def signals_kept() -> Iterator[None]:
    """Defer Ctrl-C and SIGTERM while Spark starts or stops, and keep their handlers.

    A start that is interrupted leaves a JVM behind that never exits. A second signal is not
    deferred: the user does not want to wait.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # signals arrive in the main thread only
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
def _stderr_captured() -> Iterator[Callable[[], str]]:
    """Redirect stderr, which the JVM inherits, to a file."""
    sys.stderr.flush()
    kept = os.dup(2)
    with tempfile.TemporaryFile() as aside:

        def output() -> str:
            aside.seek(0)
            return aside.read().decode(errors="replace")

        os.dup2(aside.fileno(), 2)
        try:
            yield output
        finally:
            os.dup2(kept, 2)
            os.close(kept)

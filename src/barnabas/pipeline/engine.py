"""Spark for a pipeline: a driver in a JVM of ours, and a Connect session to it.

Declarative Pipelines are available only through Spark Connect. The server runs inside the driver,
on a port of this machine that the system chooses, behind a token. All output of the JVM and its
workers is written to a file: the important part of it is returned as errors and progress.

One engine at a time, as PySpark has one JVM per process. A JVM of earlier sessions, which can no
longer be configured, is set aside meanwhile: the next session after the engine uses it again.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import uuid
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from barnabas.pipeline.errors import PipelineError
from barnabas.spark.session import (
    NO_ANSWER,
    REDACTION,
    apart,
    check_master,
    hush,
    is_registered,
    signals_kept,
    why_not_started,
)

if TYPE_CHECKING:
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

NEEDED = ("pyspark", "pyarrow", "pandas", "grpc", "grpc_status", "google.rpc", "zstandard", "yaml")
INSTALL = "pip install 'barnabas[spark]'"
_CONNECT = "org.apache.spark.sql.connect.service.SparkConnectService$"
_ASK_S, _END_S = 4.0, 4.0

DEFAULTS = {
    "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
    # One session needs no isolation, for which Spark would start its Python processes twice.
    "spark.sql.artifact.isolation.enabled": "false",
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.connect.grpc.binding.port": "0",
    "spark.sql.connect.serverStacktrace.enabled": "false",
    "spark.ui.enabled": "false",
    **REDACTION,
    "spark.ui.showConsoleProgress": "false",
}


def missing() -> str | None:
    """Return what must be installed before Spark can run; None: nothing."""
    lacking = [name for name in NEEDED if not _is_there(name)]
    if lacking:
        return f"pipelines need Spark, but {', '.join(lacking)} is missing: {INSTALL}"
    home = os.environ.get("JAVA_HOME")
    if home is not None and not (Path(home) / "bin" / "java").exists():
        return f"JAVA_HOME={home}: has no bin/java; Spark needs Java 17 or later"
    if home is None and shutil.which("java") is None:
        return "Spark needs Java 17 or later, but there is no java on the PATH: install a JDK"
    return None


def _is_there(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False


@contextmanager
def connect_mode() -> Iterator[None]:
    """Make `pyspark.sql.functions` create Connect columns, which pipelines need."""
    name = "SPARK_CONNECT_MODE_ENABLED"
    before = os.environ.get(name)
    os.environ[name] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


class Engine:
    """A driver and a session, from `start` to `stop`."""

    def __init__(self, master: str, configuration: Mapping[str, str], log: Path) -> None:
        self._master = master
        self._configuration = dict(configuration)
        self.log = log
        self._environment: dict[str, str | None] = {}
        self._context: SparkContext | None = None
        self._gateway: Any = None
        self._aside: tuple[Any, Any] | None = None
        self._session: SparkSession | None = None

    @property
    def session(self) -> SparkSession:
        """The session; the engine must be started."""
        assert self._session is not None
        return self._session

    def start(self) -> None:
        """Start the JVM and connect to it."""
        lacking = missing()
        if lacking is not None:
            raise PipelineError(lacking)
        check_master(self._master)
        from pyspark import SparkConf, SparkContext

        if SparkContext._active_spark_context is not None:
            raise PipelineError("this process has a Spark session: stop it before a pipeline runs")
        self._prepare_environment()
        self._aside = _exchange_gateway((None, None))  # in its JVM the configuration would be
        conf = SparkConf(loadDefaults=False)
        given = {name: text for name, text in self._configuration.items() if _is_sparks(name)}
        conf.setAll(list({**DEFAULTS, **given, "spark.master": self._master}.items()))
        conf.setAppName(given.get("spark.app.name", "barnabas pipeline"))
        self.log.parent.mkdir(parents=True, exist_ok=True)
        try:
            with self.log.open("ab") as output, signals_kept():
                context = apart(lambda: self._launch(conf, output))
            hush(context)
            if not is_registered(context):
                raise PipelineError(NO_ANSWER)
            self._session = self._connect(context)
        except Exception as failure:
            why = why_not_started(failure)  # needs the JVM
            self.stop()
            raise PipelineError(
                f"Spark did not start on --master {self._master}: {why}; see {self.log}"
            ) from failure

    def stop(self) -> None:
        """Close the session and end the JVM.

        Spark gets a few seconds to stop: a busy one may not respond in time. The next run repeats
        what was in progress.
        """
        with signals_kept():
            self._stop()

    def _stop(self) -> None:
        session, self._session = self._session, None
        context, self._context = self._context, None
        gateway, self._gateway = self._gateway, None
        asking = threading.Thread(target=_ask_to_stop, args=(session, context), daemon=True)
        asking.start()
        asking.join(_ASK_S)
        if gateway is not None:
            _end(gateway.proc)
            if session is not None:
                # Pending calls would be retried repeatedly, and keep this process alive.
                connection: Any = session
                connection.client._channel.close()
            with suppress(Exception):  # the server may be gone
                gateway.shutdown()
        if self._aside is not None:
            _exchange_gateway(self._aside)
            self._aside = None
        for name, text in self._environment.items():
            if text is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = text
        self._environment.clear()

    def _launch(self, conf: SparkConf, output: IO[bytes]) -> SparkContext:
        from pyspark import SparkContext, java_gateway

        launch: Any = java_gateway.launch_gateway  # has no types
        self._gateway = launch(conf, {"stdout": output, "stderr": output})
        self._context = SparkContext(conf=conf, gateway=self._gateway)
        return self._context

    def _prepare_environment(self) -> None:
        wanted: dict[str, str | None] = {
            # The workers run what this process runs, unless the user chose another.
            "PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON", sys.executable),
            "SPARK_CONNECT_AUTHENTICATE_TOKEN": str(uuid.uuid4()),
            "SPARK_REMOTE": None,
            "SPARK_LOCAL_REMOTE": None,
            "SPARK_CONNECT_MODE_ENABLED": None,
        }
        self._environment = {name: os.environ.get(name) for name in wanted}
        for name, text in wanted.items():
            if text is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = text

    def _connect(self, context: SparkContext) -> SparkSession:
        from pyspark.sql.connect.session import SparkSession

        jvm: Any = context._jvm
        port = getattr(getattr(jvm, _CONNECT), "MODULE$").localPort()
        builder: Any = SparkSession.builder
        builder = builder.remote(f"sc://localhost:{port}")
        for name, text in self._configuration.items():
            if not _is_sparks(name):  # the driver has those already, and so the session
                builder = builder.config(name, text)
        session: Any = builder.create()
        return session  # type: ignore[no-any-return]


def _exchange_gateway(to: tuple[Any, Any]) -> tuple[Any, Any]:
    """Set the JVM that PySpark uses for the next session, and return the previous one."""
    from pyspark import SparkContext

    before = SparkContext._gateway, SparkContext._jvm
    SparkContext._gateway, SparkContext._jvm = to
    return before


def _ask_to_stop(session: SparkSession | None, context: SparkContext | None) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # from listeners and connections that end with it
        for each in (session, context):
            if each is not None:
                with suppress(Exception):  # the JVM is ended next in any case
                    each.stop()


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdin is not None:
        process.stdin.close()


def _is_sparks(name: str) -> bool:
    return name.startswith("spark.")

"""Spark in this process, for tests: one JVM for all modules, which is up sooner than others.

A module has a session of its own, so that nothing of it is left for the next: the JVM behind it,
which is what takes long, stays until the last test of this process is over.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"
"""For a JVM that has little to do and is short of cores: half the time, less than half the CPU."""

DEADLINE_S = 300.0
TOO_LATE = "Python worker failed to connect back"
"""Spark gives a new Python process ten seconds, whatever the machine is doing."""

ATTEMPTS = 5


@pytest.fixture(scope="session", autouse=True)
def quick_java() -> Iterator[None]:
    """Have every JVM that Spark starts be quick, also those of commands."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("SPARK_SUBMIT_OPTS", "SPARK_LAUNCHER_OPTS", "SPARK_DAEMON_JAVA_OPTS"):
            patch.setenv(name, QUICK_JAVA)
        yield


@pytest.fixture(scope="session", autouse=True)
def worker_code(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder of modules that workers can import, whichever test starts the JVM."""
    folder = tmp_path_factory.mktemp("code")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
        yield folder


@pytest.fixture(scope="session")
def jvm() -> Iterator[None]:
    """The JVM of all sessions; whoever asks for it has it ended."""
    from pyspark import SparkContext

    yield
    gateway: Any = SparkContext._gateway
    if gateway is not None:
        SparkContext._gateway = SparkContext._jvm = None
        gateway.shutdown()
        gateway.proc.stdin.close()  # which tells it that it is alone
        gateway.proc.wait(DEADLINE_S)


@contextmanager
def local_session(warehouse: Path, **options: str) -> Iterator[SparkSession]:
    """A session on this machine, with options of Spark by their names after `spark.`."""
    from pyspark.sql import SparkSession

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        builder = (
            SparkSession.builder.master("local[2]")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.sql.session.timeZone", "UTC")
            .config("spark.sql.warehouse.dir", str(warehouse))
        )
        for name, value in options.items():
            builder = builder.config(f"spark.{name}", value)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        try:
            yield session
        finally:
            session.stop()


@pytest.fixture(scope="module")
def spark(jvm: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with local_session(tmp_path_factory.mktemp("warehouse")) as session:
        yield session


def batch_ends(checkpoint: Path) -> list[int]:
    """Return how many offsets of its one source a stream had read with each batch.

    By its checkpoint: the progress of a query is forgotten where it is started again.
    """
    files = sorted((checkpoint / "offsets").glob("[0-9]*"), key=lambda each: int(each.name))
    ends = []
    for file in files:
        topics = json.loads(file.read_text().splitlines()[2])["topics"]
        ends.append(sum(sum(topic["offsets"].values()) for topic in topics.values()))
    return ends


def finished(start: Callable[[], Any]) -> Any:
    """Run a stream to its end, and return its query; start anew where a worker came too late."""
    from pyspark.errors import StreamingQueryException

    for attempt in range(ATTEMPTS):
        query = start()
        try:
            assert query.awaitTermination(DEADLINE_S)
        except StreamingQueryException as failure:
            if attempt == ATTEMPTS - 1 or TOO_LATE not in str(failure):
                raise
            continue
        break
    return query

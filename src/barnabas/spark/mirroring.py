"""A mirror's errands on Spark: one task each, wherever Spark has room.

Spark starts a task anew whose executor is lost; what that means for records is the errand's own
matter (see `barnabas.mirror.errands`), so the driver keeps no state and needs no checkpoint.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from barnabas.mirror.errands import Errand, Outcome, run_errand
from barnabas.mirror.ground import Engine
from barnabas.mirror.rounds import Rounds
from barnabas.model.errors import BarnabasError, ConfigError, RetriableError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONF = {
    "spark.ui.enabled": "false",
    "spark.log.level": "OFF",
    # A second copy of a task that is slow would only shut the first one out.
    "spark.speculation": "false",
}


class TasksLostError(RetriableError):
    """Spark has given a task up: its executors died, or could not be reached."""


class TaskBrokeError(BarnabasError):
    """A task raised what it should not have."""


def open_session(master: str, conf: Mapping[str, str]) -> SparkSession:
    """Start Spark for a mirror; raise ConfigError if that cannot be done."""
    try:
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError as failure:
        raise ConfigError(
            "--engine spark: PySpark is not installed; pip install 'barnabas[spark]'"
        ) from failure
    # Tasks must find this package: unless somebody knows better, where this process has it.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master).appName("barnabas mirror")
    for name, value in {**CONF, **conf}.items():
        builder = builder.config(name, value)
    try:
        return builder.getOrCreate()
    except PySparkException as failure:
        raise ConfigError(
            f"--engine spark: Spark does not start; is Java 17 or later installed? ({failure})"
        ) from failure
    except Exception as failure:
        # Py4J wraps what the JVM says, such as a master that is none.
        raise ConfigError(f"--master {master}: {_reason(failure)}") from failure


class SparkRunner:
    """Runs errands as tasks of a Spark application."""

    def __init__(self, spark: SparkSession) -> None:
        self._context = spark.sparkContext

    def capacity(self) -> int:
        """Return how many cores Spark has."""
        return int(self._context.defaultParallelism)

    async def run(self, errands: Sequence[Errand]) -> list[Outcome]:
        """Run a job with a task for each errand."""
        return await asyncio.to_thread(self._run, errands)

    def _run(self, errands: Sequence[Errand]) -> list[Outcome]:
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]
        from pyspark.errors import PySparkException

        try:
            return self._context.parallelize(errands, len(errands)).map(run_errand).collect()
        except (Py4JError, PySparkException) as failure:
            text = str(failure)
            if "Traceback (most recent call last)" in text:
                raise TaskBrokeError(f"a task failed: {_raised(text)}") from failure
            raise TasksLostError(f"Spark has lost a task: {_reason(failure)}") from failure


def spark_engine(spark: SparkSession) -> Engine:
    """Return the engine that copies on Spark."""
    runner = SparkRunner(spark)
    return Engine(lambda ground: Rounds(ground, runner), shared=True)


def _raised(text: str) -> str:
    """Return the last line of a task's traceback, which says what was raised."""
    lines = text[text.index("Traceback (most recent call last)") :].splitlines()
    raised = [line for line in lines if line and not line.startswith((" ", "\t", "Traceback"))]
    return raised[0] if raised else lines[0]


def _reason(failure: Exception) -> str:
    """Return what the JVM says, without its stack."""
    cause = getattr(failure, "java_exception", None)
    text = str(cause if cause is not None else failure).strip()
    return text.splitlines()[0] if text else type(failure).__name__

"""Runs the tasks of a mirror as Spark tasks.

Spark restarts a task whose executor is lost. A task that is run twice copies nothing twice (see
`barnabas.mirror.tasks`), so the driver keeps no state and needs no checkpoint directory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from barnabas.mirror.engine import Engine
from barnabas.mirror.rounds import task_engine
from barnabas.mirror.tasks import CopyResult, CopyTask, run_task
from barnabas.model.errors import BarnabasError, RetriableError
from barnabas.spark.session import close_session, open_session, reason

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A speculative copy of a slow task would only fence the first one.
CONF = {"spark.speculation": "false"}


class TasksLostError(RetriableError):
    """Spark has given up a task: its executors died or were unreachable."""


class SparkGoneError(BarnabasError):
    """Spark itself has ended: its JVM was killed, or the master removed the application."""


class TaskCrashedError(BarnabasError):
    """A task crashed with an unexpected exception."""


@contextmanager
def spark_engine(master: str, conf: Mapping[str, str]) -> Iterator[Engine]:
    """Start Spark, and yield an engine that copies on it; raise ConfigError if that fails."""
    spark = open_session(master, "barnabas mirror", {**CONF, **conf})
    try:
        yield task_engine(SparkRunner(spark))
    finally:
        close_session(spark)


class SparkRunner:
    """Runs tasks as one Spark job per round."""

    def __init__(self, spark: SparkSession) -> None:
        self._context = spark.sparkContext

    def capacity(self) -> int:
        """Return how many cores Spark has."""
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]

        try:
            return int(self._context.defaultParallelism)
        except (Py4JError, OSError) as failure:
            raise SparkGoneError(f"Spark has ended: {reason(failure)}") from failure

    async def run(self, tasks: Sequence[CopyTask]) -> list[CopyResult]:
        """Run a job that has these tasks."""
        return await asyncio.to_thread(self._run, tasks)

    def cancel(self) -> None:
        """Cancel the job that is running."""
        with suppress(Exception):  # Spark may have ended
            self._context.cancelAllJobs()

    def _run(self, tasks: Sequence[CopyTask]) -> list[CopyResult]:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        try:
            return self._context.parallelize(tasks, len(tasks)).map(run_task).collect()
        except (Py4JError, PySparkException, OSError, EOFError) as failure:
            text = str(failure)
            if "Traceback (most recent call last)" in text:
                raise TaskCrashedError(f"a task crashed: {_raised(text)}") from failure
            raise TasksLostError(f"Spark has lost a task: {reason(failure)}") from failure


def _raised(text: str) -> str:
    """Return the line of a task's traceback that names the exception."""
    lines = text[text.index("Traceback (most recent call last)") :].splitlines()
    raised = [line for line in lines if line and not line.startswith((" ", "\t", "Traceback"))]
    return raised[0] if raised else lines[0]

"""A mirror's errands on Spark: one task each, wherever Spark has room.

Spark starts a task anew whose executor is lost; what that means for records is the errand's own
matter (see `barnabas.mirror.errands`), so the driver keeps no state and needs no checkpoint.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from barnabas.mirror.errands import Errand, Outcome, run_errand
from barnabas.mirror.ground import Engine
from barnabas.mirror.rounds import Rounds
from barnabas.model.errors import BarnabasError, RetriableError
from barnabas.spark.session import close_session, open_session, reason

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A second copy of a task that is slow would only shut the first one out.
CONF = {"spark.speculation": "false"}


class TasksLostError(RetriableError):
    """Spark has given a task up: its executors died, or could not be reached."""


class SparkGoneError(BarnabasError):
    """Spark itself has ended: its JVM was killed, or the master has given the application up."""


class TaskBrokeError(BarnabasError):
    """A task raised what it should not have."""


@contextmanager
def spark_engine(master: str, conf: Mapping[str, str]) -> Iterator[Engine]:
    """Start Spark, and give the engine that copies on it; raise ConfigError if that cannot be."""
    spark = open_session(master, "barnabas mirror", {**CONF, **conf})
    try:
        runner = SparkRunner(spark)
        yield Engine(lambda ground: Rounds(ground, runner), shared=True)
    finally:
        close_session(spark)


class SparkRunner:
    """Runs errands as tasks of a Spark application."""

    def __init__(self, spark: SparkSession) -> None:
        self._context = spark.sparkContext

    def capacity(self) -> int:
        """Return how many cores Spark has."""
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]

        try:
            return int(self._context.defaultParallelism)
        except (Py4JError, OSError) as failure:
            raise SparkGoneError(f"Spark has ended: {reason(failure)}") from failure

    async def run(self, errands: Sequence[Errand]) -> list[Outcome]:
        """Run a job with a task for each errand."""
        return await asyncio.to_thread(self._run, errands)

    def cancel(self) -> None:
        """Have Spark give up what it runs."""
        with suppress(Exception):  # a Spark that has ended runs nothing
            self._context.cancelAllJobs()

    def _run(self, errands: Sequence[Errand]) -> list[Outcome]:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        try:
            return self._context.parallelize(errands, len(errands)).map(run_errand).collect()
        except (Py4JError, PySparkException, OSError, EOFError) as failure:
            text = str(failure)
            if "Traceback (most recent call last)" in text:
                raise TaskBrokeError(f"a task failed: {_raised(text)}") from failure
            raise TasksLostError(f"Spark has lost a task: {reason(failure)}") from failure


def _raised(text: str) -> str:
    """Return the last line of a task's traceback, which says what was raised."""
    lines = text[text.index("Traceback (most recent call last)") :].splitlines()
    raised = [line for line in lines if line and not line.startswith((" ", "\t", "Traceback"))]
    return raised[0] if raised else lines[0]

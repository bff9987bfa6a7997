"""One update of a pipeline: the definitions become a graph on Spark's side, which runs it once.

Spark's pipelines consist of updates: each streaming flow reads what exists when it starts
(AvailableNow), then ends. The next update continues from the checkpoints.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from barnabas.pipeline.definitions import define
from barnabas.pipeline.engine import connect_mode
from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.explaining import explain
from barnabas.pipeline.progress import short
from barnabas.pipeline.spec import Spec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Notify = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Refresh:
    """What is recomputed, from the beginning of its sources: some, all, or (default) nothing."""

    names: Sequence[str] = ()
    everything: bool = False


def update(
    spark: SparkSession,
    spec: Spec,
    notify: Notify,
    *,
    refresh: Refresh | None = None,
    dry: bool = False,
) -> None:
    """Run a pipeline once (dry: only validate it), and yield Spark's events."""
    from pyspark.errors import PySparkException
    from pyspark.pipelines.spark_connect_graph_element_registry import (
        SparkConnectGraphElementRegistry,
    )
    from pyspark.pipelines.spark_connect_pipeline import create_dataflow_graph, start_run

    refresh = refresh or Refresh()
    said: list[str] = []
    try:
        with connect_mode():
            settings = _settings(spark, spec)
            graph = create_dataflow_graph(spark, spec.catalog, spec.database, settings)
            try:
                define(spec, SparkConnectGraphElementRegistry(spark, graph), spark, graph)
                names, everything = list(refresh.names), refresh.everything
                for result in start_run(spark, graph, names, everything, [], dry, spec.storage):
                    if "pipeline_event_result" in result:
                        text = result["pipeline_event_result"].event.message
                        said.append(text)
                        notify(text)
            finally:
                with suppress(PySparkException):  # if Spark is gone, so is the graph
                    _drop(spark, graph)
    except PySparkException as failure:
        raise PipelineError(_why(failure, said)) from failure


def _settings(spark: SparkSession, spec: Spec) -> dict[str, str]:
    """Return the configuration for flows; Spark rejects what is only for starting a driver."""
    return {
        name: text
        for name, text in spec.configuration.items()
        if not name.startswith("spark.") or spark.conf.isModifiable(name)
    }


def _why(failure: BaseException, said: Sequence[str]) -> str:
    """Return the cause of a failed update: the flow that failed says more than the update."""
    failed = [text for text in said if "Error:" in text and "upstream failure" not in text]
    if failed:
        head, _, rest = failed[-1].partition("Error:")
        named = re.search(r"flow:? '?([\w.`]+)", head, re.I)
        return explain(rest) if named is None else f"flow {short(named[1])}: {explain(rest)}"
    return explain(str(failure))


def _drop(spark: Any, graph: str) -> None:
    """Drop a graph in Spark; each update creates one."""
    import pyspark.sql.connect.proto as pb2

    command = pb2.Command()
    command.pipeline_command.drop_dataflow_graph.dataflow_graph_id = graph
    spark.client.execute_command(command)

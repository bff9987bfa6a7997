"""The definitions of a project, handed to a registry: Python files are run, SQL is passed on.

An exception of a file becomes one line that names the file and the line.
"""

from __future__ import annotations

import importlib.util
import os
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from barnabas.model.errors import BarnabasError
from barnabas.pipeline.errors import NeedsSparkError, PipelineError
from barnabas.pipeline.explaining import explain
from barnabas.pipeline.spec import Spec

if TYPE_CHECKING:
    from pyspark.pipelines.graph_element_registry import GraphElementRegistry
    from pyspark.sql import SparkSession


def define(spec: Spec, registry: GraphElementRegistry, spark: SparkSession, graph: str) -> None:
    """Register all that the files of a project define."""
    from pyspark.pipelines.graph_element_registry import graph_element_registration_context

    with _inside(spec.directory), graph_element_registration_context(registry):
        for file in spec.files:
            with _told(spec, file):
                if file.suffix == ".py":
                    _run(file, spark, graph)
                else:
                    registry.register_sql(file.read_text("utf-8"), file.relative_to(spec.directory))


def _run(file: Path, spark: SparkSession, graph: str) -> None:
    from pyspark.pipelines.add_pipeline_analysis_context import add_pipeline_analysis_context
    from pyspark.pipelines.block_session_mutations import block_session_mutations

    found = importlib.util.spec_from_file_location(file.stem, file)
    assert found is not None
    assert found.loader is not None
    module: Any = importlib.util.module_from_spec(found)
    module.spark = spark
    with (
        add_pipeline_analysis_context(spark=spark, dataflow_graph_id=graph, flow_name=None),
        block_session_mutations(),
    ):
        found.loader.exec_module(module)


@contextmanager
def _inside(directory: Path) -> Iterator[None]:
    """Run with the project as the current folder, as definitions may open files in it."""
    before = Path.cwd()
    os.chdir(directory)
    try:
        yield
    finally:
        os.chdir(before)


@contextmanager
def _told(spec: Spec, file: Path) -> Iterator[None]:
    name = file.relative_to(spec.directory)
    try:
        yield
    except (NeedsSparkError, PipelineError):
        raise
    except SyntaxError as failure:
        raise PipelineError(f"{name}:{failure.lineno}: {failure.msg}") from failure
    except Exception as failure:  # user code may raise anything
        frames = traceback.extract_tb(failure.__traceback__)
        lines = [frame.lineno for frame in frames if Path(frame.filename) == file]
        where = f"{name}:{lines[-1]}" if lines else str(name)
        text = str(failure)
        if "[" not in text and not isinstance(failure, BarnabasError):
            text = f"{type(failure).__name__}: {text}"
        raise PipelineError(f"{where}: {explain(text)}") from failure

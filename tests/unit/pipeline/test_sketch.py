"""Definitions that are read without Spark."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

pytest.importorskip("grpc", reason="pip install 'barnabas[spark]'")
pytest.importorskip("pyspark", reason="pip install 'barnabas[spark]'")

from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.sketch import Sketch, sketch
from barnabas.pipeline.spec import read_spec
from barnabas.pipeline.templates import Project

pytestmark = pytest.mark.filterwarnings("default")  # what PySpark warns of is its own

HEAD = "from pyspark import pipelines as dp\nfrom pyspark.sql import functions as F\n"


def drawn(directory: Path, text: str) -> Sketch:
    Project(directory, "b:1").write()
    (directory / "transformations" / "clicks.py").write_text(HEAD + text)
    return sketch(read_spec(directory))


def test_a_new_project_is_understood(tmp_path: Path) -> None:
    Project(tmp_path, "b:1").write()
    found = sketch(read_spec(tmp_path))
    assert [flow.name for flow in found.flows] == [
        "page_counts_to_topic",
        "page_counts_to_files",
        "bad_clicks",
    ]
    assert [(sink.name, sink.format) for sink in found.sinks] == [
        ("page_counts_topic", "barnabas"),
        ("page_counts_files", "parquet"),
        ("dead_letters", "barnabas"),
    ]
    assert len(found.sources) == 3
    for source in found.sources:
        assert source.streaming
        assert source.options["subscribe"] == "clicks"
        assert source.where.startswith("transformations/clicks.py:")
    groups = {source.options["offsetGroup"] for source in found.sources}
    assert groups == {f"{tmp_path.name}.{flow.name}" for flow in found.flows}
    assert "SPARK_CONNECT_MODE_ENABLED" not in os.environ


def test_a_flow_reads_what_its_views_read(tmp_path: Path) -> None:
    text = """
dp.create_sink("s", "barnabas", {})

@dp.temporary_view
def one():
    return spark.readStream.format("barnabas").option("subscribe", "t").load()

@dp.temporary_view
def two():
    return spark.readStream.table("one").where("value IS NOT NULL")

@dp.append_flow(target="s")
def three():
    return spark.readStream.table("two")
"""
    found = drawn(tmp_path, text)
    [three] = [flow for flow in found.flows if flow.name == "three"]
    assert [source.options["subscribe"] for source in found.sources_of(three)] == ["t"]


def test_a_flow_that_reads_a_table_reads_no_topic(tmp_path: Path) -> None:
    text = """
dp.create_sink("s", "barnabas", {})

@dp.table
def kept():
    return spark.readStream.format("barnabas").option("subscribe", "t").load()

@dp.append_flow(target="s")
def sent():
    return spark.readStream.table("kept")
"""
    found = drawn(tmp_path, text)
    by_name = {flow.name: flow for flow in found.flows}
    assert len(found.sources_of(by_name["kept"])) == 1
    assert found.sources_of(by_name["sent"]) == []


@pytest.mark.parametrize(
    ("text", "there"),
    [
        ("@dp.temporary_view\ndef v():\n    return spark.range(1)", False),
        ("@dp.table\ndef t():\n    return spark.readStream.table('x')", True),
        ("@dp.materialized_view\ndef m():\n    return spark.range(1)", True),
        ("dp.create_streaming_table('t')", True),
        ("spark.range(1).collect()", True),  # nobody knows what would have come
    ],
)
def test_tables_are_noticed(tmp_path: Path, text: str, there: bool) -> None:
    assert drawn(tmp_path, text).has_tables is there


def test_tables_in_sql_are_noticed(tmp_path: Path) -> None:
    project = Project(tmp_path, "b:1", language="sql")
    project.write()
    assert not sketch(read_spec(tmp_path)).has_tables
    (tmp_path / "transformations" / "more.sql").write_text(
        "create or refresh streaming  table t as select * from stream(x);"
    )
    assert sketch(read_spec(tmp_path)).has_tables


def test_what_needs_spark_is_left_to_spark(tmp_path: Path) -> None:
    text = """
@dp.table
def asks():
    frame = spark.readStream.format("barnabas").load()
    return frame.select(*frame.columns)

@dp.table
def does_not_ask():
    return spark.readStream.format("barnabas").option("subscribe", "t").load()
"""
    assert [flow.name for flow in drawn(tmp_path, text).flows] == ["does_not_ask"]


def test_what_asks_spark_at_once_ends_the_sketch_without_an_error(tmp_path: Path) -> None:
    text = """
dp.create_sink("s", "barnabas", {"topic": "t"})
COLUMNS = spark.range(1).columns
dp.create_sink("later", "barnabas", {})
"""
    assert [sink.name for sink in drawn(tmp_path, text).sinks] == ["s"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = = 1", r"transformations/clicks.py:3: invalid syntax"),
        ("\n1 / 0", r"transformations/clicks.py:4: ZeroDivisionError: division by zero"),
        ("import no_such_thing", r"transformations/clicks.py:3: ModuleNotFoundError: No module"),
        ("@dp.table\ndef f():\n    return nothing", r"transformations/clicks.py:5: NameError"),
        ("spark.conf.set('a', 'b')", r"transformations/clicks.py:3: .*conf"),
    ],
)
def test_what_a_definition_raises_is_told_with_its_line(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(PipelineError, match=message) as failure:
        drawn(tmp_path, text)
    assert "\n" not in str(failure.value)

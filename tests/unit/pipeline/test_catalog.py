"""Catalogs that pipelines get for their tables."""

from __future__ import annotations

from pathlib import Path

from barnabas.pipeline.catalog import with_catalog
from barnabas.pipeline.sketch import Sketch
from barnabas.pipeline.spec import Spec

JAVA = "spark.driver.extraJavaOptions"


def settings(tables: bool, storage: str = "file:///p/storage", **given: str) -> dict[str, str]:
    configuration = {name.replace("_", "."): text for name, text in given.items()}
    spec = Spec(Path("/p/spark-pipeline.yml"), "p", storage, None, None, configuration, ())
    return with_catalog(spec, Sketch(has_tables=tables))


def test_tables_are_known_to_the_next_run() -> None:
    found = settings(True, spark_app_name="mine")
    assert found["spark.sql.catalogImplementation"] == "hive"
    assert found["spark.sql.warehouse.dir"] == "file:///p/storage/tables"
    place = found["spark.hadoop.javax.jdo.option.ConnectionURL"]
    assert place == "jdbc:derby:;databaseName=/p/storage/catalog;create=true"
    assert found["spark.app.name"] == "mine"


def test_options_of_java_are_kept() -> None:
    found = settings(True, **{JAVA: "-Xss2m"})
    assert found[JAVA].startswith("-Xss2m -Dderby")
    assert JAVA not in settings(False)


def test_a_project_without_tables_only_gets_a_folder_of_its_own() -> None:
    assert settings(False) == {"spark.sql.warehouse.dir": "file:///p/storage/tables"}
    mine = settings(False, **{"spark.sql.warehouse.dir": "/mine"})
    assert mine == {"spark.sql.warehouse.dir": "/mine"}


def test_a_catalog_of_the_users_own_is_left_alone() -> None:
    found = settings(True, **{"spark.sql.catalog.mine": "org.example.Catalog"})
    assert "spark.sql.catalogImplementation" not in found
    assert settings(True, storage="s3://bucket/storage") == {}

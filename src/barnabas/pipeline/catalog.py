"""The catalog of a pipeline's tables, which outlives the run.

Spark's own catalog is lost when a run ends; checkpoints and the files of tables are not, and the
next run would fail on tables that it does not know. So a project with streaming tables
or materialized views, and with storage on this machine, gets a catalog there:

    storage/catalog    Hive's metastore in a Derby database, which one run at a time may open
    storage/tables     the files of tables

A catalog that the user configures is used as it is. Projects without tables need none: a
metastore takes seconds to start.
"""

from __future__ import annotations

from barnabas.pipeline.sketch import Sketch
from barnabas.pipeline.spec import Spec

_OWN = ("spark.sql.catalog", "spark.hadoop.javax.jdo.", "spark.hadoop.hive.metastore.")
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"


def with_catalog(spec: Spec, sketch: Sketch) -> dict[str, str]:
    """Return a project's configuration, with a catalog for its tables if it needs one."""
    given = dict(spec.configuration)
    storage = spec.local_storage
    if storage is None:
        return given
    # Even a catalog without tables creates a folder; Spark's default is the current directory.
    made = {"spark.sql.warehouse.dir": f"file://{storage / 'tables'}"}
    if not sketch.has_tables or any(name.startswith(_OWN) for name in given):
        return made | given
    url = f"jdbc:derby:;databaseName={storage / 'catalog'};create=true"
    quiet = "-Dderby.stream.error.file=/dev/null"  # else it creates a file there, too
    return {
        **made,
        "spark.sql.catalogImplementation": "hive",
        "spark.hadoop.javax.jdo.option.ConnectionURL": url,
        **given,
        _JAVA_OPTIONS: f"{given.get(_JAVA_OPTIONS, '')} {quiet}".strip(),
    }

"""The project that `init` writes: clicks of a topic, counted per page, to a topic and to files.

Three flows. Two count, into a topic and into Parquet files; the third sends records that cannot be
parsed to a topic of their own, with the reason, or (`bad_records="fail"`) there are two, and such a
record fails the batch. Spark's SQL can neither read nor write what is not a table: there
`topics.py` has sources, sinks and the flows between, and `clicks.sql` what they compute.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from barnabas.pipeline.errors import PipelineError

Language = Literal["python", "sql"]
BadRecords = Literal["dead-letter", "fail"]


@dataclass(frozen=True, slots=True)
class Project:
    """The settings of a new project; the topics are those of its definitions."""

    directory: Path
    bootstrap: str
    language: Language = "python"
    bad_records: BadRecords = "dead-letter"
    source: str = "clicks"
    target: str = "page-counts"
    window: str = "1 minute"
    delay: str = "10 seconds"
    configuration: Mapping[str, str] = field(default_factory=dict)
    client_file: Path | None = None
    """A properties file with client options, which definitions read: they have no secrets."""

    @property
    def name(self) -> str:
        """The pipeline's name: that of its folder."""
        return re.sub(r"[^\w.-]", "-", self.directory.resolve().name) or "pipeline"

    @property
    def dead_letters(self) -> str:
        """The topic of records that cannot be parsed."""
        return f"{self.source}-dead-letters"

    @property
    def topics(self) -> tuple[str, ...]:
        """All topics of the project."""
        topics = (self.source, self.target)
        return topics if self.bad_records == "fail" else (*topics, self.dead_letters)

    def files(self) -> dict[str, str]:
        """Return the text of each file by its path in the project."""
        if self.language == "python":
            definitions = {"transformations/clicks.py": self._filled(_PYTHON)}
        else:
            definitions = {
                "transformations/topics.py": self._filled(_TOPICS),
                "transformations/clicks.sql": self._filled(_SQL),
            }
        return {"spark-pipeline.yml": self._filled(_SPEC), **definitions, ".gitignore": _IGNORED}

    def write(self) -> list[Path]:
        """Write the files; raise rather than replace one."""
        paths = {self.directory / path: text for path, text in self.files().items()}
        for path in paths:
            if path.exists():
                raise PipelineError(f"{path}: exists; choose another folder, or remove it first")
        for path, text in paths.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        return list(paths)

    def _filled(self, text: str) -> str:
        fails = self.bad_records == "fail"
        for name, part in _PARTS[self.language].items():
            text = text.replace(f"@{name}@", part[1 if fails else 0])
        root = self.directory.resolve()
        for name, value in {
            "NAME": self.name,
            "QUOTED": json.dumps(self.name),  # 2026 is not a string in YAML
            "STORAGE": json.dumps(f"file://{root / 'storage'}", ensure_ascii=False),
            "FILES": json.dumps(f"file://{root / 'files' / self.target}", ensure_ascii=False),
            "PATHLIB": "" if self.client_file is None else "from pathlib import Path\n\n",
            "PROPERTIES": "" if self.client_file is None else _PROPERTIES,
            "SERVERS": _SERVERS if self.client_file is None else _SECURED,
            "CLIENT": json.dumps(str(self.client_file), ensure_ascii=False),
            "BOOTSTRAP": json.dumps(self.bootstrap),
            "SOURCE": self.source,
            "TARGET": self.target,
            "DEAD": self.dead_letters,
            "WINDOW": self.window,
            "DELAY": self.delay,
            "MORE": "".join(
                f"  {name}: {json.dumps(text)}\n" for name, text in self.configuration.items()
            ),
        }.items():
            text = text.replace(f"@{name}@", value)
        return text


_IGNORED = "/storage/\n/files/\n__pycache__/\n"

_SPEC = """\
name: @QUOTED@
# Checkpoints: a run continues where the last one stopped.
storage: @STORAGE@
libraries:
  - glob:
      include: transformations/**
configuration:
  # Tasks of an aggregate; a checkpoint keeps the number that it began with.
  spark.sql.shuffle.partitions: "2"
  spark.sql.session.timeZone: UTC
@MORE@"""

_SERVERS = """\
SERVERS = {"kafka.bootstrap.servers": @BOOTSTRAP@}
"""

_SECURED = """\
CLIENT = read_properties(Path(@CLIENT@).read_text("utf-8"))
SERVERS = {f"kafka.{name}": value for name, value in CLIENT.items()}
SERVERS["kafka.bootstrap.servers"] = @BOOTSTRAP@
"""

_PROPERTIES = """
from barnabas.config.properties import read_properties
"""

_HEAD = """\
@SERVERS@SCHEMA = "user STRING, page STRING, at TIMESTAMP, took_ms INT"
"""

_SINKS = """\
dp.create_sink(
    "page_counts_topic", "barnabas", {**SERVERS, "topic": "@TARGET@", "exactlyOnce": "true"}
)
dp.create_sink("page_counts_files", "parquet", {"path": @FILES@})
@SINK@"""

_SINK = """\
dp.create_sink(
    "dead_letters", "barnabas", {**SERVERS, "topic": "@DEAD@", "exactlyOnce": "true"}
)
"""

_READER = """\
    return (
        spark.readStream.format("barnabas")
        .options(**SERVERS, subscribe="@SOURCE@", startingOffsets="earliest")
        .options(valueFormat="json", valueSchema=SCHEMA, includeRawValue="true")
        .options(offsetGroup=f"@NAME@.{flow}")
        .load()
    )
"""

_PYTHON = (
    '''\
"""Clicks, counted per page and window: from one topic to another and to Parquet files.

A flow is a query of its own: it reads the topic itself, and its lag is that of the consumer
group @NAME@.FLOW (barnabas groups describe @NAME@.FLOW).
"""

@PATHLIB@from pyspark import pipelines as dp
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
@PROPERTIES@
'''
    + _HEAD
    + '''

def clicks(flow: str) -> DataFrame:
    """The records of the topic, their values parsed as JSON; valueError has the reason if not."""
'''
    + _READER
    + '''

def page_counts(flow: str) -> DataFrame:
    """Clicks per page; a window is emitted once, @DELAY@ after its end."""
    return (
        clicks(flow)
        @GOOD@
        .select("value.*")
        .withWatermark("at", "@DELAY@")
        .groupBy(F.window("at", "@WINDOW@"), "page")
        .agg(F.count("*").alias("clicks"), F.max("took_ms").alias("slowest_ms"))
        .select(
            F.col("window.start").alias("window_start"),
            F.col("window.end").alias("window_end"),
            "page",
            "clicks",
            "slowest_ms",
        )
    )


'''
    + _SINKS
    + """

@dp.append_flow(target="page_counts_topic")
def page_counts_to_topic() -> DataFrame:
    return page_counts("page_counts_to_topic").select(
        F.col("page").alias("key"), F.to_json(F.struct("*")).alias("value")
    )


@dp.append_flow(target="page_counts_files")
def page_counts_to_files() -> DataFrame:
    return page_counts("page_counts_to_files")
@FLOW@"""
)

_PYTHON_FLOW = '''\


@dp.append_flow(target="dead_letters")
def bad_clicks() -> DataFrame:
    """What could not be parsed, unchanged, with the reason and the origin in headers."""
    headers = {
        "error": "valueError",
        "source.topic": "topic",
        "source.partition": "partition",
        "source.offset": "offset",
    }
    return (
        clicks("bad_clicks")
        .where("valueError IS NOT NULL")
        .select(
            "key",
            F.col("rawValue").alias("value"),
            F.array(
                *(
                    F.struct(
                        F.lit(name).alias("key"),
                        F.col(column).cast("string").cast("binary").alias("value"),
                    )
                    for name, column in headers.items()
                )
            ).alias("headers"),
        )
    )
'''

_FAILING = """SELECT if(valueError IS NULL, value, raise_error(concat(
           'cannot read offset ', offset, ' of ', topic, '-', partition, ': ', valueError
         ))) AS value
   """

_TOPICS = (
    '''\
"""Sources and sinks of the pipeline, which SQL cannot express, and the flows between them.

A flow FLOW reads the view clicks_for_FLOW; what it writes is the view FLOW_rows of clicks.sql.

A flow is a query of its own: it reads the topic itself, and its lag is that of the consumer
group @NAME@.FLOW (barnabas groups describe @NAME@.FLOW).
"""

@PATHLIB@from pyspark import pipelines as dp
from pyspark.sql import DataFrame
@PROPERTIES@
'''
    + _HEAD
    + '''FLOWS = @FLOWS@


def clicks(flow: str) -> DataFrame:
    """The records of the topic, their values parsed as JSON; valueError has the reason if not."""
'''
    + _READER
    + "\n\n"
    + _SINKS
    + """
for name, sink in FLOWS.items():
    dp.temporary_view(name=f"clicks_for_{name}")(lambda flow=name: clicks(flow))
    dp.append_flow(name=name, target=sink)(
        lambda flow=name: spark.readStream.table(f"{flow}_rows")
    )
"""
)

_COUNTS = """\
  SELECT window.start AS window_start, window.end AS window_end, page,
         count(*) AS clicks, max(took_ms) AS slowest_ms
  FROM (
    SELECT value.*
    FROM (@GOOD@ FROM STREAM(clicks_for_%s))
    WHERE value IS NOT NULL
  ) WATERMARK at DELAY OF INTERVAL @DELAY@
  GROUP BY window(at, '@WINDOW@'), page
"""

_SQL = (
    """\
-- Clicks, counted per page and window; a window is emitted once, @DELAY@ after its end.

CREATE TEMPORARY VIEW page_counts_to_topic_rows AS
SELECT page AS key, to_json(struct(*)) AS value
FROM (
"""
    + _COUNTS % "page_counts_to_topic"
    + """\
);

CREATE TEMPORARY VIEW page_counts_to_files_rows AS
SELECT *
FROM (
"""
    + _COUNTS % "page_counts_to_files"
    + """\
);
@FLOW@"""
)

_SQL_FLOW = """
-- What could not be parsed, unchanged, with the reason and the origin in headers.
CREATE TEMPORARY VIEW bad_clicks_rows AS
SELECT key, rawValue AS value,
       transform(
         array(
           struct('error' AS key, valueError AS value),
           struct('source.topic' AS key, topic AS value),
           struct('source.partition' AS key, CAST(partition AS STRING) AS value),
           struct('source.offset' AS key, CAST(offset AS STRING) AS value)
         ),
         header -> struct(header.key AS key, CAST(header.value AS BINARY) AS value)
       ) AS headers
FROM STREAM(clicks_for_bad_clicks)
WHERE valueError IS NOT NULL;
"""

_COUNTED = """\
    "page_counts_to_topic": "page_counts_topic",
    "page_counts_to_files": "page_counts_files",
"""

_PARTS: dict[str, dict[str, tuple[str, str]]] = {
    "python": {
        "SINK": (_SINK, ""),
        "FLOW": (_PYTHON_FLOW, ""),
        "GOOD": (
            '.where("value IS NOT NULL")',
            '.withColumn("value", F.expr("""\n'
            "            if(valueError IS NULL, value, raise_error(concat(\n"
            "                'cannot read offset ', offset, ' of ', topic, '-', partition, ': ',\n"
            "                valueError)))\n"
            '        """))\n'
            '        .where("value IS NOT NULL")',
        ),
    },
    "sql": {
        "SINK": (_SINK, ""),
        "FLOW": (_SQL_FLOW, ""),
        "GOOD": ("SELECT value", _FAILING),
        "FLOWS": (
            f'{{\n{_COUNTED}    "bad_clicks": "dead_letters",\n}}',
            f"{{\n{_COUNTED}}}",
        ),
    },
}

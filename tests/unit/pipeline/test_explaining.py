"""Spark's failures in a line."""

from __future__ import annotations

import pytest

from barnabas.pipeline.explaining import explain

STREAM = """\
[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: \
[PYTHON_STREAMING_DATA_SOURCE_RUNTIME_ERROR] Failed when Python streaming data source perform \
latestOffset: Traceback (most recent call last):
  File "/x/python_streaming_source_runner.py", line 1, in main
    latest_offset_func(reader, infile, outfile)
  File "/y/barnabas/spark/progress.py", line 2, in _check
    raise CheckpointError(
barnabas.spark.errors.CheckpointError: the checkpoint is of topic orders, the query reads \
subscribe=clicks: use another checkpointLocation

SQLSTATE: 38000
\tat org.apache.spark.sql.Dataset.x(Dataset.scala:1)
"""


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            STREAM,
            "CheckpointError: the checkpoint is of topic orders, the query reads subscribe=clicks: "
            "use another checkpointLocation",
        ),
        (
            "[TABLE_OR_VIEW_NOT_FOUND] The table or view `a` cannot be found.\nVerify it. "
            "SQLSTATE: 42P01; line 3 pos 5;\n'Project [*]\n+- 'UnresolvedRelation [a]\n",
            "The table or view `a` cannot be found. Verify it. (TABLE_OR_VIEW_NOT_FOUND)",
        ),
        (
            "[STREAM_FAILED] Query [id = 1] terminated with exception: [USER_RAISED_EXCEPTION] "
            "cannot read offset 3 of clicks-0: no SQLSTATE: P0001\n\tat org.apache",
            "cannot read offset 3 of clicks-0: no",
        ),
        ("plain words\nin two lines", "plain words in two lines"),
        (
            "Traceback (most recent call last):\n  File\nbarnabas.model.errors.ConfigError: "
            "subscribed: no such option; did you mean subscribe?\n",
            "subscribed: no such option; did you mean subscribe?",
        ),
    ],
)
def test_the_line_that_matters_is_found(text: str, line: str) -> None:
    assert explain(text) == line


def test_what_is_endless_is_cut() -> None:
    assert len(explain("x" * 5000)) == 601

"""What Spark queries write into the metadata of offsets is read again, and nothing else is."""

from __future__ import annotations

import json

import pytest

from barnabas.model.query_progress import TEXT_MAX, QueryProgress, read_progress


@pytest.mark.parametrize(
    "progress",
    [
        QueryProgress(17, 1_763_510_400_000),
        QueryProgress(0, 0, began_ms=5),
        QueryProgress(17, 1_763_510_400_000, query="4d1e-99", task=3),
        QueryProgress(17, 1, query="q", task=0),
    ],
)
def test_what_is_written_is_read(progress: QueryProgress) -> None:
    assert read_progress(progress.text()) == progress
    assert progress.is_sink == (progress.task is not None)


def test_a_long_name_is_cut_so_that_brokers_accept_it() -> None:
    progress = QueryProgress(1, 2, query="q" * 10_000, task=1)
    assert len(progress.text()) < TEXT_MAX
    assert read_progress(progress.text()) == QueryProgress(1, 2, query="q" * 200, task=1)


@pytest.mark.parametrize(
    "metadata",
    [
        "",
        "mine",
        '{"spark":',
        '{"spark":7}',
        '{"spark":{}}',
        '{"spark":{"batch":1}}',
        '{"spark":{"batch":true,"at":2}}',
        '{"spark":{"batch":-1,"at":2}}',
        '{"spark":{"batch":1,"at":1e3}}',
        '{"spark":{"batch":9223372036854775808,"at":2}}',
        '{"spark":' + "[" * 900,
        '{"spark":{"batch":1,"at":2,"query":"' + "q" * TEXT_MAX + '"}}',
    ],
)
def test_other_metadata_says_nothing(metadata: str) -> None:
    assert read_progress(metadata) is None


def test_fields_of_another_kind_are_left_out() -> None:
    fields = {"batch": 1, "at": 2, "query": 7, "task": "x", "began": None}
    assert read_progress(json.dumps({"spark": fields}, separators=(",", ":"))) == QueryProgress(
        1, 2
    )

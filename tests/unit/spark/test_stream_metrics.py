"""The figures of streams, made from what Spark reports after each batch."""

from __future__ import annotations

import json
from typing import Any

import pytest

from barnabas.spark import stream_metrics
from barnabas.spark.stream_metrics import GROUP, StreamMetrics


def offsets(**topics: tuple[int, ...]) -> str:
    """Return a position as Spark reports it."""
    stored = {
        topic: {"id": "", "offsets": {str(number): each for number, each in enumerate(found)}}
        for topic, found in topics.items()
    }
    return json.dumps({"version": 1, "tasks": 1, "topics": stored})


def progress(rows: int, start: str | None, end: Any, latest: Any, name: str | None = "clicks"):
    source = {"numInputRows": rows, "startOffset": start, "endOffset": end, "latestOffset": latest}
    return {"name": name, "id": "the-id", "batchDuration": 2000, "sources": [source]}


def test_batches_add_up() -> None:
    metrics = StreamMetrics()
    start, middle, end = offsets(a=(0, 0)), offsets(a=(10, 5)), offsets(a=(20, 15))
    metrics.report(progress(15, start, middle, offsets(a=(40, 15))), 102.0)
    metrics.report(progress(20, middle, end, offsets(a=(40, 15))), 105.0)
    groups = metrics.metrics_at(110.0)["clicks"]
    assert groups[GROUP] == {
        "records-consumed-total": 35,
        "records-consumed-rate": 3.5,  # the first batch began at 100
        "records-per-request-avg": 17.5,
        "fetch-total": 2,
        "fetch-rate": 0.2,
        "records-lag": 20,
        "records-lag-max": 20,
        "records-lag-avg": 10.0,
        "records-lag-min": 0,
    }
    assert groups[f"{GROUP}.a"] == {"offsets-consumed-total": 35, "offsets-consumed-rate": 3.5}
    assert groups[f"{GROUP}.a-0"] == {"records-lag": 20}
    assert groups[f"{GROUP}.a-1"] == {"records-lag": 0}


def test_positions_may_be_objects_and_latest_may_be_unknown() -> None:
    metrics = StreamMetrics()
    metrics.report(progress(3, None, json.loads(offsets(a=(3,))), None, name=None), 1.0)
    groups = metrics.metrics_at(2.0)["the-id"]
    assert groups[GROUP]["records-lag-max"] == 0
    assert groups[f"{GROUP}.a"]["offsets-consumed-total"] == 0  # where it began is not known


@pytest.mark.parametrize(
    "end", [None, 5, "5", '{"a":{"0":5}}', "no json", '{"version": 1, "initial": true}']
)
def test_other_sources_are_left_out(end: Any) -> None:
    metrics = StreamMetrics()
    metrics.report(progress(3, None, end, None), 1.0)
    assert metrics.metrics_at(2.0) == {}


def test_the_first_batch_begins_where_its_position_says() -> None:
    metrics = StreamMetrics()
    end = json.loads(offsets(a=(30, 9)))
    end["begun"] = {"a": {"0": 10, "1": 9}}
    initial = '{"version": 1, "initial": true}'
    metrics.report(progress(20, initial, end, None), 1.0)
    group = metrics.metrics_at(2.0)["clicks"][f"{GROUP}.a"]
    assert group["offsets-consumed-total"] == 20


def test_the_number_of_queries_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_metrics, "STREAMS_MAX", 2)
    metrics = StreamMetrics()
    for name in ("a", "b", "a", "c"):
        metrics.report(progress(3, None, offsets(t=(3,)), None, name=name), 1.0)
    assert list(metrics.metrics()) == ["b", "c"]


def test_a_topic_with_the_name_of_a_partition() -> None:
    metrics = StreamMetrics()
    at = {"a": (3,), "a-0": (4,)}
    metrics.report(progress(7, None, offsets(**at), offsets(**{"a": (5,), "a-0": (4,)})), 1.0)
    group = metrics.metrics_at(2.0)["clicks"][f"{GROUP}.a-0"]
    assert group["records-lag"] == 2
    assert "offsets-consumed-total" in group

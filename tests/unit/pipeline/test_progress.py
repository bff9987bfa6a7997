"""Rows, lag and state of flows, from what Spark and brokers report."""

from __future__ import annotations

import json
from typing import Any

import pytest

from barnabas.model.ids import TopicPartition
from barnabas.pipeline.progress import FlowReport, Progress, short

ZERO, ONE = TopicPartition("t", 0), TopicPartition("t", 1)


def offsets(zero: int, one: int = 0) -> str:
    topic = {"id": "x", "offsets": {"0": zero, "1": one}}
    return json.dumps({"version": 1, "tasks": 2, "topics": {"t": topic}})


def report(rows: int, zero: int, one: int = 0, **more: Any) -> dict[str, Any]:
    source = {"endOffset": offsets(zero, one), "latestOffset": offsets(zero, one)}
    return {
        "name": "spark_catalog.default.f",
        "numInputRows": rows,
        "batchDuration": 250,
        "sources": [source],
        "stateOperators": [],
        **more,
    }


def only(progress: Progress, now_ms: float) -> FlowReport:
    [flow] = progress.flows(now_ms)
    return flow


def test_rows_and_batches_are_counted() -> None:
    progress = Progress(0)
    progress.report(report(100, 100), 1000)
    progress.report(report(0, 100, batchDuration=7), 1500)
    progress.report(report(60, 160, batchDuration=90), 2000)
    flow = only(progress, 4000)
    assert (flow.name, flow.state) == ("f", "running")
    assert (flow.rows, flow.batches, flow.batch_ms) == (160, 3, 90)
    assert flow.rows_per_second == 40  # 160 in the four seconds since the beginning
    assert only(progress, 11_500).rows_per_second == 6  # the last ten seconds had 60


def test_a_flow_is_behind_by_what_the_logs_have_more() -> None:
    progress = Progress(0)
    progress.ends({ZERO: 10, ONE: 5}, 0)
    progress.report(report(15, 10, 5), 100)
    assert (only(progress, 200).lag, only(progress, 200).behind_s) == (0, 0.0)
    progress.ends({ZERO: 30, ONE: 6}, 1000)
    progress.ends({ZERO: 50, ONE: 6}, 2000)
    flow = only(progress, 2500)
    assert flow.lag == 41
    # The end was where the flow is at the first look, and had passed it at the second.
    assert (flow.behind_s, flow.at_least) == (2.5, False)
    progress.report(report(20, 30, 6), 3000)
    assert only(progress, 3000).lag == 20
    assert only(progress, 3000).behind_s == 2.0


def test_a_log_that_stood_still_makes_nobody_late() -> None:
    progress = Progress(0)
    for second in range(100):
        progress.ends({ZERO: 10}, second * 1000)
    progress.report(report(10, 10), 99_500)
    progress.ends({ZERO: 11}, 100_000)
    assert only(progress, 100_000).behind_s == 1.0


def test_what_was_late_from_the_first_look_on_is_late_by_at_least_that() -> None:
    progress = Progress(0)
    progress.ends({ZERO: 1000}, 0)
    progress.report(report(100, 100), 500)
    progress.ends({ZERO: 1000}, 4000)
    flow = only(progress, 5000)
    assert (flow.lag, flow.behind_s, flow.at_least) == (900, 5.0, True)


def test_a_topic_that_begins_anew_has_no_past() -> None:
    progress = Progress(0)
    progress.ends({ZERO: 1000}, 0)
    progress.report(report(5, 5), 500)
    progress.ends({ZERO: 3}, 1000)
    assert only(progress, 2000).lag == 0


def test_an_update_that_is_done_has_read_what_there_was() -> None:
    progress = Progress(0)
    progress.ends({ZERO: 50}, 0)
    progress.report(report(10, 10), 500)
    progress.done({ZERO: 50})
    assert only(progress, 1000).lag == 0


def test_the_ends_that_a_report_tells_count_until_brokers_say_more() -> None:
    progress = Progress(0)
    told = report(10, 10)
    told["sources"][0]["latestOffset"] = offsets(25)
    progress.report(told, 500)
    assert only(progress, 600).lag == 15


@pytest.mark.parametrize("position", ["{}", '{"logOffset": 3}', "7", "no JSON", None, {"a": 1}])
def test_flows_that_read_no_topics_have_no_lag(position: Any) -> None:
    progress = Progress(0)
    progress.report(report(5, 0, sources=[{"endOffset": position, "latestOffset": position}]), 10)
    flow = only(progress, 20)
    assert (flow.lag, flow.behind_s, flow.rows) == (None, None, 5)


def test_state_is_that_of_all_operators() -> None:
    progress = Progress(0)
    operators = [
        {"numRowsTotal": 3, "memoryUsedBytes": 1000},
        {"numRowsTotal": 4, "memoryUsedBytes": 500},
    ]
    time = {"watermark": "2026-01-02T03:04:05.000Z"}
    progress.report(report(5, 5, stateOperators=operators, eventTime=time), 10)
    progress.report(report(1, 6), 20)
    flow = only(progress, 30)
    assert (flow.state_rows, flow.state_bytes) == (7, 1500)
    assert flow.watermark == "2026-01-02T03:04:05.000Z"
    assert flow.document()["state_bytes"] == 1500


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("Flow spark_catalog.default.f is QUEUED.", "queued"),
        ("Flow 'spark_catalog.default.f' has COMPLETED.", "completed"),
        ("Flow 'spark_catalog.default.f' has FAILED more than 0 times", "failed"),
    ],
)
def test_what_spark_says_of_a_flow_is_its_state(text: str, state: str) -> None:
    progress = Progress(0)
    progress.event("Run is RUNNING.")
    progress.event(text)
    assert (only(progress, 0).name, only(progress, 0).state) == ("f", state)


def test_names_are_shown_without_catalog_and_database() -> None:
    assert short("`spark_catalog`.`default`.`f`") == "f"


def test_there_is_more_when_one_flow_has_not_read_all() -> None:
    progress = Progress(0)
    assert not progress.has_more({})
    progress.ends({ZERO: 10, ONE: 0}, 0)
    assert progress.has_more({})
    assert not progress.has_more({ZERO: 10})
    progress.report(report(12, 12), 100)  # it has read further than the last look saw
    progress.ends({ZERO: 12}, 200)
    assert not progress.has_more({ZERO: 10})
    progress.report(report(11, 11, name="g"), 300)
    assert progress.has_more({ZERO: 10})


def test_a_flow_that_goes_on_is_behind_before_it_reports() -> None:
    progress = Progress(0)
    progress.begin("f", {ZERO: 10})
    progress.ends({ZERO: 25}, 100)
    flow = only(progress, 1100)
    assert (flow.state, flow.rows, flow.lag) == ("waiting", 0, 15)
    assert (flow.behind_s, flow.at_least) == (1.0, True)

"""Our dashboards and alert rules name only metrics of the catalogue, with labels that they have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.promql import Selector, grouping, selectors
from tools.dashboards import DASHBOARDS, FOLDER
from tools.metric_reference import series_names

from barnabas.metrics.catalogue import metrics
from barnabas.metrics.metric import Kind, Metric

ALERTS = FOLDER / "alerts.yml"
OF_THE_SCRAPE = {"job", "instance"}
"""Labels that Prometheus adds to every series."""


def known() -> dict[str, set[str]]:
    """Return the labels of every series that a scrape may have."""
    found: dict[str, set[str]] = {}
    for rows in metrics().values():
        for metric in rows:
            for name in series_names(metric):
                found[name] = set(metric.labels) | own_labels(metric, name) | OF_THE_SCRAPE
    return found


def own_labels(metric: Metric, name: str) -> set[str]:
    if metric.kind is Kind.QUANTILES and name == metric.name:
        return {"quantile"}
    return {"le"} if name.endswith("_bucket") else set()


def expressions() -> list[tuple[str, str]]:
    """Return each expression with where it is."""
    found = []
    for path in sorted(FOLDER.glob("*.json")):
        content = json.loads(path.read_text())
        for panel in content["panels"]:
            found += [(f"{path.stem}: {panel['title']}", each["expr"]) for each in panel["targets"]]
        for variable in content["templating"]["list"]:
            if variable["type"] == "query":
                query = variable["query"].removeprefix("label_values(").rpartition(",")[0]
                found.append((f"{path.stem}: ${variable['name']}", query))
    found += [(f"alert {each['alert']}", each["expr"]) for each in rules()]
    return found


def rules() -> list[dict[str, Any]]:
    yaml = pytest.importorskip("yaml", reason="pyyaml is not installed")
    content = yaml.safe_load(ALERTS.read_text())
    return [rule for group in content["groups"] for rule in group["rules"]]


def complaints(expression: str, series: dict[str, set[str]]) -> list[str]:
    named = selectors(expression)
    found = [f"{each.name} is no metric" for each in named if each.name not in series]
    present = [each for each in named if each.name in series]
    found += [
        f"{each.name} has no label {label}"
        for each in present
        for label in each.labels - series[each.name]
    ]
    labels = set[str]().union(*(series[each.name] for each in present))
    if present:
        found += [f"nothing here has a label {each}" for each in grouping(expression) - labels]
    return found


def test_every_expression_names_what_a_broker_exposes() -> None:
    """All that is wrong at once: a metric may be renamed in one place and asked for in ten."""
    series = known()
    wrong = [
        f"{where}: {complaint}"
        for where, expression in expressions()
        for complaint in complaints(expression, series)
    ]
    assert wrong == []


def test_all_expressions_are_looked_at() -> None:
    assert len(expressions()) >= 60
    assert all(selectors(expression) for _, expression in expressions())


def test_each_dashboard_is_a_file_with_panels_that_do_not_overlap() -> None:
    assert {path.stem for path in FOLDER.glob("*.json")} == {each.file for each in DASHBOARDS}
    for path in FOLDER.glob("*.json"):
        taken: set[tuple[int, int]] = set()
        for panel in json.loads(path.read_text())["panels"]:
            place = panel["gridPos"]
            cells = {
                (x, y)
                for x in range(place["x"], place["x"] + place["w"])
                for y in range(place["y"], place["y"] + place["h"])
            }
            assert not cells & taken, panel["title"]
            assert max(x for x, _ in cells) < 24, panel["title"]
            taken |= cells


def test_each_alert_says_what_happened_and_how_bad_it_is() -> None:
    names = [rule["alert"] for rule in rules()]
    assert len(names) == len(set(names)) >= 10
    for rule in rules():
        assert rule["labels"]["severity"] in {"critical", "warning", "info"}, rule["alert"]
        assert rule["annotations"]["summary"], rule["alert"]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("up == 0", [Selector("up", frozenset())]),
        (
            'sum by (job) (rate(a_total{topic!="",job=~"x{2}"}[5m])) / b_count > bool 1',
            [Selector("a_total", frozenset({"topic", "job"})), Selector("b_count", frozenset())],
        ),
        ("topk(10, a_b{x='y'})", [Selector("a_b", frozenset({"x"}))]),
        (
            "sum(a_b) without (x) or c_d offset 5m",
            [Selector("a_b", frozenset()), Selector("c_d", frozenset())],
        ),
        ("histogram_quantile(0.9, a_bucket)", [Selector("a_bucket", frozenset())]),
    ],
)
def test_selectors_are_found(expression: str, expected: list[Selector]) -> None:
    assert selectors(expression) == expected


def test_what_is_wrong_is_noticed() -> None:
    series = {"a_total": {"topic"}}
    assert complaints("rate(b_total[5m])", series) == ["b_total is no metric"]
    assert complaints('a_total{group="g"}', series) == ["a_total has no label group"]
    assert complaints("sum by (group) (a_total)", series) == ["nothing here has a label group"]
    assert complaints('sum by (topic) (a_total{topic="t"})', series) == []


def test_the_folder_has_nothing_else() -> None:
    names = {path.name for path in Path(FOLDER).iterdir()}
    assert names == {f"{each.file}.json" for each in DASHBOARDS} | {ALERTS.name}

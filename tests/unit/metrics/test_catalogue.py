"""The catalogue: names that exporters and dashboards accept, each declared once."""

from __future__ import annotations

import re

from barnabas.metrics.catalogue import metrics
from barnabas.metrics.metric import Kind, Metric

ALL: list[Metric] = [each for subject in metrics().values() for each in subject]


def test_there_are_metrics_of_every_subject() -> None:
    assert all(metrics().values())


def test_names_are_unique() -> None:
    names = [each.name for each in ALL]
    assert sorted(names) == sorted(set(names))


def test_names_have_the_form_of_their_kind() -> None:
    for each in ALL:
        assert re.fullmatch("[a-z][a-z0-9_]*[a-z0-9]", each.name), each.name
        assert (each.kind is Kind.COUNTER) == each.name.endswith("_total"), each.name


def test_each_is_explained_in_a_sentence() -> None:
    for each in ALL:
        assert re.fullmatch(r"[A-Z].{8,}[.]", each.help, re.DOTALL), each.name

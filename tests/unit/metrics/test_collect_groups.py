"""The groups of `?collect[]=`: each metric is in one, by its labels and its subject."""

from __future__ import annotations

import pytest

from barnabas.metrics.catalogue import metrics
from barnabas.metrics.catalogue.quotas import BYTE_RATE
from barnabas.metrics.catalogue.requests import TOTAL_TIME
from barnabas.metrics.collect_groups import GROUPS, CollectGroups
from barnabas.metrics.metric import Kind, Metric


def test_every_metric_of_the_catalogue_is_in_a_group() -> None:
    groups = CollectGroups()
    found = {groups.of(each) for rows in metrics().values() for each in rows}
    assert found <= set(GROUPS)


@pytest.mark.parametrize(("metric", "group"), [(BYTE_RATE, "quotas"), (TOTAL_TIME, "requests")])
def test_subjects_with_a_group_of_their_own(metric: Metric, group: str) -> None:
    assert CollectGroups().of(metric) == group


@pytest.mark.parametrize(
    ("labels", "group"),
    [
        (("topic", "partition"), "partitions"),
        (("topic",), "topics"),
        (("consumergroup", "topic", "partition"), "groups"),
        (("consumergroup",), "groups"),
        (("listener",), "broker"),
        ((), "broker"),
    ],
)
def test_others_are_grouped_by_their_labels(labels: tuple[str, ...], group: str) -> None:
    assert CollectGroups().of(Metric("m", Kind.GAUGE, "M.", labels)) == group

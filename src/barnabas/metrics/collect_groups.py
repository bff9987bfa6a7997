"""The groups that `?collect[]=` chooses from: which one a metric is in follows from its labels and
from its subject in the catalogue.
"""

from __future__ import annotations

from barnabas.metrics.catalogue import metrics
from barnabas.metrics.metric import Metric

GROUPS = ("broker", "requests", "topics", "partitions", "groups", "quotas")

_BY_SUBJECT = {"quotas": "quotas", "requests": "requests"}


class CollectGroups:
    """Knows the group of each metric."""

    def __init__(self) -> None:
        self._subjects = {metric: name for name, rows in metrics().items() for metric in rows}

    def of(self, metric: Metric) -> str:
        """Return the group of a metric."""
        subject = self._subjects.get(metric, "")
        if subject in _BY_SUBJECT:
            return _BY_SUBJECT[subject]
        if "consumergroup" in metric.labels or "group" in subject:
            return "groups"
        for label in ("partition", "topic"):
            if label in metric.labels:
                return f"{label}s"
        return "broker"

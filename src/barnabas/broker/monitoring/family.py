"""What collectors yield: a metric, and the label text and value of each of its series."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from barnabas.metrics.metric import Metric

Family: TypeAlias = tuple[Metric, Iterable[tuple[str, float]]]

"""What collectors yield: a metric, and the label text and value of each of its series.

One that counts many partitions before its first metric yields None after each run of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from barnabas.metrics.metric import Metric

Family: TypeAlias = tuple[Metric, Iterable[tuple[str, float]]]

RUN = 1000
"""How many partitions are counted, at a microsecond each, before the broker may go on."""

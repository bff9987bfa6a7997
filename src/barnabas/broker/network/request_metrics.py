"""Request metrics: counts and times by API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from barnabas.broker.network.router import Served
from barnabas.metrics.catalogue.requests import TOTAL_TIME
from barnabas.metrics.registry import Registry


class RequestMetrics:
    """Counters and histograms of requests, found by API key."""

    def __init__(self, registry: Registry, served: Mapping[int, Served[Any]]) -> None:
        self._times = {
            key: registry.histogram(TOTAL_TIME, entry.api.name) for key, entry in served.items()
        }

    def answered(self, api_key: int, seconds: float) -> None:
        """Count a request and the time from its frame to its response."""
        self._times[api_key].record(int(seconds * 1e6))

"""Rates and latencies of requests between two pages of metrics."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from barnabas.cli.top.page import (
    LOCAL_TIME,
    REQUEST_SECONDS,
    REQUESTS,
    TOTAL_TIME,
    Labels,
    Page,
)

PHASES = ("queue", "local", "remote", "throttle", "send")
LONG_POLLS = ("Fetch", "FetchConsumer", "FetchFollower")
"""They wait for records as long as they were told to, and are not slow because of that."""


@dataclass(frozen=True, slots=True)
class RequestRow:
    """Requests of one API: how many, and how long they took; fetches without their waits."""

    api: str
    per_s: float
    mean_ms: float | None
    p99_ms: float | None
    """The bucket in which it is ends here; since the start of the broker if Kafka says it."""
    slowest_phase: str | None
    """Where they spent most of the time."""


def request_rows(pairs: Iterable[tuple[Page, Page]], seconds: float) -> list[RequestRow]:
    """Return the APIs of which requests were answered between the pages, the slowest first.

    Each pair is an earlier and a later page of one broker.
    """
    counts: dict[str, float] = {}
    buckets: dict[str, dict[float, float]] = {}
    sums: dict[str, dict[str, float]] = {}
    quantiles: dict[str, float] = {}
    for before, after in pairs:
        _add_counts(counts, before, after)
        for labels, added in _growth(before, after, f"{REQUEST_SECONDS}_bucket"):
            named = dict(labels)
            if named.get("phase") == ("local" if named["api"] in LONG_POLLS else "total"):
                bound = float(named["le"])
                reached = buckets.setdefault(named["api"], {})
                reached[bound] = reached.get(bound, 0.0) + added
        for labels, added in _growth(before, after, f"{REQUEST_SECONDS}_sum"):
            named = dict(labels)
            phases = sums.setdefault(named["api"], {})
            phases[named["phase"]] = phases.get(named["phase"], 0.0) + added
        for name in (TOTAL_TIME, LOCAL_TIME):
            for labels, value in after.of(name).items():
                named = dict(labels)
                api = named.get("request", "")
                wanted = LOCAL_TIME if api in LONG_POLLS else TOTAL_TIME
                if named.get("quantile") == "0.99" and api and name == wanted:
                    quantiles[api] = max(quantiles.get(api, 0.0), value)
    rows = [
        _row(
            api,
            count,
            seconds,
            buckets.get(api, {}),
            sums.get(api, {}),
            quantiles.get(api),
        )
        for api, count in counts.items()
        if count > 0
    ]
    return sorted(rows, key=lambda row: (-(row.p99_ms or 0.0), row.api))


def _add_counts(counts: dict[str, float], before: Page, after: Page) -> None:
    for labels, added in _growth(before, after, REQUESTS):
        api = dict(labels).get("request", "")
        if api != "Fetch":  # counted again as FetchConsumer and FetchFollower
            counts[api] = counts.get(api, 0.0) + added


def _row(
    api: str,
    count: float,
    seconds: float,
    buckets: Mapping[float, float],
    sums: Mapping[str, float],
    quantile_ms: float | None,
) -> RequestRow:
    if not buckets:
        return RequestRow(api, count / seconds, None, quantile_ms, None)
    total = max(buckets.values())
    spent = sums.get("total", 0.0)
    phases = [(sums.get(phase, 0.0), phase) for phase in PHASES]
    if api in LONG_POLLS:
        spent -= sums.get("remote", 0.0)
        phases = [each for each in phases if each[1] != "remote"]
    mean_ms = max(spent, 0.0) / total * 1000 if total else None
    longest, phase = max(phases)
    return RequestRow(
        api, count / seconds, mean_ms, quantile_of(buckets, 0.99), phase if longest > 0 else None
    )


def quantile_of(buckets: Mapping[float, float], fraction: float) -> float | None:
    """Return the upper bound, in milliseconds, of the bucket in which a quantile is.

    Beyond the last finite bound it is that bound; None if nothing was counted.
    """
    count = max(buckets.values(), default=0.0)
    if count <= 0:
        return None
    finite = sorted(bound for bound in buckets if math.isfinite(bound))
    for bound in finite:
        if buckets[bound] >= count * fraction:
            return bound * 1000
    return finite[-1] * 1000 if finite else None


def _growth(before: Page, after: Page, name: str) -> Iterable[tuple[Labels, float]]:
    """Yield how much each counter has grown; one that fell began again with its broker."""
    earlier = before.of(name)
    for labels, value in after.of(name).items():
        known = earlier.get(labels, 0.0)
        yield labels, value - known if value >= known else value

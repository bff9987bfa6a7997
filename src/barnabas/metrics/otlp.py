"""Writes a registry's metrics as OTLP in JSON, in batches that are small enough to build at once.

    for batch in batches(registry, started_ns, now_ns):
        post(body(batch, {"service.name": "barnabas"}))

Names, labels and meanings are those of the Prometheus endpoint. Quantiles are summaries, other
distributions are histograms with powers of two as bounds.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from math import isfinite
from typing import Any

from barnabas.metrics.instruments import Histogram
from barnabas.metrics.metric import Kind, Metric
from barnabas.metrics.registry import Instrument, Registry, Values

logger = logging.getLogger("barnabas.metrics")

POINTS_MAX = 500
"""Series of one batch: built within two milliseconds or so."""
FRACTIONS = (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)
BOUNDS = tuple(1 << power for power in range(4, 27))
"""Upper bounds of a histogram's buckets, in the recorded unit."""
CUMULATIVE = 2

_LABEL = re.compile(r'([^=,]+)="((?:[^"\\]|\\.)*)"')
_ESCAPED = {"\\\\": "\\", "\\n": "\n", '\\"': '"'}

Batch = list[dict[str, Any]]


def batches(registry: Registry, started_ns: int, now_ns: int) -> Iterator[Batch]:
    """Yield all metrics in batches; the broker may go on between two of them."""
    batch: Batch = []
    left = POINTS_MAX
    for metric, points in _all(registry, str(started_ns), str(now_ns)):
        current: list[dict[str, Any]] = []
        for point in points:
            if not current:
                batch.append(_described(metric, current))
            current.append(point)
            left -= 1
            if not left:
                yield batch
                batch, current, left = [], [], POINTS_MAX
    if batch:
        yield batch


def body(batch: Batch, resource: Mapping[str, str]) -> bytes:
    """Return the body of a request with a batch."""
    scope = {"scope": {"name": "barnabas"}, "metrics": batch}
    attributes = [_attribute(name, value) for name, value in resource.items()]
    whole = {"resource": {"attributes": attributes}, "scopeMetrics": [scope]}
    return json.dumps({"resourceMetrics": [whole]}, separators=(",", ":")).encode()


def _all(
    registry: Registry, started_ns: str, now_ns: str
) -> Iterator[tuple[Metric, Iterable[dict[str, Any]]]]:
    times = {"startTimeUnixNano": started_ns, "timeUnixNano": now_ns}
    for metric, instruments in registry.families():
        yield metric, _of_instruments(metric, instruments, times)
    for collector in registry.collectors:
        try:
            for metric, series in filter(None, collector.collect()):
                yield metric, _of_series(series, times)
        except Exception:  # the other metrics are readable
            logger.exception("metrics of %s are left out", type(collector).__name__)


def _of_instruments(
    metric: Metric, instruments: Iterable[tuple[Values, Instrument]], times: dict[str, str]
) -> Iterator[dict[str, Any]]:
    for values, instrument in instruments:
        pairs = zip(metric.labels, values, strict=True)
        labels = [_attribute(name, value) for name, value in pairs if value]
        if isinstance(instrument, Histogram):
            make = _summary if metric.kind is Kind.QUANTILES else _buckets
            yield {"attributes": labels, **times, **make(instrument, metric.scale)}
        else:
            value = float(instrument.value) * metric.scale
            if isfinite(value):
                yield {"attributes": labels, **times, "asDouble": value}


def _of_series(
    series: Iterable[tuple[str, float]], times: dict[str, str]
) -> Iterator[dict[str, Any]]:
    try:
        for text, value in series:
            if isfinite(value):
                yield {"attributes": _labels(text), **times, "asDouble": float(value)}
    except Exception:  # the other metrics are readable
        logger.exception("the rest of a metric's series is left out")


def _described(metric: Metric, points: list[dict[str, Any]]) -> dict[str, Any]:
    data: dict[str, Any] = {"dataPoints": points}
    kind = "gauge"
    if metric.kind is Kind.COUNTER:
        kind = "sum"
        data |= {"aggregationTemporality": CUMULATIVE, "isMonotonic": True}
    elif metric.kind is Kind.QUANTILES:
        kind = "summary"
    elif metric.kind is Kind.BUCKETS:
        kind = "histogram"
        data["aggregationTemporality"] = CUMULATIVE
    return {"name": metric.name, "description": metric.help, kind: data}


def _summary(histogram: Histogram, scale: float) -> dict[str, Any]:
    quantiles = zip(FRACTIONS, histogram.quantiles(*FRACTIONS), strict=True)
    return {
        "count": str(histogram.count),
        "sum": histogram.total * scale,
        "quantileValues": [
            {"quantile": fraction, "value": value * scale} for fraction, value in quantiles
        ],
    }


def _buckets(histogram: Histogram, scale: float) -> dict[str, Any]:
    counts = [0] * (len(BOUNDS) + 1)
    index = 0
    for largest, count in histogram.buckets():
        while index < len(BOUNDS) and largest > BOUNDS[index]:
            index += 1
        counts[index] += count
    return {
        "count": str(sum(counts)),
        "sum": histogram.total * scale,
        "bucketCounts": [str(count) for count in counts],
        "explicitBounds": [bound * scale for bound in BOUNDS],
    }


def _labels(text: str) -> list[dict[str, Any]]:
    """Return attributes for the labels of a series as `label_text` has written them."""
    return [
        _attribute(name, re.sub(r"\\.", lambda found: _ESCAPED.get(found[0], found[0]), value))
        for name, value in _LABEL.findall(text)
    ]


def _attribute(name: str, value: str) -> dict[str, Any]:
    return {"key": name, "value": {"stringValue": value}}

"""The registry: all instruments of one broker, by metric and labels.

    appended = registry.counter(BYTES_IN, "orders")
    appended.add(4096)

Asking again for the same metric and label values returns the same instrument, so parts need not
pass them around; hot paths keep the instrument. Numbers that the broker's parts have anyway, such
as those of each partition, are not mirrored here: a collector reads them at each scrape. There is
one registry per broker, never one per process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeAlias, TypeVar

from barnabas.metrics.instruments import Counter, Gauge, Histogram
from barnabas.metrics.metric import Kind, Metric

Instrument: TypeAlias = Counter | Gauge | Histogram
InstrumentType = TypeVar("InstrumentType", Counter, Gauge, Histogram)
Values: TypeAlias = tuple[str, ...]
"""The values of a metric's labels, in the order of its `labels`; "" leaves a label out."""

WINDOW_S = 60
"""Quantiles are those of the current and the previous window of this length."""

_KINDS: dict[Kind, type[Instrument]] = {
    Kind.COUNTER: Counter,
    Kind.GAUGE: Gauge,
    Kind.QUANTILES: Histogram,
    Kind.BUCKETS: Histogram,
}


class Collector(Protocol):
    """Reads numbers from the parts that have them, when they are scraped."""

    def collect(self) -> Iterator[tuple[Metric, Iterable[tuple[str, float]]] | None]:
        """Yield each metric once, with the label text and the value of each of its series.

        None stands for no metric: a collector that counts for long yields it now and then. The text
        is `metric.label_text`'s; a collector of many series keeps it. The broker goes on between
        any two series, and at None, so what is iterated over must be a copy. It is iterated over,
        or dropped, before the next metric is asked for.
        """


class Registry:
    """The instruments of one broker, and what is collected beside them."""

    def __init__(self) -> None:
        self._families: dict[Metric, dict[Values, Instrument]] = {}
        self._collectors: list[Collector] = []

    def counter(self, metric: Metric, *values: str) -> Counter:
        """Return the counter of a metric and its labels' values."""
        return self._instrument(metric, values, Counter, Counter)

    def gauge(self, metric: Metric, read: Callable[[], float], *values: str) -> Gauge:
        """Register a gauge that calls `read` for its value; it replaces an earlier one."""
        self.remove(metric, *values)
        return self._instrument(metric, values, Gauge, lambda: Gauge(read))

    def histogram(self, metric: Metric, *values: str) -> Histogram:
        """Return the histogram of a metric and its labels' values."""
        return self._instrument(metric, values, Histogram, Histogram)

    def add(self, metric: Metric, histogram: Histogram, *values: str) -> None:
        """Register a histogram that a part has made; it replaces an earlier one."""
        self.remove(metric, *values)
        self._instrument(metric, values, Histogram, lambda: histogram)

    def remove(self, metric: Metric, *values: str) -> bool:
        """Remove one instrument (its topic or connection is gone); False if there is none."""
        family = self._families.get(metric)
        if family is None or family.pop(values, None) is None:
            return False
        if not family:
            del self._families[metric]
        return True

    def rotation(self) -> Iterator[Metric]:
        """Begin a window of the quantiles, metric by metric; begin one every WINDOW_S seconds."""
        for metric, family in list(self._families.items()):
            if metric.kind is Kind.QUANTILES:
                for instrument in family.values():
                    assert isinstance(instrument, Histogram)
                    instrument.rotate()
                yield metric

    def rotate(self) -> None:
        """Begin a window of all quantiles at once."""
        for _ in self.rotation():
            pass

    def add_collector(self, collector: Collector) -> None:
        """Ask a collector, too, at each scrape."""
        self._collectors.append(collector)

    @property
    def collectors(self) -> list[Collector]:
        """The collectors, in the order in which they were added."""
        return self._collectors

    def families(self) -> Iterator[tuple[Metric, list[tuple[Values, Instrument]]]]:
        """Yield each metric with its instruments, in the order in which they were created."""
        for metric, family in list(self._families.items()):
            yield metric, list(family.items())

    def value(self, metric: Metric, *values: str) -> float:
        """Return the number of a counter or gauge, or how often a histogram recorded; else 0."""
        instrument = self._families.get(metric, {}).get(values)
        if instrument is None:
            return 0
        return instrument.count if isinstance(instrument, Histogram) else instrument.value

    def _instrument(
        self,
        metric: Metric,
        values: Values,
        kind: type[InstrumentType],
        make: Callable[[], InstrumentType],
    ) -> InstrumentType:
        assert _KINDS[metric.kind] is kind, f"{metric.name} is a {metric.kind.value}"
        assert len(values) == len(metric.labels), f"{metric.name} has labels {metric.labels}"
        family = self._families.setdefault(metric, {})
        instrument = family.get(values)
        if instrument is None:
            instrument = family[values] = make()
        assert isinstance(instrument, kind)
        return instrument

"""Reads a broker's metrics as a scrape does, without the text around them."""

from __future__ import annotations

from tests.unit.broker.serving import Serving

from barnabas.broker.broker import Broker
from barnabas.metrics.instruments import Histogram
from barnabas.metrics.metric import Metric, label_text


class Scrape(dict[tuple[str, str], float]):
    """Each series by name and label text; a histogram is how many values it has."""

    def of(self, metric: Metric, **labels: str) -> float:
        """Return the value of one series; 0 if there is none."""
        assert set(labels) <= set(metric.labels), metric.labels
        values = tuple(labels.get(name, "") for name in metric.labels)
        return self.get((metric.name, label_text(metric.labels, values)), 0)

    def series(self, metric: Metric) -> dict[str, float]:
        """Return all series of a metric, by their label text."""
        return {labels: value for (name, labels), value in self.items() if name == metric.name}


def scrape(serving: Serving) -> Scrape:
    """Read all metrics of a broker, on its own thread."""
    return serving.inside(lambda: read(serving.broker))


def read(broker: Broker) -> Scrape:
    """Read all metrics of a broker."""
    found = Scrape()
    for metric, instruments in broker.metrics.families():
        for values, instrument in instruments:
            value = instrument.count if isinstance(instrument, Histogram) else instrument.value
            found[metric.name, label_text(metric.labels, values)] = value
    for collector in broker.metrics.collectors:
        for metric, series in filter(None, collector.collect()):
            for labels, value in series:
                key = metric.name, labels
                assert key not in found, f"{key} is there twice"
                found[key] = value
    return found

"""All series of a registry, as a scrape would find them."""

from __future__ import annotations

from barnabas.broker.broker import Broker
from barnabas.metrics.instruments import Histogram
from barnabas.metrics.metric import Metric, label_text
from barnabas.metrics.registry import Collector, Registry

Series = dict[str, float]


def collected(*collectors: Collector) -> Series:
    """Return the series of collectors; each metric comes once, and each series once."""
    found: Series = {}
    seen: set[Metric] = set()
    for collector in collectors:
        for metric, series in filter(None, collector.collect()):
            assert metric not in seen, f"{metric.name} came twice"
            seen.add(metric)
            for text, value in series:
                name = f"{metric.name}{{{text}}}" if text else metric.name
                assert name not in found, f"{name} came twice"
                assert type(value) in (int, float), f"{name} is {value!r}"
                found[name] = value
    return found


def scraped(registry: Registry) -> Series:
    """Return all series; of a distribution the count."""
    found = collected(*registry.collectors)
    for metric, family in registry.families():
        for values, instrument in family:
            text = label_text(metric.labels, values)
            name = f"{metric.name}{{{text}}}" if text else metric.name
            assert name not in found, f"{name} came twice"
            is_distribution = isinstance(instrument, Histogram)
            found[name] = instrument.count if is_distribution else instrument.value
    return found


def summed(*brokers: Broker) -> Series:
    """Return the sum of each series over brokers, as dashboards take it."""
    total: Series = {}
    for broker in brokers:
        for name, value in scraped(broker.metrics).items():
            total[name] = total.get(name, 0) + value
    return total

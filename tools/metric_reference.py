"""Write docs/reference/metrics.md from the catalogue.

python -m tools.metric_reference            write the page
python -m tools.metric_reference --check    fail when the page is stale
"""

from __future__ import annotations

from importlib import import_module

from tools.generated import ROOT, main

from barnabas.metrics.catalogue import metrics
from barnabas.metrics.collect_groups import CollectGroups
from barnabas.metrics.metric import Kind, Metric
from barnabas.metrics.vocabulary import Names, exposed_name

PAGE = ROOT / "docs" / "reference" / "metrics.md"

HEAD = """\
<!-- Written by tools/metric_reference.py from the catalogue: do not edit. -->

# Metrics

A broker serves these at `/metrics` when `barnabas.metrics.listener` is set: see
[how to monitor](../how-to/monitor.md). Names are those that the JMX exporter with Strimzi's rules
gives to Kafka's metrics, those of kafka_exporter, and our own, which begin with `barnabas_`.

**Kind**: a *counter* only increases; a *gauge* goes both ways; *quantiles* are a gauge per value of
the label `quantile` (`0.50`, `0.75`, `0.95`, `0.98`, `0.99`, `0.999`) and a count without a type,
with `_count` added to the name; *buckets* are a histogram of Prometheus, with `_bucket`, `_sum`
and `_count`. **Group** is what `?collect[]=` chooses. **Confluent** is the name under
`?names=confluent` where it differs; under `?names=reporter` counters of Kafka's meters end with
`persec_total` instead.

A label without a value is left out: `kafka_server_brokertopicmetrics_bytesin_total` without a topic
is the sum of all topics, so add `topic!=""` or `topic=""` to a query.
"""


def page() -> str:
    """Return the whole page."""
    groups = CollectGroups()
    parts = [HEAD]
    for subject, rows in metrics().items():
        doc = (import_module(f"barnabas.metrics.catalogue.{subject}").__doc__ or "").strip()
        parts.append(
            f"## {subject.replace('_', ' ').capitalize()}\n\n{doc}\n\n{table(rows, groups)}"
        )
    return "\n".join(parts)


def table(rows: list[Metric], groups: CollectGroups) -> str:
    """Return the metrics of one subject."""
    head = ["name", "kind", "labels", "group", "meaning", "Kafka's bean", "Confluent"]
    lines = [head, ["---"] * len(head)]
    lines += [
        [
            f"`{each.name}`",
            kind(each),
            ", ".join(f"`{label}`" for label in each.labels),
            groups.of(each),
            each.help.replace("|", "\\|"),
            f"`{each.bean}`" if each.bean else "",
            confluent(each),
        ]
        for each in rows
    ]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def kind(metric: Metric) -> str:
    """Return a metric's kind."""
    return metric.kind.value


def confluent(metric: Metric) -> str:
    """Return the name for Confluent's dashboards, if it is another one than ours."""
    if "{" in metric.bean:
        return f"`{exposed_name(metric, Names.CONFLUENT, 'RESOURCE')}`"
    name = exposed_name(metric, Names.CONFLUENT)
    return "" if name == metric.name else f"`{name}`"


def series_names(metric: Metric) -> list[str]:
    """Return the names of the series that a metric has in a scrape."""
    if metric.kind is Kind.QUANTILES:
        return [metric.name, f"{metric.name}_count"]
    if metric.kind is Kind.BUCKETS:
        return [f"{metric.name}{suffix}" for suffix in ("_bucket", "_sum", "_count")]
    return [metric.name]


if __name__ == "__main__":
    raise SystemExit(main(PAGE, page(), "tools.metric_reference"))

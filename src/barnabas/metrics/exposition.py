"""Writes metrics for Prometheus: as text 0.0.4, or as OpenMetrics 1.0.

    exposition = Exposition(registry, Form(), clock)
    for chunk in exposition.chunks():     # b"" if there is nothing to send yet
        ...                               # other work may run here

A scrape of 10,000 partitions has 170,000 series, so it is written in slices: between two chunks at
most about 2 ms pass. Nothing is sent before everything is read, because the series of a metric must
be contiguous, and several parts may have some. A part whose numbers cannot be read is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from barnabas.metrics.catalogue.exposing import OMITTED_FAMILIES
from barnabas.metrics.collect_groups import CollectGroups
from barnabas.metrics.instruments import Histogram
from barnabas.metrics.metric import Kind, Metric, label_text
from barnabas.metrics.registry import Instrument, Registry, Values
from barnabas.metrics.vocabulary import Names, exposed_label, exposed_name, split_label

SLICE_S = 0.002
RUN = 250
"""Series that are written between two looks at the clock."""
CHUNK_BYTES = 64 * 1024
FRACTIONS = {"0.50": 0.5, "0.75": 0.75, "0.95": 0.95, "0.98": 0.98, "0.99": 0.99, "0.999": 0.999}
"""The quantiles of Kafka, as dashboards spell them."""
BOUNDS = tuple(1 << power for power in range(4, 27))
"""Upper bounds of a histogram's buckets, in the recorded unit: from 16 µs to 67 s for times."""

TEXT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Form:
    """What a scrape asks for."""

    names: Names = Names.JMX
    openmetrics: bool = False
    groups: frozenset[str] = frozenset()
    """The groups of `collect_groups`; empty for all."""
    partition_series_max: int | None = None
    """The largest number of series of a metric that has a label `partition`; None: no limit."""

    @property
    def content_type(self) -> str:
        """The media type of the answer."""
        return OPENMETRICS_TYPE if self.openmetrics else TEXT_TYPE


class _Family:
    """The series of one name, as far as they are written."""

    def __init__(self, name: str, kind: str, help: str, count_max: int | None) -> None:
        self.name = name
        self.kind = kind
        self.help = help
        self.texts: list[bytes] = []
        self.count = 0
        self.is_omitted = False
        self._count_max = count_max

    def add(self, text: str, count: int) -> None:
        """Add series, unless they are more than the limit: then there are none."""
        self.count += count
        if self._count_max is not None and self.count > self._count_max:
            self.is_omitted = True
            self.texts.clear()
        else:
            self.texts.append(text.encode("utf-8", "backslashreplace"))


class Exposition:
    """One scrape of a registry."""

    def __init__(
        self,
        registry: Registry,
        form: Form,
        clock: Callable[[], float],
        *,
        comments: Iterable[str] = (),
    ) -> None:
        """`clock` gives seconds. `comments` are lines at the top, which OpenMetrics cannot have."""
        self._registry = registry
        self._form = form
        self._clock = clock
        self._comments = list(comments)
        self._groups = CollectGroups() if form.groups else None
        self._families: dict[str, _Family] = {}
        self._until = 0.0
        self.failures: list[tuple[str, Exception]] = []
        """What could not be read, by the name of the metric or of the collector."""

    @property
    def omitted(self) -> list[str]:
        """Return the names that are left out because they have too many series."""
        return [family.name for family in self._families.values() if family.is_omitted]

    def chunks(self) -> Iterator[bytes]:
        """Yield the bytes, and b"" where only time has passed."""
        self._until = self._clock() + SLICE_S
        for metric, instruments in self._registry.families():
            if self._wants(metric):
                yield from self._instruments(metric, instruments)
        for collector in self._registry.collectors:
            collected = collector.collect()
            while True:
                try:
                    family = next(collected)
                except StopIteration:
                    break
                except Exception as failure:  # noqa: BLE001  the other metrics are readable
                    self.failures.append((type(collector).__name__, failure))
                    break
                yield from self._pause()
                if family is not None and self._wants(family[0]):
                    yield from self._collected(*family)
        self._gauge(OMITTED_FAMILIES, len(self.omitted))
        yield from self._written()

    # reading

    def _wants(self, metric: Metric) -> bool:
        return self._groups is None or self._groups.of(metric) in self._form.groups

    def _collected(self, metric: Metric, series: Iterable[tuple[str, float]]) -> Iterator[bytes]:
        family = self._family(metric, exposed_name(metric, self._form.names))
        start, end, bare = f"{family.name}{{", "} ", f"{family.name} "
        renamed = self._renamed(metric)
        left = iter(series)
        while not family.is_omitted:
            try:
                # A plus, so that a bool is written as a number.
                lines = [
                    f"{start}{labels}{end}{+value}\n" if labels else f"{bare}{+value}\n"
                    for labels, value in islice(left, RUN)
                ]
            except Exception as failure:  # noqa: BLE001  the other metrics are readable
                self.failures.append((metric.name, failure))
                return
            if lines:
                text = "".join(lines)
                for label, name in renamed:
                    # Within a label's value there is a backslash before the quotation mark.
                    text = text.replace(f'{label}="', f'{name}="')
                family.add(text, len(lines))
            yield from self._pause()
            if len(lines) < RUN:
                return

    def _instruments(
        self, metric: Metric, instruments: list[tuple[Values, Instrument]]
    ) -> Iterator[bytes]:
        names = self._form.names
        labels = tuple(exposed_label(metric, label, names) for label in metric.labels)
        split = split_label(metric, names)
        place = metric.labels.index(split) if split in metric.labels else None
        for values, instrument in instruments:
            resource = ""
            if place is not None:
                resource = values[place]
                values = (*values[:place], "", *values[place + 1 :])
            name = exposed_name(metric, names, resource)
            text = label_text(labels, values)
            try:
                if isinstance(instrument, Histogram):
                    self._distribution(metric, name, text, instrument)
                else:
                    written = _sample(name, text, +instrument.value)
                    self._family(metric, name).add(written, 1)
            except Exception as failure:  # noqa: BLE001  the other metrics are readable
                self.failures.append((metric.name, failure))
            yield from self._pause()

    def _gauge(self, metric: Metric, value: float) -> None:
        self._family(metric, metric.name).add(_sample(metric.name, "", value), 1)

    def _distribution(self, metric: Metric, name: str, labels: str, values: Histogram) -> None:
        before = f"{labels}," if labels else ""
        if metric.kind is Kind.QUANTILES:
            count = values.count
            quantiles = values.quantiles(*FRACTIONS.values()) if count else [0] * len(FRACTIONS)
            lines = [
                f'{name}{{{before}quantile="{fraction}"}} {_scaled(value, metric.scale)}\n'
                for fraction, value in zip(FRACTIONS, quantiles, strict=True)
            ]
            self._family(metric, name).add("".join(lines), len(lines))
            counts = self._of_name(
                f"{name}_count",
                "unknown",  # readers add `_total` to the name of a counter that lacks it
                f"How many values {name} has.",
                metric,
            )
            counts.add(_sample(f"{name}_count", labels, count), 1)
            return
        buckets = values.buckets()
        if not buckets:
            return  # 25 lines that say nothing, for each API that no client uses
        lines = []
        reached, index = 0, 0
        for bound in BOUNDS:
            while index < len(buckets) and buckets[index][0] < bound:
                reached += buckets[index][1]
                index += 1
            le = repr(float(bound * metric.scale))
            lines.append(f'{name}_bucket{{{before}le="{le}"}} {reached}\n')
        count = reached + sum(each for _, each in buckets[index:])
        lines.append(f'{name}_bucket{{{before}le="+Inf"}} {count}\n')
        lines.append(_sample(f"{name}_sum", labels, values.total * metric.scale))
        lines.append(_sample(f"{name}_count", labels, count))
        self._family(metric, name).add("".join(lines), len(lines))

    def _family(self, metric: Metric, name: str) -> _Family:
        kind = "gauge"
        if metric.kind is Kind.BUCKETS:
            kind = "histogram"
        elif metric.kind is Kind.COUNTER:
            kind = "counter" if name.endswith("_total") else "unknown"
        return self._of_name(name, kind, metric.help, metric)

    def _of_name(self, name: str, kind: str, help: str, metric: Metric) -> _Family:
        family = self._families.get(name)
        if family is None:
            count_max = None
            if "partition" in metric.labels:
                count_max = self._form.partition_series_max
            family = self._families[name] = _Family(name, kind, help, count_max)
        return family

    def _renamed(self, metric: Metric) -> list[tuple[str, str]]:
        names = ((label, exposed_label(metric, label, self._form.names)) for label in metric.labels)
        return [(label, name) for label, name in names if label != name]

    def _pause(self) -> Iterator[bytes]:
        if self._clock() >= self._until:
            yield b""
            self._until = self._clock() + SLICE_S

    # writing

    def _written(self) -> Iterator[bytes]:
        openmetrics = self._form.openmetrics
        parts = []
        if not openmetrics:
            parts += [f"# {_one_line(each)}\n".encode() for each in self._comments]
        size = 0
        for family in self._families.values():
            if not family.texts:
                continue
            for text in (self._head(family), *family.texts):
                parts.append(text)
                size += len(text)
                if size >= CHUNK_BYTES:
                    yield b"".join(parts)
                    parts, size = [], 0
            family.texts.clear()
        parts.append(b"# EOF\n" if openmetrics else b"")
        yield b"".join(parts)

    def _head(self, family: _Family) -> bytes:
        name, kind = family.name, family.kind
        help = family.help.replace("\\", r"\\").replace("\n", r"\n")
        if self._form.openmetrics:
            help = help.replace('"', r"\"")
            if kind == "counter":
                name = name.removesuffix("_total")
        elif kind == "unknown":
            kind = "untyped"
        return f"# HELP {name} {help}\n# TYPE {name} {kind}\n".encode()


def _sample(name: str, labels: str, value: float) -> str:
    return f"{name}{{{labels}}} {value}\n" if labels else f"{name} {value}\n"


def _scaled(value: int, scale: float) -> str:
    """Return a quantile in the exposed unit; its buckets are 3 % wide."""
    return str(value) if scale == 1.0 else f"{value * scale:.6g}"


def _one_line(comment: str) -> str:
    return " ".join(comment.split())

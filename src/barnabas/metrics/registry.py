"""The registry: all instruments of one broker, by name and labels.

    requests = registry.counter("requests_total", "Requests answered.", api="Produce")
    requests.add()

Asking again for the same name and labels returns the same instrument, so parts need not pass them
around; hot paths keep the instrument. A name has one kind and one help text. Exporters, which are
elsewhere, read `snapshot()`. There is one registry per broker, never one per process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias, TypeVar

from barnabas.metrics.instruments import Counter, Gauge, Histogram, Meter

Labels: TypeAlias = tuple[tuple[str, str], ...]
Instrument: TypeAlias = Counter | Gauge | Histogram | Meter
InstrumentType = TypeVar("InstrumentType", Counter, Gauge, Histogram, Meter)

QUANTILES = (0.5, 0.99, 0.999)
"""The fields of a histogram in a snapshot."""


class Sample(NamedTuple):
    """The state of one instrument: its labels and its values by field.

    Counters and gauges have `value`; histograms `count`, `total`, `mean`, `p50`, `p99`, `p999`;
    meters `count`, `rate_1m`, `rate_5m`, `rate_15m`.
    """

    labels: Mapping[str, str]
    fields: Mapping[str, float]


class Family(NamedTuple):
    """All instruments of one name; `kind` is counter, gauge, histogram or meter."""

    name: str
    kind: str
    help: str
    samples: list[Sample]


class _Entry(NamedTuple):
    kind: type[Instrument]
    help: str
    instruments: dict[Labels, Instrument]


class Registry:
    """The instruments of one broker."""

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}

    def counter(self, name: str, help: str, **labels: str) -> Counter:
        """Return the counter of this name and these labels."""
        return self._instrument(name, help, labels, Counter, Counter)

    def gauge(self, name: str, help: str, read: Callable[[], float], **labels: str) -> Gauge:
        """Register a gauge that calls `read` for its value; it replaces an earlier one."""
        self.remove(name, **labels)
        return self._instrument(name, help, labels, Gauge, lambda: Gauge(read))

    def histogram(self, name: str, help: str, **labels: str) -> Histogram:
        """Return the histogram of this name and these labels."""
        return self._instrument(name, help, labels, Histogram, Histogram)

    def meter(self, name: str, help: str, now_ms: int, **labels: str) -> Meter:
        """Return the meter of this name and these labels; a new one counts from `now_ms` on."""
        return self._instrument(name, help, labels, Meter, lambda: Meter(now_ms))

    def remove(self, name: str, **labels: str) -> bool:
        """Remove one instrument (its partition or connection is gone); False if there is none."""
        entry = self._entries.get(name)
        if entry is None or entry.instruments.pop(_key(labels), None) is None:
            return False
        if not entry.instruments:
            del self._entries[name]
        return True

    def snapshot(self, now_ms: int) -> list[Family]:
        """Return the values of all instruments, in the order in which they were created."""
        return [
            Family(
                name,
                entry.kind.__name__.lower(),
                entry.help,
                [
                    Sample(dict(labels), _fields(instrument, now_ms))
                    for labels, instrument in entry.instruments.items()
                ],
            )
            for name, entry in self._entries.items()
        ]

    def _instrument(
        self,
        name: str,
        help: str,
        labels: Mapping[str, str],
        kind: type[InstrumentType],
        make: Callable[[], InstrumentType],
    ) -> InstrumentType:
        entry = self._entries.get(name)
        if entry is None:
            entry = self._entries[name] = _Entry(kind, help, {})
        assert entry.kind is kind, f"{name} is a {entry.kind.__name__}, not a {kind.__name__}"
        key = _key(labels)
        instrument = entry.instruments.get(key)
        if instrument is None:
            instrument = entry.instruments[key] = make()
        assert isinstance(instrument, kind)
        return instrument


def _key(labels: Mapping[str, str]) -> Labels:
    return tuple(sorted(labels.items()))


def _fields(instrument: Instrument, now_ms: int) -> dict[str, float]:
    if isinstance(instrument, Histogram):
        p50, p99, p999 = instrument.quantiles(*QUANTILES)
        return {
            "count": instrument.count,
            "total": instrument.total,
            "mean": instrument.mean,
            "p50": p50,
            "p99": p99,
            "p999": p999,
        }
    if isinstance(instrument, Meter):
        rates = zip(Meter.MINUTES, instrument.rates(now_ms), strict=True)
        return {"count": instrument.count} | {f"rate_{minutes}m": rate for minutes, rate in rates}
    return {"value": instrument.value}

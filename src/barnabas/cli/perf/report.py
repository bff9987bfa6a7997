"""How a measurement is shown: a table of the clients, histograms, or JSON."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from barnabas.cli.perf.histogram import LatencyHistogram
from barnabas.cli.perf.meter import MEGABYTE, Figures

PERCENTILES = (50.0, 95.0, 99.0, 99.9)
BAR_WIDTH = 40
WINDOW_S = 2.0
"""The rate on the live line is that of so many last seconds."""
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def client_version(client: str) -> str | None:
    """Return the version of a client's package."""
    try:
        return version(client)
    except PackageNotFoundError:
        return None


def document(client: str, figures: Figures) -> dict[str, Any]:
    """Return the figures of one kind of client as JSON can have them."""
    latencies = figures.latencies
    found: dict[str, Any] = {
        "client": client,
        "version": client_version(client),
        "records": figures.records,
        "bytes": figures.bytes,
        "failures": figures.failures,
        "first_failure": figures.first_failure,
        "seconds": round(figures.seconds, 3),
        "records_per_s": round(figures.records_per_s, 1),
        "mb_per_s": round(figures.mb_per_s, 3),
        "cpu_s": round(figures.cpu_s, 3),
    }
    if latencies.count:
        found["latency_ms"] = {
            "mean": latencies.mean / 1000,
            **{f"p{percent:g}": latencies.percentile(percent) / 1000 for percent in PERCENTILES},
            "max": latencies.max / 1000,
        }
        found["histogram"] = [
            {"from_ms": bar.low / 1000, "to_ms": bar.high / 1000, "records": bar.values}
            for bar in latencies.bars()
        ]
    return found


class LiveLine:
    """The line that is shown while clients are at work: what they do now, not on average."""

    def __init__(self, client: str) -> None:
        self._client = client
        self._seen: deque[tuple[float, int, int]] = deque([(0.0, 0, 0)])

    def text(self, figures: Figures) -> str:
        """Return the line for the figures of now."""
        now = (figures.seconds, figures.records, figures.bytes)
        if figures.seconds > self._seen[-1][0]:
            self._seen.append(now)
        while len(self._seen) > 2 and figures.seconds - self._seen[1][0] >= WINDOW_S:
            self._seen.popleft()
        seconds, records, size = (new - old for new, old in zip(now, self._seen[0], strict=True))
        parts = [self._client, f"{figures.seconds:.0f} s", f"{figures.records:,} records"]
        if seconds:
            parts.append(f"{records / seconds:,.0f} records/s")
            parts.append(f"{size / seconds / MEGABYTE:,.1f} MB/s")
        latencies = figures.latencies
        if latencies.count:
            low, high = latencies.percentile(50), latencies.percentile(99)
            parts.append(f"p50 {shown_time(low)}, p99 {shown_time(high)}")
        if figures.failures:
            parts.append(f"{figures.failures:,} failed")
        return "  ".join(parts)


Table = tuple[list[str], list[list[str]]]
"""The header and the rows."""


def rates(measured: Mapping[str, Figures]) -> Table:
    """Return what the clients did, side by side, and the CPU that a million records took."""
    header = ["CLIENT", "VERSION", "RECORDS", "FAILED", "RECORDS/S", "MB/S", "CPU-S/M"]
    rows = []
    for client, figures in measured.items():
        cpu = figures.cpu_s * 1e6 / figures.records if figures.records else 0.0
        row = [
            *(client, client_version(client) or "-"),
            *(str(figures.records), str(figures.failures)),
            *(f"{figures.records_per_s:.0f}", f"{figures.mb_per_s:.2f}", f"{cpu:.2f}"),
        ]
        rows.append(row)
    return header, rows


def latencies(measured: Mapping[str, Figures]) -> Table:
    """Return the latencies of the clients that have any, side by side."""
    header = ["LATENCY", "MEAN", *(f"P{percent:g}" for percent in PERCENTILES), "MAX"]
    rows = []
    for client, figures in measured.items():
        found = figures.latencies
        if found.count:
            times = [found.mean, *map(found.percentile, PERCENTILES), found.max]
            rows.append([client, *map(shown_time, times)])
    return header, rows


def histogram_lines(latencies: LatencyHistogram) -> list[str]:
    """Return the histogram for a terminal: a bar for each range of latencies."""
    bars = latencies.bars()
    most = max((bar.values for bar in bars), default=0)
    lines = []
    for bar in bars:
        share = f"{100 * bar.values / latencies.count:5.1f} %"
        low, high = shown_time(bar.low), shown_time(bar.high)
        lines.append(f"{low:>8} to {high:<8} {share} {_bar(bar.values / most)}".rstrip())
    return lines


def _bar(share: float) -> str:
    eighths = max(round(share * BAR_WIDTH * 8), 1 if share else 0)
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def shown_time(latency_us: float) -> str:
    """Return a latency in the unit that suits it."""
    if latency_us >= 1_000_000:
        return f"{latency_us / 1_000_000:.3g} s"
    if latency_us >= 1000:
        return f"{latency_us / 1000:.3g} ms"
    return f"{latency_us:.3g} µs"

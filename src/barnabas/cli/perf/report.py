"""How a measurement is shown: a table of the clients, histograms, or JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from barnabas.cli.perf.histogram import LatencyHistogram
from barnabas.cli.perf.meter import Figures

PERCENTILES = (50.0, 95.0, 99.0, 99.9)
BAR_WIDTH = 40
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def document(figures: Figures) -> dict[str, Any]:
    """Return the figures of one kind of client as JSON can have them."""
    latencies = figures.latencies
    found: dict[str, Any] = {
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
        found["histogram_us"] = [list(bar) for bar in latencies.bars()]
    return found


def live_line(figures: Figures) -> str:
    """Return the line that is shown while clients are at work."""
    latencies = figures.latencies
    parts = [
        f"{figures.records:,} records",
        f"{figures.records_per_s:,.0f} records/s",
        f"{figures.mb_per_s:,.1f} MB/s",
    ]
    if latencies.count:
        low, high = latencies.percentile(50), latencies.percentile(99)
        parts.append(f"p50 {shown_time(low)}, p99 {shown_time(high)}")
    if figures.failures:
        parts.append(f"{figures.failures:,} failed")
    return "  ".join(parts)


def table(measured: Mapping[str, Figures]) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows of the clients, side by side."""
    header = ["CLIENT", "RECORDS", "FAILED", "RECORDS/S", "MB/S", "CPU-S/M"]
    with_latencies = any(figures.latencies.count for figures in measured.values())
    if with_latencies:
        header += ["MEAN", *(f"P{percent:g}" for percent in PERCENTILES), "MAX"]
    rows = []
    for client, figures in measured.items():
        latencies = figures.latencies
        cpu = figures.cpu_s * 1e6 / figures.records if figures.records else 0.0
        row = [
            client,
            str(figures.records),
            str(figures.failures),
            f"{figures.records_per_s:.0f}",
            f"{figures.mb_per_s:.2f}",
            f"{cpu:.2f}",
        ]
        if with_latencies:
            times = [latencies.mean, *map(latencies.percentile, PERCENTILES), latencies.max]
            row += [shown_time(each) for each in times]
        rows.append(row)
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

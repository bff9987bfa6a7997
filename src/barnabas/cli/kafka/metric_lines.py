"""The metrics of a client, as the perf tests print them with `--print-metrics`."""

from __future__ import annotations

from collections.abc import Mapping


def metric_lines(metrics: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Return `group:name:{tags} : value` in alphabetical order, under a header."""
    values = {
        f"{group}:{name}:{{}}": value
        for group, named in metrics.items()
        for name, value in named.items()
    }
    if not values:
        return []
    width = max(map(len, values))
    lines = ["", f"{'Metric Name':<{width}}   Value"]
    for name, value in sorted(values.items()):
        shown = f"{value:.3f}" if isinstance(value, float) else str(value)
        lines.append(f"{name:<{width}} : {shown}")
    return lines

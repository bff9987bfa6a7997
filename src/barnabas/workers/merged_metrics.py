"""The metrics of several workers as one text, in which each series says whose it is.

Prometheus wants the series of a metric together, below its `# HELP` and `# TYPE`, so the texts
cannot just follow each other. The same text in any form of `barnabas.metrics.exposition`.
"""

from __future__ import annotations

from collections.abc import Iterable

END = b"# EOF"
"""The last line of OpenMetrics."""


def merged(texts: Iterable[tuple[int, bytes]]) -> bytes:
    """Return one text from those of workers, each with the worker's number."""
    families: dict[bytes, tuple[list[bytes], list[bytes]]] = {}
    has_end = False
    for number, text in texts:
        label = b'worker="%d"' % number
        series: list[bytes] = []
        for line in text.splitlines():
            if line == END:
                has_end = True
            elif line.startswith((b"# TYPE ", b"# HELP ", b"# UNIT ")):
                heads, series = families.setdefault(line.split(b" ", 3)[2], ([], []))
                if line not in heads:
                    heads.append(line)
            elif line and not line.startswith(b"#"):
                series.append(_labelled(line, label))
    lines = [line for heads, series in families.values() for line in (*heads, *series)]
    return b"".join(line + b"\n" for line in ([*lines, END] if has_end else lines))


def _labelled(series: bytes, label: bytes) -> bytes:
    """Return a series with one more label, its first."""
    name, brace, rest = series.partition(b"{")
    if not brace or b" " in name:  # a brace in what follows the value: an exemplar
        name, _, value = series.partition(b" ")
        return b"%s{%s} %s" % (name, label, value)
    return b"%s{%s%s%s" % (name, label, b"" if rest.startswith(b"}") else b",", rest)

"""A page of metrics in Prometheus' text format: the few series that are shown.

Names are those of the JMX exporter's common rules, under which Barnabas exposes its metrics, too;
what only Barnabas has is missing on Kafka's pages.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

BYTES_IN = "kafka_server_brokertopicmetrics_bytesin_total"
BYTES_OUT = "kafka_server_brokertopicmetrics_bytesout_total"
REQUESTS = "kafka_network_requestmetrics_requests_total"
TOTAL_TIME = "kafka_network_requestmetrics_totaltimems"
LOCAL_TIME = "kafka_network_requestmetrics_localtimems"
REQUEST_SECONDS = "barnabas_request_seconds"
LOOP_BUSY = "barnabas_loop_busy_ratio"
IDLE = "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent"
CONNECTIONS = "kafka_server_socket_server_metrics_connection_count"
MEMORY = "process_resident_memory_bytes"

READ = frozenset(
    (
        BYTES_IN,
        BYTES_OUT,
        REQUESTS,
        TOTAL_TIME,
        LOCAL_TIME,
        f"{REQUEST_SECONDS}_bucket",
        f"{REQUEST_SECONDS}_sum",
        LOOP_BUSY,
        IDLE,
        CONNECTIONS,
        MEMORY,
    )
)

Labels = tuple[tuple[str, str], ...]

_SERIES = re.compile(r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(r"\\(.)")


@dataclass(frozen=True, slots=True)
class Page:
    """The series that were found, by name and labels."""

    series: Mapping[str, Mapping[Labels, float]]

    def of(self, name: str) -> Mapping[Labels, float]:
        """Return the series of a name."""
        return self.series.get(name, {})

    def total(self, name: str) -> float | None:
        """Return the sum of a name's series; None if there is none.

        A series without labels is a total already.
        """
        found = self.of(name)
        if not found:
            return None
        return found[()] if () in found else sum(found.values())


def read_page(text: str) -> Page:
    """Read a page; lines that are not understood are skipped."""
    series: dict[str, dict[Labels, float]] = {}
    for line in text.splitlines():
        name = line.partition("{")[0].partition(" ")[0]
        if name not in READ:
            continue
        found = _SERIES.match(line)
        if found is None:
            continue
        try:
            value = float(found[3])
        except ValueError:
            continue
        labels = tuple(
            (label, _ESCAPED.sub(_unescaped, text))
            for label, text in _LABEL.findall(found[2] or "")
        )
        series.setdefault(name, {})[labels] = value
    return Page(series)


def _unescaped(found: re.Match[str]) -> str:
    return "\n" if found[1] == "n" else found[1]

"""Write docs/dashboards/*.json, dashboards for Grafana, from the panels that are listed here.

python tools/dashboards.py            write the files
python tools/dashboards.py --check    fail when a file is stale
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "dashboards"

CHOSEN = 'job=~"$job",instance=~"$instance"'
"""What every query is limited to; the two are variables of each dashboard."""
COLUMNS, WIDTH, HEIGHT = 24, 8, 7


class Panel(NamedTuple):
    """A chart, or a single number (`stat`), of queries with their legends."""

    title: str
    queries: dict[str, str]
    unit: str = "short"
    stat: bool = False
    doc: str = ""


class Dashboard(NamedTuple):
    """One file."""

    file: str
    title: str
    doc: str
    panels: list[Panel]


def of(name: str, matchers: str = "") -> str:
    """Return a selector of a metric of the chosen brokers."""
    return f"{name}{{{CHOSEN}{',' if matchers else ''}{matchers}}}"


def rate(name: str, by: str, matchers: str = "") -> str:
    """Return the rate of a counter, summed by labels."""
    return f"sum by ({by}) (rate({of(name, matchers)}[$__rate_interval]))"


def total(name: str) -> str:
    """Return the sum of a gauge over the chosen brokers."""
    return f"sum({of(name)})"


def quantile(fraction: float, name: str, by: str, matchers: str = "") -> str:
    """Return a quantile of a histogram over the chosen brokers."""
    buckets = rate(f"{name}_bucket", f"le, {by}" if by else "le", matchers)
    return f"histogram_quantile({fraction}, {buckets})"


def mean(name: str, by: str, matchers: str = "") -> str:
    """Return the mean of a histogram's recent values."""
    return f"{rate(f'{name}_sum', by, matchers)} / {rate(f'{name}_count', by, matchers)}"


CLUSTER = Dashboard(
    "barnabas-cluster",
    "Barnabas: cluster health",
    "Whether every partition is served, and who decided what.",
    [
        Panel("Brokers", {"brokers": f"count({of('barnabas_build_info')})"}, stat=True),
        Panel(
            "Active controllers",
            {"active": total("kafka_controller_kafkacontroller_activecontrollercount")},
            stat=True,
            doc="Must be 1.",
        ),
        Panel(
            "Offline partitions",
            {"offline": total("kafka_controller_kafkacontroller_offlinepartitionscount")},
            stat=True,
            doc="Partitions without a leader: nobody can write to them or read from them.",
        ),
        Panel(
            "Under min.insync.replicas",
            {"partitions": total("kafka_server_replicamanager_underminisrpartitioncount")},
            stat=True,
            doc="Producers with acks=all are rejected.",
        ),
        Panel(
            "Under-replicated",
            {"partitions": total("kafka_server_replicamanager_underreplicatedpartitions")},
            stat=True,
        ),
        Panel(
            "Failed directories",
            {"directories": total("kafka_log_logmanager_offlinelogdirectorycount")},
            stat=True,
        ),
        Panel(
            "ISR changes by cause",
            {"{{change}}: {{cause}}": rate("barnabas_isr_changes_total", "change, cause")},
            "cps",
            doc="Each change has one cause: a slow follower, a broker that is gone, a new replica.",
        ),
        Panel(
            "Elections by cause",
            {"{{cause}}": rate("barnabas_elections_total", "cause")},
            "cps",
        ),
        Panel(
            "Unclean elections",
            {
                "unclean": rate(
                    "kafka_controller_controllerstats_uncleanleaderelections_total", "instance"
                )
            },
            "cps",
            doc="Records may have been lost.",
        ),
        Panel(
            "Session with the coordination service",
            {"{{instance}}": of("barnabas_coordination_connected")},
            doc="1: connected. A broker without a session serves nothing that another might lead.",
        ),
        Panel(
            "Coordination latency",
            {
                "99 %": quantile(0.99, "barnabas_coordination_request_seconds", ""),
                "mean": mean("barnabas_coordination_request_seconds", "instance"),
            },
            "s",
        ),
        Panel(
            "Controller's queue",
            {
                "events": total("kafka_controller_controllereventmanager_eventqueuesize"),
                "requests": total("kafka_controller_controllerchannelmanager_totalqueuesize"),
            },
        ),
        Panel(
            "Records in",
            {
                "{{topic}}": rate(
                    "kafka_server_brokertopicmetrics_messagesin_total", "topic", 'topic!=""'
                )
            },
            "cps",
        ),
        Panel(
            "Bytes in",
            {
                "{{topic}}": rate(
                    "kafka_server_brokertopicmetrics_bytesin_total", "topic", 'topic!=""'
                )
            },
            "Bps",
        ),
        Panel(
            "Bytes out to consumers",
            {
                "{{topic}}": rate(
                    "kafka_server_brokertopicmetrics_bytesout_total", "topic", 'topic!=""'
                )
            },
            "Bps",
        ),
        Panel(
            "Slowest follower",
            {"{{instance}}": of("kafka_server_replicafetchermanager_maxlag")},
            doc="Records behind the leader.",
        ),
        Panel(
            "Oldest open transaction",
            {"{{instance}}": of("barnabas_transactions_oldest_open_seconds")},
            "s",
            doc="Consumers with isolation.level=read_committed wait for it.",
        ),
        Panel("Open transactions", {"{{instance}}": of("barnabas_transactions_open")}),
    ],
)

REQUESTS = Dashboard(
    "barnabas-requests",
    "Barnabas: requests",
    "Where the time of requests goes, phase by phase, and what they are answered.",
    [
        Panel(
            "Requests",
            {
                "{{request}}": rate(
                    "kafka_network_requestmetrics_requests_total", "request", 'request!="Fetch"'
                )
            },
            "reqps",
            doc="A fetch is counted as Fetch, too; here it is FetchConsumer or FetchFollower.",
        ),
        Panel(
            "Errors",
            {
                "{{request}} {{error}}": rate(
                    "kafka_network_requestmetrics_errors_total", "request, error", 'error!="NONE"'
                )
            },
            "cps",
        ),
        Panel(
            "Rejected",
            {"{{reason}}": rate("barnabas_rejections_total", "reason")},
            "cps",
        ),
        *(
            Panel(
                f"{api}: 99 % of each phase",
                {"{{phase}}": quantile(0.99, "barnabas_request_seconds", "phase", f'api="{api}"')},
                "s",
                doc="queue: waiting for its turn; local: in its handler; remote: waiting for "
                "followers, records or a disk; send: waiting for the client to read.",
            )
            for api in ("Produce", "Fetch", "OffsetCommit", "Metadata")
        ),
        Panel(
            "Mean time by API",
            {"{{api}}": mean("barnabas_request_seconds", "api", 'phase="total"')},
            "s",
        ),
        Panel(
            "Busy time by API",
            {"{{api}}": rate("barnabas_request_seconds_sum", "api", 'phase="local"')},
            "percentunit",
            doc="The part of the event loop's time that the handlers of an API take.",
        ),
        Panel(
            "Throttled by quota",
            {"{{quota}}": rate("barnabas_throttles_total", "quota")},
            "cps",
        ),
        Panel(
            "Waiting in purgatory",
            {
                "{{delayedOperation}}": "sum by (delayedOperation) "
                f"({of('kafka_server_delayedoperationpurgatory_numdelayedoperations')})"
            },
        ),
    ],
)

LOOP = Dashboard(
    "barnabas-loop",
    "Barnabas: event loop and process",
    "A broker is one event loop: what keeps it busy, and how late it is.",
    [
        Panel(
            "Loop lag",
            {
                "99 %": quantile(0.99, "barnabas_loop_lag_seconds", "instance"),
                "50 %": quantile(0.5, "barnabas_loop_lag_seconds", "instance"),
            },
            "s",
            doc="How late a timer fires. No request's time shows how long its bytes lay in the "
            "kernel while the loop was busy: this does.",
        ),
        Panel(
            "Busy",
            {"{{instance}}": of("barnabas_loop_busy_ratio")},
            "percentunit",
            doc="The part of its time for which the loop works. Above 0.9, add brokers.",
        ),
        Panel(
            "Stalls",
            {"{{cause}}": rate("barnabas_loop_stalls_total", "cause")},
            "cps",
            doc="How often the loop stood still for 100 ms or more, by what ran. The diary names "
            "the request or the task: `barnabas why broker ID`.",
        ),
        Panel(
            "Connections",
            {
                "{{instance}} {{listener}}": "sum by (instance, listener) "
                f"({of('kafka_server_socket_server_metrics_connection_count')})"
            },
        ),
        Panel(
            "New connections",
            {
                "{{listener}}": "sum by (listener) "
                f"({of('kafka_server_socket_server_metrics_connection_accept_rate')})"
            },
            "cps",
        ),
        Panel(
            "Failed logins",
            {
                "{{listener}}": rate(
                    "kafka_server_socket_server_metrics_failed_authentication_total", "listener"
                )
            },
            "cps",
        ),
        Panel(
            "CPU",
            {"{{instance}}": rate("process_cpu_seconds_total", "instance")},
            "percentunit",
            doc="More than 1: threads work beside the loop, for flushes and compaction.",
        ),
        Panel("Memory", {"{{instance}}": of("process_resident_memory_bytes")}, "bytes"),
        Panel(
            "Open files",
            {
                "{{instance}}": of("process_open_fds"),
                "limit of {{instance}}": of("process_max_fds"),
            },
        ),
        Panel(
            "Garbage collections",
            {"generation {{generation}}": rate("python_gc_collections_total", "generation")},
            "cps",
        ),
        Panel(
            "Longest garbage collections",
            {"99 %": quantile(0.99, "barnabas_gc_pause_seconds", "instance")},
            "s",
            doc="Each holds up the loop and all other threads.",
        ),
        Panel(
            "Flushes",
            {
                "99 %": of("kafka_log_logflushstats_logflushrateandtimems", 'quantile="0.99"'),
                "50 %": of("kafka_log_logflushstats_logflushrateandtimems", 'quantile="0.50"'),
            },
            "ms",
        ),
        Panel(
            "Dirtiest log",
            {"{{instance}}": of("kafka_log_logcleanermanager_max_dirty_percent")},
            "percent",
        ),
        Panel(
            "Scrapes",
            {"{{path}}": mean("barnabas_scrape_duration_seconds", "path")},
            "s",
            doc="How long a scrape takes, other work of the loop included.",
        ),
    ],
)

LAG = Dashboard(
    "barnabas-lag",
    "Barnabas: consumer lag",
    "How far groups are behind, in time and in records, and how they rebalance.",
    [
        Panel(
            "Lag in seconds",
            {
                "{{consumergroup}} {{topic}}": "max by (consumergroup, topic) "
                f"({of('barnabas_consumergroup_lag_seconds_max')})"
            },
            "s",
            doc="The age of the next record that the slowest partition has to read.",
        ),
        Panel(
            "Lag in records",
            {
                "{{consumergroup}} {{topic}}": "sum by (consumergroup, topic) "
                f"({of('kafka_consumergroup_lag_sum')})"
            },
        ),
        Panel(
            "Lag for readers of committed records",
            {
                "{{consumergroup}} {{topic}}": "sum by (consumergroup, topic) "
                f"({of('barnabas_consumergroup_stable_lag_sum')})"
            },
            doc="Up to the last stable offset: without what open transactions hold back.",
        ),
        Panel(
            "Slowest partitions",
            {
                "{{consumergroup}} {{topic}}-{{partition}}": "topk(10, "
                f"{of('barnabas_consumergroup_lag_seconds')})"
            },
            "s",
        ),
        Panel(
            "Consumed",
            {
                "{{consumergroup}} {{topic}}": "sum by (consumergroup, topic) (deriv("
                f"{of('kafka_consumergroup_current_offset_sum')}[$__rate_interval]))"
            },
            "cps",
        ),
        Panel(
            "Members",
            {"{{consumergroup}}": f"sum by (consumergroup) ({of('kafka_consumergroup_members')})"},
        ),
        Panel(
            "Rebalances",
            {"{{protocol}}": rate("barnabas_rebalance_seconds_count", "protocol")},
            "cps",
        ),
        Panel(
            "Length of rebalances",
            {
                "99 %": quantile(0.99, "barnabas_rebalance_seconds", "protocol"),
                "mean": mean("barnabas_rebalance_seconds", "protocol"),
            },
            "s",
        ),
        Panel(
            "Commits",
            {
                "{{instance}}": of("kafka_server_group_coordinator_metrics_offset_commit_rate"),
            },
            "cps",
        ),
    ],
)

DASHBOARDS = [CLUSTER, REQUESTS, LOOP, LAG]


def written(dashboard: Dashboard) -> str:
    """Return a dashboard as Grafana imports it."""
    panels: list[dict[str, Any]] = []
    x = y = 0
    for number, panel in enumerate(dashboard.panels, 1):
        width, height = (4, 4) if panel.stat else (WIDTH, HEIGHT)
        if x + width > COLUMNS or (panels and panels[-1]["gridPos"]["h"] != height and x):
            x, y = 0, y + panels[-1]["gridPos"]["h"]
        panels.append(_panel(panel, number, {"x": x, "y": y, "w": width, "h": height}))
        x += width
    content = {
        "title": dashboard.title,
        "uid": dashboard.file,
        "description": dashboard.doc,
        "tags": ["barnabas", "kafka"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {
            "list": [
                {"name": "datasource", "type": "datasource", "query": "prometheus"},
                _variable("job", "label_values(barnabas_build_info, job)"),
                _variable("instance", 'label_values(barnabas_build_info{job=~"$job"}, instance)'),
            ]
        },
        "panels": panels,
    }
    return json.dumps(content, indent=1) + "\n"


def _variable(name: str, query: str) -> dict[str, Any]:
    return {
        "name": name,
        "type": "query",
        "datasource": {"type": "prometheus", "uid": "${datasource}"},
        "query": query,
        "refresh": 2,
        "multi": True,
        "includeAll": True,
        "current": {"text": "All", "value": "$__all"},
    }


def _panel(panel: Panel, number: int, position: dict[str, int]) -> dict[str, Any]:
    return {
        "id": number,
        "title": panel.title,
        "description": panel.doc,
        "type": "stat" if panel.stat else "timeseries",
        "datasource": {"type": "prometheus", "uid": "${datasource}"},
        "gridPos": position,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + index), "expr": query, "legendFormat": legend}
            for index, (legend, query) in enumerate(panel.queries.items())
        ],
    }


def main() -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(description="Write the dashboards for Grafana.")
    parser.add_argument("--check", action="store_true", help="fail when a file is stale")
    check = parser.parse_args().check
    stale = False
    for dashboard in DASHBOARDS:
        path, text = FOLDER / f"{dashboard.file}.json", written(dashboard)
        if not check:
            FOLDER.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            print(
                f"{path.relative_to(ROOT)} is stale: run python tools/dashboards.py",
                file=sys.stderr,
            )
            stale = True
    return 1 if stale else 0


if __name__ == "__main__":
    raise SystemExit(main())

"""What a person and a program get to see of a measurement."""

from __future__ import annotations

import json

from barnabas.cli.perf.histogram import LatencyHistogram
from barnabas.cli.perf.meter import MEGABYTE, Figures
from barnabas.cli.perf.report import (
    LiveLine,
    client_version,
    document,
    histogram_lines,
    latencies,
    rates,
    shown_time,
)


def figures(records: int, seconds: float, *latencies_us: int, failures: int = 0) -> Figures:
    made = Figures()
    made.records, made.seconds, made.failures = records, seconds, failures
    made.bytes = records * 1024
    made.cpu_s = 0.5
    for latency_us in latencies_us:
        made.latencies.add(latency_us)
    return made


def test_times_have_the_unit_that_suits_them() -> None:
    shown = [shown_time(each) for each in (0.5, 999, 1000, 45_600, 1_230_000)]
    assert shown == ["0.5 µs", "999 µs", "1 ms", "45.6 ms", "1.23 s"]


def test_clients_are_side_by_side() -> None:
    header, rows = rates(
        {"barnabas": figures(1000, 2.0), "none-such": figures(10, 1.0, failures=1)}
    )
    one, other = (dict(zip(header, row, strict=True)) for row in rows)
    assert (one["CLIENT"], one["VERSION"]) == ("barnabas", client_version("barnabas"))
    assert (one["RECORDS"], one["RECORDS/S"], one["MB/S"]) == ("1000", "500", "0.49")
    assert one["CPU-S/M"] == "500.00"
    assert (other["VERSION"], other["FAILED"], other["RECORDS/S"]) == ("-", "1", "10")


def test_latencies_are_those_of_clients_that_have_any() -> None:
    measured = {"one": figures(2, 2.0, 1000, 3000), "other": figures(10, 1.0)}
    header, [row] = latencies(measured)
    found = dict(zip(header, row, strict=True))
    assert (found["LATENCY"], found["MEAN"], found["P50"]) == ("one", "2 ms", "1 ms")
    assert (found["P99.9"], found["MAX"]) == ("3 ms", "3 ms")
    assert latencies({"other": figures(1, 1.0)})[1] == []


def test_tables_fit_on_a_narrow_terminal() -> None:
    measured = {"confluent-kafka": figures(10**9, 100.0, *[999_000_000] * 3, failures=1234)}
    for header, [row] in (rates(measured), latencies(measured)):
        widths = [max(len(a), len(b)) for a, b in zip(header, row, strict=True)]
        assert sum(widths) + 2 * len(widths) <= 80


def test_json_has_all_of_it() -> None:
    found = json.loads(json.dumps(document("barnabas", figures(1000, 2.0, 1500, 1500, 60_000))))
    assert (found["client"], found["records_per_s"], found["cpu_s"]) == ("barnabas", 500.0, 0.5)
    assert found["version"] == client_version("barnabas")
    latency = found["latency_ms"]
    assert latency.keys() == {"mean", "p50", "p95", "p99", "p99.9", "max"}
    assert (latency["mean"], latency["max"]) == (21.0, 60.0)
    assert sum(bar["records"] for bar in found["histogram"]) == 3
    assert found["histogram"][0] == {"from_ms": 1.0, "to_ms": 2.0, "records": 2}
    assert "latency_ms" not in document("barnabas", figures(1000, 2.0))


def test_bars_are_as_long_as_their_shares() -> None:
    histogram = LatencyHistogram()
    histogram.add(1500, 8)
    histogram.add(3000, 4)
    histogram.add(70_000)
    full, half, *empty, last = histogram_lines(histogram)
    assert full == "    1 ms to 2 ms      61.5 % " + "█" * 40
    assert half == "    2 ms to 5 ms      30.8 % " + "█" * 20
    assert [line.split("%")[1] for line in empty] == ["", "", ""]
    assert last.split("%")[1] == " █████"
    assert histogram_lines(LatencyHistogram()) == []


def test_the_live_line_has_the_rate_of_now() -> None:
    line = LiveLine("barnabas")
    assert line.text(Figures()) == "barnabas  0 s  0 records"
    assert "1,000 records/s" in line.text(figures(1000, 1.0))
    assert "1,000 records/s" in line.text(figures(2000, 2.0))
    line.text(figures(2000, 3.0))
    stalled = line.text(figures(2000, 4.0, 2000, failures=3))
    assert stalled == (
        "barnabas  4 s  2,000 records  0 records/s  0.0 MB/s  p50 2 ms, p99 2 ms  3 failed"
    )
    made = figures(2001, 5.0)
    made.bytes += MEGABYTE
    assert "0.5 MB/s" in line.text(made)

"""A scrape of many partitions: how long it takes, and the longest pause of the broker's loop.

First the writer alone, with 17 series per partition of a collector that costs nothing. Then a real
broker with a topic of so many partitions, scraped by another process: as text, packed, and as
OpenMetrics. The pause is the longest time between two turns of the loop that are due every
millisecond, by the clock and in CPU time of the loop's thread; the one by the clock without scrapes
is the machine's own.

    python -m bench.metrics --partitions 10000
    python -m bench.metrics --quick
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from barnabas.broker.broker import Broker
from barnabas.config.broker import BrokerOptions
from barnabas.metadata.topic_store import NewTopic
from barnabas.metrics.exposition import Exposition, Form
from barnabas.metrics.metric import Kind, Metric, label_text
from barnabas.metrics.registry import Registry
from barnabas.testing.thread import new_loop

SERIES_PER_PARTITION = 17
SCRAPE_MS_MAX, PAUSE_MS_MAX = 100, 5
OPENMETRICS = "application/openmetrics-text;version=1.0.0"
FORMS = {
    "text": {},
    "text, gzip": {"Accept-Encoding": "gzip"},
    "OpenMetrics, gzip": {"Accept": OPENMETRICS, "Accept-Encoding": "gzip"},
}
CLIENT = """
import json, sys, time, urllib.request
url, headers, count = sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3])
times, sizes = [], []
sys.stdin.readline()
for _ in range(count):
    began = time.perf_counter()
    request = urllib.request.Request(url, headers=headers)
    with urllib.request.urlopen(request, timeout=120) as answer:
        sizes.append(len(answer.read()))
    times.append(time.perf_counter() - began)
    time.sleep(1.2)  # within a second the same bytes are sent again
print(json.dumps([times, sizes]))
"""


class Synthetic:
    """A collector of partitions whose numbers cost nothing to read."""

    def __init__(self, partitions: int) -> None:
        labels = ("topic", "partition")
        self._texts = [label_text(labels, ("orders", str(each))) for each in range(partitions)]
        self._metrics = [
            Metric(f"bench_partition_{number}", Kind.GAUGE, "A number.", labels)
            for number in range(SERIES_PER_PARTITION)
        ]

    def collect(self) -> Iterator[tuple[Metric, Any]]:
        """Yield the series of each metric."""
        for metric in self._metrics:
            yield metric, ((text, 123_456) for text in self._texts)


def writer_alone(partitions: int) -> tuple[float, float, int]:
    """Return seconds in all, the longest slice, and the bytes."""
    registry = Registry()
    registry.add_collector(Synthetic(partitions))
    chunks = Exposition(registry, Form(), time.perf_counter).chunks()
    longest, size = 0.0, 0
    began = last = time.perf_counter()
    for chunk in chunks:
        now = time.perf_counter()
        longest, last = max(longest, now - last), now
        size += len(chunk)
    return last - began, longest, size


class Pauses:
    """Measures the longest time between two turns of the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._last = loop.time()
        self._last_cpu = time.thread_time()
        self.restart()
        self._tick()

    def restart(self) -> None:
        """Forget the pauses so far."""
        self.longest = self.longest_cpu = 0.0
        self._began, self._began_cpu = self._loop.time(), time.thread_time()

    @property
    def busy(self) -> float:
        """Return the CPU seconds of the loop's thread per second."""
        return (time.thread_time() - self._began_cpu) / (self._loop.time() - self._began)

    def cpu(self, idle: float) -> float:
        """Return the CPU seconds of the loop's thread beyond those of an idle loop."""
        waited = self._loop.time() - self._began
        return time.thread_time() - self._began_cpu - idle * waited

    @property
    def shown(self) -> list[str]:
        """Return both in milliseconds."""
        return [f"{self.longest * 1000:.1f}", f"{self.longest_cpu * 1000:.1f}"]

    def _tick(self) -> None:
        now = self._loop.time()
        cpu = time.thread_time()
        self.longest = max(self.longest, now - self._last - 0.001)
        self.longest_cpu = max(self.longest_cpu, cpu - self._last_cpu)
        self._last, self._last_cpu = now, cpu
        self._loop.call_later(0.001, self._tick)


async def real_broker(partitions: int, scrapes: int, folder: Path, table: Table) -> None:
    """Add a row for each form of a scrape."""
    options = {
        "broker.id": "0",
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dirs": str(folder),
        "barnabas.metrics.listener": "127.0.0.1:0",
        "barnabas.metrics.partitions.max": str(partitions),
    }
    broker = Broker(BrokerOptions.parse(options))
    await broker.start()
    try:
        topic = NewTopic("orders", partitions, 1)
        (made,) = await broker.topics.create([topic], dry_run=False, timeout_ms=600_000)
        if isinstance(made, Exception):
            raise made
        assert broker.metrics_address is not None
        host, port = broker.metrics_address[:2]
        pauses = Pauses(asyncio.get_running_loop())
        await asyncio.sleep(2)
        gc.collect()  # as `barnabas start` does
        gc.freeze()
        gc.set_threshold(20_000, 20, 50)
        pauses.restart()
        await asyncio.sleep(5)
        idle = pauses.busy
        table.add_row("no scrape", "", "", "", *pauses.shown)
        for path in ("/metrics", "/metrics/cluster"):
            for form, headers in FORMS.items():
                arguments = [f"http://{host}:{port}{path}", json.dumps(headers), str(scrapes)]
                client = await asyncio.create_subprocess_exec(
                    sys.executable,
                    "-c",
                    CLIENT,
                    *arguments,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                )
                await asyncio.sleep(0.5)  # a fork is a pause, too
                pauses.restart()
                out, _ = await client.communicate(b"\n")
                times, sizes = json.loads(out)
                table.add_row(
                    f"{path}, {form}",
                    f"{statistics.median(times) * 1000:.0f} [{max(times) * 1000:.0f}]",
                    f"{pauses.cpu(idle) / scrapes * 1000:.0f}",
                    f"{sizes[-1] / 1e6:.2f}",
                    *pauses.shown,
                )
    finally:
        await broker.stop()


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--scrapes", type=int, default=10)
    parser.add_argument("--quick", action="store_true", help="1,000 partitions, 3 scrapes")
    arguments = parser.parse_args()
    partitions = 1000 if arguments.quick else arguments.partitions
    scrapes = 3 if arguments.quick else arguments.scrapes
    console = Console()
    seconds, longest, size = min(writer_alone(partitions) for _ in range(5))
    series = partitions * SERIES_PER_PARTITION
    console.print(
        f"writer alone: {series} series in {seconds * 1000:.0f} ms, {size / 1e6:.1f} MB, "
        f"{seconds / series * 1e6:.2f} µs a series, longest slice {longest * 1000:.1f} ms"
    )
    table = Table(
        title=f"{partitions} partitions; the aim is {SCRAPE_MS_MAX} ms a scrape, and no pause "
        f"over {PAUSE_MS_MAX} ms"
    )
    for head in ("scrape", "ms, median [max]", "CPU, ms", "MB", "pause, ms", "CPU, ms"):
        table.add_column(head, justify="left" if head == "scrape" else "right")
    with (
        tempfile.TemporaryDirectory(prefix="barnabas-bench-") as folder,
        asyncio.Runner(loop_factory=new_loop) as runner,
    ):
        runner.run(real_broker(partitions, scrapes, Path(folder), table))
    console.print(table)


if __name__ == "__main__":
    main()

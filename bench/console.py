"""A search of the console over many records: first hits, how fast it reads, what producers notice.

One topic has JSON records and, as its first and its last record, one word each. The page of a
search is loaded as a browser does it: it follows the link to what is searched next until there are
enough rows. Text is looked for in the bytes; a JSON path takes decoding every record. Then the same
paced producer writes to another topic, with and without a search beside it, in turns.

    python -m bench.console                        10 million records
    python -m bench.console --quick                300,000
    python -m bench.console --records 1000000 --seconds 20 --rounds 5
"""

from __future__ import annotations

import argparse
import html
import itertools
import json
import re
import statistics
import tempfile
import threading
import time
import urllib.request
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from bench.filling import BATCH_RECORDS, fill, keyed_batches
from bench.load import Load
from bench.pair import create_topic, delete_topic
from bench.report import machine
from rich.console import Console
from rich.table import Table
from tools.processes import RunningBroker, free_port, start_barnabas

from barnabas.records.builder import build_batch

RECORDS = 10_000_000
TOPIC, PARTITIONS = "history", 4
RATE, SIZE = 1000, 100
FIRST_HIT_S_MAX, P99_TIMES_MAX = 1.0, 1.5
OLDEST, NEWEST = {"event": "oldest", "balance": -1}, {"event": "newest", "balance": -2}
SEARCHES = {
    "text": ('q="newest"', 'q="oldest"'),
    "JSON path": ("q=value.balance <= -2", "q=value.balance < 0 and value.balance > -2"),
}
"""Filters that only the newest record passes, and only the oldest."""
NEVER = {
    "text": 'q="is in no record"',
    "JSON path": "q=value.balance < -2",
}
MORE = re.compile(r'id="more"[^>]* hx-get="([^"]+)"')
ROWS = re.compile(r'<a href="[^"]*/\d+/\d+\?')


@dataclass(frozen=True)
class Scale:
    """How much of everything a run does."""

    records: int
    seconds: float
    rounds: int


class Pages:
    """The console of a broker, asked as its pages ask."""

    def __init__(self, url: str) -> None:
        self._url = url

    def search(self, query: str) -> Generator[tuple[int, str], None, None]:
        """Yield how many rows each answer has, with its text, until the search is over."""
        path = f"/topics/{TOPIC}/records?{quote(query, safe='=')}&limit=20"
        headers: dict[str, str] = {}
        while path:
            request = urllib.request.Request(self._url + path, headers=headers)
            with urllib.request.urlopen(request, timeout=60) as answer:
                text = answer.read().decode()
            yield len(ROWS.findall(text)), text
            following = MORE.search(text)
            path = html.unescape(following[1]) if following else ""
            headers = {"HX-Request": "true"}


def fill_topic(broker: RunningBroker, records: int) -> None:
    """Write a word, so many records, and another word."""
    now_ms = int(time.time() * 1000)
    batches = keyed_batches(100 * BATCH_RECORDS, "lz4")
    words = [build_batch([(now_ms, None, json.dumps(each).encode())]) for each in (OLDEST, NEWEST)]
    create_topic(broker, TOPIC, PARTITIONS)
    many = itertools.islice(itertools.cycle(batches), records // BATCH_RECORDS)
    fill(broker, TOPIC, [(0, words[0])])
    fill(broker, TOPIC, ((at % PARTITIONS, batch) for at, batch in enumerate(many)))
    fill(broker, TOPIC, [(0, words[1])])


def first_hits(pages: Pages, query: str, rounds: int) -> list[float]:
    """Return the seconds until the newest record was on the page."""
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        for rows, _text in pages.search(query):
            if rows:
                break
        else:
            raise AssertionError(f"{query}: nothing was found")
        times.append(time.perf_counter() - began)
    return times


def whole_search(pages: Pages, broker: RunningBroker, query: str) -> tuple[float, float, int]:
    """Search until the oldest record is found; return seconds, CPU seconds and answers."""
    began, cpu, answers, found = time.perf_counter(), broker.cpu_seconds(), 0, 0
    for rows, _text in pages.search(query):
        answers += 1
        found += rows
    assert found == 1, f"{query}: {found} rows"
    return time.perf_counter() - began, broker.cpu_seconds() - cpu, answers


def cpu_once_cancelled(pages: Pages, broker: RunningBroker) -> tuple[float, float]:
    """Return the CPU seconds per second of a search, and after one has left its page."""
    search = pages.search(NEVER["JSON path"])
    next(search)
    began, cpu = time.perf_counter(), broker.cpu_seconds()
    next(search)
    busy = (broker.cpu_seconds() - cpu) / (time.perf_counter() - began)
    search.close()
    began, cpu = time.perf_counter(), broker.cpu_seconds()
    time.sleep(2)
    return busy, (broker.cpu_seconds() - cpu) / (time.perf_counter() - began)


@contextmanager
def searching(pages: Pages, query: str) -> Iterator[list[int]]:
    """Search all the time, beside something else; the list has the answers' numbers of rows."""
    answers: list[int] = []
    failures: list[BaseException] = []
    ending = threading.Event()

    def run() -> None:
        try:
            while not ending.is_set():
                for rows, _text in pages.search(query):
                    answers.append(rows)
                    if ending.is_set():
                        return
        except BaseException as failure:  # noqa: BLE001  raised again by the one who waits
            failures.append(failure)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield answers
    finally:
        ending.set()
        thread.join()
    if failures:
        raise failures[0]


def beside(
    pages: Pages, broker: RunningBroker, load: Load, scale: Scale
) -> dict[str, list[dict[str, Any]]]:
    """Return what a paced producer saw in each round: alone, and beside each kind of search."""
    seen: dict[str, list[dict[str, Any]]] = {"alone": [], **{name: [] for name in NEVER}}

    def measure(name: str) -> None:
        topic = f"paced-{time.monotonic_ns()}"
        create_topic(broker, topic)
        cpu = broker.cpu_seconds()
        found = load.run(
            "latency", broker.bootstrap, topic, RATE, scale.seconds, SIZE, acks="1", linger_ms=0
        )
        found["cpu_s"] = broker.cpu_seconds() - cpu
        seen[name].append(found)
        delete_topic(broker, topic)

    for _ in range(scale.rounds):
        measure("alone")
        for name, query in NEVER.items():
            with searching(pages, query) as answers:
                measure(name)
            assert answers, "no search was running"
    return seen


def spread(values: list[float], unit: float = 1, digits: int = 2) -> str:
    """Return the median with the smallest and the largest."""
    shown = [statistics.median(values), min(values), max(values)]
    middle, least, most = (f"{each * unit:,.{digits}f}" for each in shown)
    return f"{middle} [{least}-{most}]"


def run(scale: Scale, console: Console) -> None:
    """Measure, and print two tables."""
    load = Load.build()
    with tempfile.TemporaryDirectory(prefix="barnabas-bench-") as folder:
        port = free_port()
        options = {"barnabas.console.listener": f"127.0.0.1:{port}"}
        broker = start_barnabas(Path(folder) / "data", options=options)
        try:
            fill_topic(broker, scale.records)
            pages = Pages(f"http://127.0.0.1:{port}")
            console.print(f"{machine()}; {load.name}", highlight=False)
            show_search(pages, broker, scale, console)
            show_beside(beside(pages, broker, load, scale), scale, console)
        finally:
            broker.stop()


def show_search(pages: Pages, broker: RunningBroker, scale: Scale, console: Console) -> None:
    """Print how fast records are found."""
    table = Table(
        title=f"Search over {scale.records:,} records; the aim is a first hit within "
        f"{FIRST_HIT_S_MAX:.0f} s if it is new"
    )
    for head in ("filter", "newest found, ms", "oldest found, s", "records/s", "CPU, s", "answers"):
        table.add_column(head, justify="left" if head == "filter" else "right")
    for name, (newest, oldest) in SEARCHES.items():
        first_hits(pages, newest, 1)  # the pages are loaded
        times = first_hits(pages, newest, max(scale.rounds, 5))
        took, cpu, answers = whole_search(pages, broker, oldest)
        rate = f"{scale.records / took:,.0f}"
        table.add_row(name, spread(times, 1000, 0), f"{took:.1f}", rate, f"{cpu:.1f}", str(answers))
    console.print(table)
    busy, left = cpu_once_cancelled(pages, broker)
    console.print(f"CPU seconds per second of a search: {busy:.2f}; once it is left: {left:.3f}")


def show_beside(seen: dict[str, list[dict[str, Any]]], scale: Scale, console: Console) -> None:
    """Print what producers notice."""
    table = Table(
        title=f"Produce at {RATE:,} records/s beside a search, {scale.rounds} rounds of "
        f"{scale.seconds:g} s in turns; the aim is at most {P99_TIMES_MAX} times the p99"
    )
    for head in ("search", "p50, ms", "p99, ms", "times p99", "broker's CPU, s"):
        table.add_column(head, justify="left" if head == "search" else "right")
    alone = statistics.median(each["ack_p99_ms"] for each in seen["alone"])
    for name, rounds in seen.items():
        p99 = [each["ack_p99_ms"] for each in rounds]
        table.add_row(
            "none" if name == "alone" else name,
            spread([each["ack_p50_ms"] for each in rounds]),
            spread(p99),
            "" if name == "alone" else f"{statistics.median(p99) / alone:.2f}×",
            spread([each["cpu_s"] for each in rounds], digits=1),
        )
    console.print(table)


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--records", type=int, default=RECORDS)
    parser.add_argument("--seconds", type=float, default=10.0, help="of each measured round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="300,000 records, 2 rounds of 3 s")
    arguments = parser.parse_args()
    scale = Scale(arguments.records, arguments.seconds, arguments.rounds)
    run(Scale(300_000, 3.0, 2) if arguments.quick else scale, Console())


if __name__ == "__main__":
    main()

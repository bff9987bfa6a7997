"""One client in a process of its own: what it reads, what it writes."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator
from typing import IO, Any

import pytest

from barnabas.cli.perf import worker
from barnabas.cli.perf.meter import Meter
from barnabas.cli.perf.plan import Plan


class Worker:
    """A worker that runs here, with pipes for what it reads."""

    def __init__(self, orders: IO[str], capsys: pytest.CaptureFixture[str]) -> None:
        self.orders = orders
        self._capsys = capsys

    def documents(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._capsys.readouterr().out.splitlines()]


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Worker]:
    reading, writing = os.pipe()
    with os.fdopen(reading) as stdin, os.fdopen(writing, "w") as orders:
        monkeypatch.setattr(sys, "stdin", stdin)
        print(Plan("produce", "t", partitions=(1, 2)).encoded(), file=orders, flush=True)
        before = set(threading.enumerate())
        yield Worker(orders, capsys)
        orders.close()
        for thread in set(threading.enumerate()) - before:
            thread.join(30)


def test_a_worker_waits_until_it_may_start(here: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Plan] = []

    def run(plan: Plan, meter: Meter, stop: threading.Event) -> None:
        seen.append(plan)
        start = threading.Timer(0.1, lambda: print("start", file=here.orders, flush=True))
        start.start()
        meter.begin()
        start.join()
        assert not stop.is_set()
        meter.read(3, 30)
        here.orders.close()
        assert stop.wait(30)
        meter.end()

    monkeypatch.setattr(worker, "run", run)
    assert worker.main() == 0
    first, *_, last = here.documents()
    assert (first["ready"], first["records"], first.get("done")) == (True, 0, None)
    assert (last["done"], last["records"], last["error"]) == (True, 3, None)
    assert seen[0].partitions == (1, 2)


def test_a_worker_reports_why_it_failed(here: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(plan: Plan, meter: Meter, stop: threading.Event) -> None:
        raise ValueError("two\n lines")

    monkeypatch.setattr(worker, "run", run)
    assert worker.main() == 1
    last = here.documents()[-1]
    assert (last["ready"], last["done"], last["error"]) == (True, True, "two lines")


def test_a_client_that_does_not_end_is_left(here: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its command may have been killed, and it may wait for a broker that is gone."""
    left = threading.Event()
    codes: list[int] = []

    def leave(code: int) -> None:
        codes.append(code)
        left.set()

    def run(plan: Plan, meter: Meter, stop: threading.Event) -> None:
        here.orders.close()
        assert left.wait(30)

    monkeypatch.setattr(worker, "ENDING_S", 0.0)
    monkeypatch.setattr("os._exit", leave)
    monkeypatch.setattr(worker, "run", run)
    assert worker.main() == 0
    assert codes == [1]

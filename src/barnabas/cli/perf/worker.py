"""One client of a measurement, in a process of its own.

The plan is the first line of standard input. The client connects, writes a document with `ready`,
and starts when the next line arrives, as the others do. Figures leave on standard output, a JSON
document per line, twice a second and at the end. The end of standard input ends the measurement
early, not its report: it comes when the command asks for it, and when the command was killed.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from typing import IO

from barnabas.cli.perf.meter import Meter
from barnabas.cli.perf.plan import Plan

REPORT_S = 0.5
ENDING_S = 30.0
"""A client that still waits so long after it was asked to end is left: nobody reads its report."""


def main() -> int:
    """Carry out the plan."""
    plan = Plan.decoded(sys.stdin.readline())
    start, stop, over = threading.Event(), threading.Event(), threading.Event()
    ready = threading.Event()

    def wait_for_others() -> None:
        ready.set()
        start.wait()

    meter = Meter(wait_for_others)
    threading.Thread(target=_follow, args=(sys.stdin, start, stop, over), daemon=True).start()
    reporter = threading.Thread(target=_report, args=(meter, ready, over), daemon=True)
    reporter.start()
    failure = None
    try:
        run(plan, meter, stop)
    except Exception as reason:  # noqa: BLE001  another client's, of whatever kind
        failure = _text(reason)
    over.set()
    ready.set()
    reporter.join()
    _write({**meter.document(), "ready": True, "done": True, "error": failure})
    return 1 if failure else 0


def run(plan: Plan, meter: Meter, stop: threading.Event) -> None:
    """Do what the plan says with the client that it names."""
    if plan.action == "produce":
        from barnabas.cli.perf.producers import produce

        produce(plan, meter, stop)
    elif plan.action == "consume":
        from barnabas.cli.perf.consumers import consume

        consume(plan, meter, stop)
    else:
        from barnabas.cli.perf.round_trips import measure_round_trips

        measure_round_trips(plan, meter, stop)


def _text(failure: BaseException) -> str:
    return " ".join(str(failure).split()) or type(failure).__name__


def _follow(
    orders: IO[str], start: threading.Event, stop: threading.Event, over: threading.Event
) -> None:
    orders.readline()
    start.set()
    orders.read()
    stop.set()
    if not over.wait(ENDING_S):
        os._exit(1)


def _report(meter: Meter, ready: threading.Event, over: threading.Event) -> None:
    ready.wait()
    while True:
        _write({**meter.document(), "ready": True})
        if over.wait(REPORT_S):
            return


def _write(document: object) -> None:
    try:
        print(json.dumps(document), flush=True)
    except OSError:
        os._exit(1)  # nobody reads: the command has ended


if __name__ == "__main__":
    # A client's thread may still wait for something: what was measured is written.
    code = main()
    sys.stdout.flush()
    os._exit(code)

"""One client of a measurement, in a process of its own.

The plan comes on standard input; figures leave on standard output, a JSON document per line, twice
a second and at the end. SIGINT and SIGTERM end the measurement early, not its report.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading

from barnabas.cli.perf.meter import Meter
from barnabas.cli.perf.plan import Plan

REPORT_S = 0.5


def main() -> int:
    """Carry out the plan."""
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    plan = Plan.decoded(sys.stdin.readline())
    meter = Meter()
    over = threading.Event()
    reporter = threading.Thread(target=_report, args=(meter, over), daemon=True)
    reporter.start()
    failure = None
    try:
        run(plan, meter, stop)
    except Exception as reason:  # noqa: BLE001  another client's, of whatever kind
        failure = _text(reason)
    over.set()
    reporter.join()
    _write({**meter.document(), "done": True, "error": failure})
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


def _report(meter: Meter, over: threading.Event) -> None:
    while not over.wait(REPORT_S):
        _write(meter.document())


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

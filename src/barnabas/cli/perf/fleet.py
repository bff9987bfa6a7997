"""Runs several clients at once, each in a process of its own, and reads their figures."""

from __future__ import annotations

import json
import selectors
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

from barnabas.cli.perf.meter import Figures
from barnabas.cli.perf.plan import Plan
from barnabas.model.errors import BarnabasError

ENDING_S = 15.0
"""How long clients may take to end after they were asked to."""


class MeasurementError(BarnabasError):
    """A client could not do its part."""


class Fleet:
    """Clients at work; `stop` ends them early."""

    def __init__(self, plans: Sequence[Plan]) -> None:
        self._documents: list[dict[str, Any]] = [{} for _ in plans]
        self._plans = plans
        self._processes: list[subprocess.Popen[bytes]] = []
        self.stopped = False

    def stop(self) -> None:
        """Ask all clients to end, and to report what they have done."""
        self.stopped = True
        for process in self._processes:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)

    def figures(self) -> Figures:
        """Return what all clients have done so far."""
        figures = Figures()
        for document in self._documents:
            if document:
                figures.add(document)
        return figures

    def run(self, show: Callable[[Figures], None], enough: int | None = None) -> Figures:
        """Run until all have ended; `enough` records in all end them early.

        Raise MeasurementError with the reason of the first client that failed.
        """
        try:
            for plan in self._plans:
                self._start(plan)
            self._read(show, enough)
        finally:
            for process in self._processes:
                self._end(process)
        errors = [each["error"] for each in self._documents if each.get("error")]
        silent = [each for each in self._documents if not each.get("done")]
        if errors:
            raise MeasurementError(errors[0])
        if silent and not self.stopped:
            raise MeasurementError("a client's process ended without a report")
        return self.figures()

    def _start(self, plan: Plan) -> None:
        process = subprocess.Popen(
            [sys.executable, "-m", "barnabas.cli.perf.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._processes.append(process)
        assert process.stdin is not None
        process.stdin.write(plan.encoded().encode() + b"\n")
        process.stdin.close()

    def _read(self, show: Callable[[Figures], None], enough: int | None) -> None:
        with selectors.DefaultSelector() as selector:
            for index, process in enumerate(self._processes):
                assert process.stdout is not None
                selector.register(process.stdout, selectors.EVENT_READ, index)
            while selector.get_map():
                for key, _ in selector.select():
                    process = self._processes[key.data]
                    assert process.stdout is not None
                    line = process.stdout.readline()
                    if not line:
                        selector.unregister(process.stdout)
                        continue
                    self._documents[key.data] = json.loads(line)
                figures = self.figures()
                show(figures)
                if enough is not None and figures.records >= enough and not self.stopped:
                    self.stop()

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        try:
            process.wait(ENDING_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        assert process.stdout is not None
        process.stdout.close()

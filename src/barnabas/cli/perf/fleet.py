"""Runs several clients at once, each in a process of its own, and reads their figures.

They start together, when all are connected. What a worker reads and writes: see `worker`.
"""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from barnabas.cli.perf.meter import Figures
from barnabas.cli.perf.plan import Plan
from barnabas.model.errors import BarnabasError

ENDING_S = 15.0
"""How long clients may take to end after they were asked to."""
LOOK_S = 0.5


class MeasurementError(BarnabasError):
    """A client could not do its part."""


class Client:
    """A worker process, and the last document that it wrote."""

    def __init__(self, plan: Plan) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "barnabas.cli.perf.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            process_group=0,  # Ctrl-C is for the command, which asks its clients to end
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._orders = self._process.stdin
        self.stdout = self._process.stdout.fileno()
        self._unread = b""
        self.document: dict[str, Any] = {}
        self.ended = False
        self._order(plan.encoded().encode() + b"\n")

    @property
    def is_connected(self) -> bool:
        """Whether it is ready to start, or will never be."""
        return self.ended or bool(self.document.get("ready"))

    def start(self) -> None:
        """Let it start."""
        self._order(b"start\n")

    def stop(self) -> None:
        """Ask it to end, and to report what it has done."""
        self._orders.close()

    def read(self) -> None:
        """Read what it has written; once it has closed its output, it has ended."""
        data = os.read(self.stdout, 1 << 16)
        self.ended = not data
        *lines, self._unread = (self._unread + data).split(b"\n")
        if lines:
            self.document = json.loads(lines[-1])

    def end(self, within_s: float) -> None:
        """Wait for the end of the process, and force it after so long."""
        self.stop()
        try:
            self._process.wait(within_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _order(self, line: bytes) -> None:
        # It may have ended, and a signal may have stopped it meanwhile.
        with suppress(BrokenPipeError, ValueError):
            self._orders.write(line)


class Fleet:
    """Clients at work; `stop` ends them early."""

    def __init__(self, plans: Sequence[Plan]) -> None:
        self._plans = plans
        self._clients: list[Client] = []
        self._stopped_s: float | None = None

    @property
    def stopped(self) -> bool:
        """Whether the clients were asked to end early."""
        return self._stopped_s is not None

    def stop(self) -> None:
        """Ask all clients to end, and to report what they have done; a signal may call this."""
        if self._stopped_s is None:
            self._stopped_s = time.monotonic()
        for client in self._clients:
            client.stop()

    def figures(self) -> Figures:
        """Return what all clients have done so far."""
        figures = Figures()
        for client in self._clients:
            if client.document:
                figures.add(client.document)
        return figures

    def run(self, show: Callable[[Figures], None], enough: int | None = None) -> Figures:
        """Run until all have ended; `enough` records in all end them early.

        Raise MeasurementError with the reason of the first client that failed.
        """
        try:
            for plan in self._plans:
                self._clients.append(Client(plan))
            if self.stopped:
                self.stop()  # the clients that were started after the signal
            self._read(show, enough)
        finally:
            for client in self._clients:
                client.end(self._left_s())
        documents = [client.document for client in self._clients]
        for document in documents:
            if document.get("error"):
                raise MeasurementError(document["error"])
        if not self.stopped and not all(document.get("done") for document in documents):
            raise MeasurementError("the process of a client ended without a report")
        return self.figures()

    def _read(self, show: Callable[[Figures], None], enough: int | None) -> None:
        started = False
        with selectors.DefaultSelector() as selector:
            for client in self._clients:
                selector.register(client.stdout, selectors.EVENT_READ, client)
            while selector.get_map() and self._left_s() > 0:
                for key, _ in selector.select(LOOK_S):
                    key.data.read()
                    if key.data.ended:
                        selector.unregister(key.fileobj)
                if not started and all(client.is_connected for client in self._clients):
                    started = True
                    for client in self._clients:
                        client.start()
                figures = self.figures()
                show(figures)
                if enough is not None and figures.records >= enough:
                    self.stop()

    def _left_s(self) -> float:
        """Return how long clients may take to end; all the time while nobody has asked them to."""
        if self._stopped_s is None:
            return ENDING_S
        return max(self._stopped_s + ENDING_S - time.monotonic(), 0.0)

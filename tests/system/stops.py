"""Stops at chosen steps of the exactly-once sink, where somebody is killed.

Which stops there are is in `stops.json` of a directory:

    [{"number": 0, "batch": 3, "step": "hand_over", "victim": "driver"}, …]

Each happens once: the first that comes to one makes the file `begun-NUMBER`. Workers and executors
are killed here and now; for a driver or a broker, `reached-NUMBER` asks whoever watches to do it,
and `go-NUMBER` is waited for.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from barnabas import KafkaProducer
from barnabas.spark import sink_task

TASK_STEPS = (
    "start",
    "init_transactions",
    "markers",
    "begin_transaction",
    "send_arrow",
    "flush",
    "send_offsets_to_transaction",
    "hand_over",
    "close",
    "written",
)
"""Before each of them, in their order; `written` is after the last."""

COMMIT_STEPS = ("first commit", "second commit", "committed")
"""What the driver does: before the commit of two tasks, and after all of them."""

DEADLINE_S = 240.0


def planned(seed: int, count: int, victims: Sequence[str]) -> list[dict[str, Any]]:
    """Return the kills of a run: one in a batch, from the second on; all kinds in turn."""
    chance = random.Random(seed)
    pairs = [
        *itertools.product(TASK_STEPS, victims),
        *((step, victim) for step in COMMIT_STEPS for victim in victims if victim != "executor"),
    ]
    chance.shuffle(pairs)
    chosen = []
    for victim in itertools.islice(itertools.cycle(victims), count):
        # The longest unused step of this kind.
        pair = next(each for each in pairs if each[1] == victim)
        pairs.remove(pair)
        pairs.append(pair)
        chosen.append(pair)
    chance.shuffle(chosen)
    return [
        {"number": number, "batch": number + 1, "step": step, "victim": victim}
        for number, (step, victim) in enumerate(chosen)
    ]


class Stops:
    """The stops of one batch."""

    def __init__(self, directory: str, batch: int) -> None:
        self._directory = Path(directory)
        planned = json.loads((self._directory / "stops.json").read_text())
        self._planned = [each for each in planned if each["batch"] == batch]

    def at(self, step: str) -> None:
        """Die here, if that is planned."""
        for each in self._planned:
            if each["step"] == step and self._is_first(f"begun-{each['number']}"):
                self._die(each["number"], each["victim"])

    def _die(self, number: int, victim: str) -> None:
        if victim == "executor":
            os.kill(parent_of(os.getppid()), signal.SIGKILL)
        if victim in ("executor", "worker"):
            os.kill(os.getpid(), signal.SIGKILL)
        self._is_first(f"reached-{number}")
        go, parent = self._directory / f"go-{number}", os.getppid()
        deadline_s = time.monotonic() + DEADLINE_S
        while not go.exists() and os.getppid() == parent and time.monotonic() < deadline_s:
            time.sleep(0.01)

    def _is_first(self, name: str) -> bool:
        try:
            (self._directory / name).touch(exist_ok=False)
        except FileExistsError:
            return False
        return True


def parent_of(process: int) -> int:
    """Return the parent of a process: that of a daemon of Python workers is a JVM."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return int(fields[1])


def with_stops(stops: Stops) -> None:
    """Let what writes come by the stops of this batch, and no longer those of the last."""
    commits = iter(COMMIT_STEPS)

    def stopping(name: str) -> Callable[..., Any]:
        method = getattr(KafkaProducer, name)

        def call(self: KafkaProducer, *arguments: Any, **options: Any) -> Any:
            stops.at(next(commits, "") if name == "complete_transaction" else name)
            return method(self, *arguments, **options)

        return call

    names = [name for name in TASK_STEPS if hasattr(KafkaProducer, name)]
    methods = {name: stopping(name) for name in (*names, "complete_transaction")}
    sink_task.KafkaProducer = type("StoppingProducer", (KafkaProducer,), methods)  # type: ignore[attr-defined, assignment, misc]
    read = MARKERS

    def markers(*arguments: Any) -> list[int]:
        stops.at("markers")
        return read(*arguments)

    sink_task.read_markers = markers  # type: ignore[assignment]


MARKERS = sink_task.read_markers

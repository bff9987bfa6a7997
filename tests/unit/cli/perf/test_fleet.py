"""Processes that work together: they start at once, end when asked, and leave nobody behind."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from barnabas.cli.perf import fleet as module
from barnabas.cli.perf.fleet import Fleet, MeasurementError
from barnabas.cli.perf.meter import Figures, Meter
from barnabas.cli.perf.plan import Plan

EMPTY = json.dumps(Meter().document())
PRELUDE = f"""
import json, sys
plan = json.loads(sys.stdin.readline())
def say(**facts): print(json.dumps({{**json.loads({EMPTY!r}), **facts}}), flush=True)
"""


@pytest.fixture
def acted(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Give workers other code to run."""

    def replace(code: str) -> None:
        popen = subprocess.Popen

        def start(words: list[str], **options: Any) -> Any:
            return popen([sys.executable, "-c", PRELUDE + code], **options)

        monkeypatch.setattr(subprocess, "Popen", start)

    return replace


def plans(count: int) -> list[Plan]:
    return [Plan("produce", f"topic-{number}") for number in range(count)]


def test_clients_start_when_all_are_connected(acted: Any, tmp_path: Path) -> None:
    acted(
        f"""
import pathlib, time
own = pathlib.Path({str(tmp_path)!r}) / plan["topic"]
if plan["topic"] == "topic-1": time.sleep(0.2)
own.touch()
say(ready=True)
assert sys.stdin.readline() == "start\\n"
say(ready=True, done=True, records=len(list(own.parent.iterdir())))
"""
    )
    shown: list[Figures] = []
    assert Fleet(plans(3)).run(shown.append).records == 3 * 3
    assert shown[-1].records == 9


def test_the_end_of_their_input_ends_clients(acted: Any) -> None:
    acted("say(ready=True, records=70); sys.stdin.read(); say(done=True, records=100)")
    fleet = Fleet(plans(2))
    threading.Timer(0.2, fleet.stop).start()
    assert fleet.run(lambda figures: None).records == 200
    assert fleet.stopped


def test_a_stop_before_the_start_ends_it_too(acted: Any) -> None:
    acted("say(ready=True); sys.stdin.read(); say(done=True)")
    fleet = Fleet(plans(2))
    fleet.stop()
    assert fleet.run(lambda figures: None).records == 0


def test_enough_records_in_all_end_it(acted: Any) -> None:
    acted("say(ready=True, records=70); sys.stdin.read(); say(done=True, records=75)")
    assert Fleet(plans(2)).run(lambda figures: None, enough=140).records == 150


def test_a_client_that_failed_has_its_reason_and_the_others_end(acted: Any) -> None:
    acted(
        """
if plan["topic"] == "topic-0": say(ready=True, done=True, error="no broker")
else: say(ready=True); sys.stdin.readline(); say(done=True)
"""
    )
    with pytest.raises(MeasurementError, match="no broker"):
        Fleet(plans(2)).run(lambda figures: None)


def test_a_client_that_dies_is_noticed(acted: Any) -> None:
    acted("sys.exit(3)")
    with pytest.raises(MeasurementError, match="ended without a report"):
        Fleet(plans(1)).run(lambda figures: None)


def test_a_client_that_does_not_end_is_killed(acted: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    acted("import time; say(ready=True, records=5); time.sleep(600)")
    monkeypatch.setattr(module, "ENDING_S", 0.3)
    fleet = Fleet(plans(1))

    def show(figures: Figures) -> None:
        if figures.records:
            fleet.stop()

    began_s = time.monotonic()
    assert fleet.run(show).records == 5
    assert time.monotonic() - began_s < 60

"""What `barnabas start --workers` prints, and how it counts cores."""

from __future__ import annotations

import argparse
import os

import pytest

from barnabas.cli.arguments import workers
from barnabas.cli.supervision import _print_ready
from barnabas.workers.channel import Ready
from barnabas.workers.plan import WorkerPlan
from barnabas.workers.supervisor import Serving


def test_a_line_says_where_all_are(capsys: pytest.CaptureFixture[str]) -> None:
    plan = WorkerPlan({"log.dirs": "/a,/b", "barnabas.workers": "2"}, "m")
    serving = [
        Serving(1, Ready(["PLAINTEXT://:1"], {}, None, "http://h/")),
        Serving(2, Ready(["PLAINTEXT://:2"], {}, None, None)),
    ]
    _print_ready(plan, serving, "PLAINTEXT://:1, PLAINTEXT://:2", ["a hint"])
    assert capsys.readouterr().out.splitlines() == [
        "Barnabas brokers 1, 2 are ready on PLAINTEXT://:1, PLAINTEXT://:2 (data in /a, /b)",
        "console on http://h/",
        "a hint",
    ]


def test_auto_is_one_per_core() -> None:
    assert workers("auto") == len(os.sched_getaffinity(0))
    assert workers("3") == 3
    with pytest.raises(argparse.ArgumentTypeError):
        workers("0")

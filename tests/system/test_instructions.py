"""What a request costs, in instructions: no more than recorded. See `bench/instructions.py`."""

from __future__ import annotations

import shutil

import pytest
from bench.instructions import (
    CHECKED_REQUESTS,
    ROOT,
    TOLERANCE,
    count,
    dearer,
    interpreter,
    recorded,
)


def test_requests_have_not_become_dearer() -> None:
    if shutil.which("valgrind") is None:
        pytest.skip("valgrind is not installed (make deps)")
    expected = recorded()
    if expected is None:
        pytest.skip(f"bench/instructions.json has no figures of {interpreter()}")
    counts = count("off", CHECKED_REQUESTS, ROOT)
    assert counts is not None
    assert min(counts.values()) > 10_000, "otherwise something else was counted"
    assert dearer(counts, expected) == []


def test_a_dearer_request_is_named() -> None:
    expected = {"produce": 100_000.0, "fetch": 100_000.0}
    limit = 100_000 * (1 + TOLERANCE)
    assert dearer({"produce": limit, "fetch": 50_000.0}, expected) == []
    (line,) = dearer({"produce": limit, "fetch": limit + 1000}, expected)
    assert line.startswith("fetch: 104,000 instructions a request, +4.0% on the recorded 100,000")

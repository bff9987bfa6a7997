"""How many processors there are, also where a system cannot say which of them are ours."""

from __future__ import annotations

import os

import pytest

from barnabas.spark.cores import cores


def test_a_process_may_be_bound_to_some(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda number: {0, 3, 5}, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    assert cores() == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    assert cores() == 8
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert cores() == 1
